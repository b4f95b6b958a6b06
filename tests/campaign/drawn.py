"""A kernel's text as data: what makes it, says it in other names, or leaves some of it out."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import loopkit as lk

from .naming import Renaming

_SCOPE = {"lk": lk, "np": np}


@dataclass(frozen=True)
class Line:
    """One instruction."""

    text: str


@dataclass(frozen=True)
class Block:
    """``for ... end`` or ``if ... else ... end``."""

    head: str
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()


Node = Line | Block


@dataclass(frozen=True)
class Drawn:
    """A kernel's text and all that its creation takes.

    ``shapes`` are those of arrays that indirect accesses use: nothing else says them.
    ``strides`` are given, or ``"auto"``.  ``made`` are tables and functions: the name that the text
    has, and Python source of what makes it.
    """

    domains: tuple[str, ...]
    body: tuple[Node, ...]
    types: tuple[tuple[str, str], ...]
    shapes: tuple[tuple[str, str], ...] = ()
    assumptions: str | None = None
    strides: tuple[tuple[str, str], ...] = ()
    made: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """The instructions; substitution rules that nothing uses are left out."""
        lines = list(lines_of(self.body))
        used = [l for l in lines if ":=" not in l or "\n".join(lines).count(l.split("(")[0]) > 1]
        return "\n".join(used)

    def make(self) -> lk.Kernel:
        """The kernel, by ``lk.make_kernel``."""
        with warnings.catch_warnings():
            # Types are drawn to be odd.
            warnings.simplefilter("ignore", lk.LoopkitWarning)
            return lk.make_kernel(
                list(self.domains),
                self.text,
                self._data() or None,
                dtypes=self.dtypes,
                assumptions=self.assumptions,
                functions=[eval(f, _SCOPE) for f in self._functions()],
            )

    def renamed(self, names: Renaming) -> Drawn:
        """The kernel under other names."""
        return Drawn(
            tuple(names.text(d) for d in self.domains),
            tuple(_renamed(node, names) for node in self.body),
            names.value(self.types),
            names.value(self.shapes),
            None if self.assumptions is None else names.text(self.assumptions),
            names.value(self.strides),
            self.made,
        )

    def _data(self) -> list[Any]:
        data = [eval(d, _SCOPE) for d in self._declared()]
        return [*data, ...] if data else []

    def _declared(self) -> list[str]:
        """Python source of the declarations that the text needs."""
        text, types, shapes = self.text, dict(self.types), dict(self.shapes)
        found = [m for name, m in self.made if is_in(text, f"{name}[")]
        strides = dict(self.strides)
        for name in dict.fromkeys((*shapes, *strides)):
            if not is_in(text, f"{name}["):
                continue
            shape = f", shape={shapes[name]!r}" if name in shapes else ""
            steps = f", strides={strides[name]!r}" if name in strides else ""
            found.append(f"lk.GlobalArg({name!r}, {types[name]!r}{shape}{steps})")
        return found

    def _functions(self) -> list[str]:
        text = self.text
        return [made for name, made in self.made if f"{name}(" in text]

    @property
    def dtypes(self) -> dict[str, str]:
        """The types of all arrays, as ``make_kernel`` takes them."""
        text = self.text
        together: dict[str, list[str]] = {}
        for name, dtype in self.types:
            if is_in(text, f"{name}["):
                together.setdefault(dtype, []).append(name)
        return {", ".join(names): dtype for dtype, names in together.items()}

    def source(self) -> str:
        """Python source that makes the kernel."""
        text = self.text
        lines = ["knl = lk.make_kernel("]
        lines.append(f"    [{', '.join(repr(d) for d in self.domains)}],")
        lines += ['    """', *(f"    {line}" for line in text.split("\n")), '    """,']
        if declared := self._declared():
            lines.append(f"    [{', '.join(declared)}, ...],")
        lines.append(f"    dtypes={self.dtypes!r},")
        if self.assumptions:
            lines.append(f"    assumptions={self.assumptions!r},")
        if functions := self._functions():
            lines.append(f"    functions=[{', '.join(functions)}],")
        return "\n".join([*lines, ")"])

    def smaller(self, *, dissolve: bool = True) -> Iterator[Drawn]:
        """Copies with one line, block or domain left out, or one block dissolved."""
        for body in _smaller(self.body, dissolve):
            if body:
                yield replace(self, body=body)
        for at in range(len(self.domains)):
            yield replace(self, domains=(*self.domains[:at], *self.domains[at + 1 :]))


def lines_of(nodes: tuple[Node, ...], indent: str = "") -> Iterator[str]:
    """The lines of a text."""
    for node in nodes:
        if isinstance(node, Line):
            yield indent + node.text
            continue
        yield indent + node.head
        yield from lines_of(node.body, indent + "    ")
        if node.otherwise:
            yield indent + "else"
            yield from lines_of(node.otherwise, indent + "    ")
        yield indent + "end"


def is_in(text: str, word: str) -> bool:
    """Whether a text has a word, a name and the bracket behind it, maybe with a tag between."""
    return re.search(rf"\b{word[:-1]}(\$\w+)?{re.escape(word[-1])}", text) is not None


def _renamed(node: Node, names: Renaming) -> Node:
    if isinstance(node, Line):
        return Line(names.text(node.text))
    body, otherwise = (
        tuple(_renamed(inner, names) for inner in part) for part in (node.body, node.otherwise)
    )
    return Block(names.text(node.head), body, otherwise)


def _smaller(nodes: tuple[Node, ...], dissolve: bool) -> Iterator[tuple[Node, ...]]:
    for at, node in enumerate(nodes):
        before, after = nodes[:at], nodes[at + 1 :]
        yield (*before, *after)
        if isinstance(node, Block):
            if dissolve:
                yield (*before, *node.body, *node.otherwise, *after)
            if node.otherwise:
                yield (*before, replace(node, otherwise=()), *after)
            for body in _smaller(node.body, dissolve):
                if body:
                    yield (*before, replace(node, body=body), *after)
            for body in _smaller(node.otherwise, dissolve):
                if body:
                    yield (*before, replace(node, otherwise=body), *after)
