"""Texts translated where nothing is known."""

from __future__ import annotations

from loopkit._promotion import DType
from loopkit.codegen.c.tree import Function
from loopkit.codegen.proof.names import declared
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.spaces import Space
from loopkit.codegen.proof.translate import TextTranslator
from loopkit.codegen.proof.value_text import exact_types


def translator(function: Function, **types: DType) -> TextTranslator:
    """The translator of a function's expressions, with types of what it does not declare."""
    own = {name: frozenset((dtype,)) for name, dtype in types.items()}
    return TextTranslator(declared(function), frozenset(), {**exact_types(function), **own})


def anywhere() -> Scope:
    """A point at which nothing holds."""
    space = Space([])
    return Scope(space, None, None, (), base=space.everything)
