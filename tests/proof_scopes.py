"""Texts translated where nothing is known."""

from __future__ import annotations

from dataclasses import replace

from seams import Function, Names, Parameter, Scope, Space, TextTranslator


def translator(function: Function, **types: str) -> TextTranslator:
    """The translator of a function's expressions, with parameters of other types."""
    own = [Parameter(n, t.removesuffix("*"), t.endswith("*"), True) for n, t in types.items()]
    kept = [p for p in function.parameters if p.name not in types]
    return TextTranslator(Names(replace(function, parameters=(*kept, *own))), frozenset())


def anywhere() -> Scope:
    """A point at which nothing holds."""
    space = Space([])
    return Scope(space, None, None, (), base=space.everything)
