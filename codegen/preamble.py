"""The device functions that generated code may call, and the text of those that it needs.

A function brings those that it calls itself; definitions keep the order of their file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from loopkit._relations import reachable
from loopkit.codegen.c.types import TYPES, struct_of

_FILE = Path(__file__).with_name("device_functions.cuh")

Piece = tuple[tuple[str, ...], str]
"""The names of the pieces that a piece needs, and its lines."""


@cache
def device_functions() -> Mapping[str, Piece]:
    """The pieces of ``device_functions.cuh`` by name, in their order."""
    _, *sections = _FILE.read_text(encoding="utf-8").split("\n//@for")
    return {name: piece for section in sections for name, piece in _pieces(section)}


def _pieces(section: str) -> Iterator[tuple[str, Piece]]:
    """The pieces of a section, once for each of its cases."""
    cases, *pieces = section.split("\n//@ ")
    for case in cases.split(" | "):
        words = [word.split("=", 1) for word in case.split()]
        for piece in pieces:
            for word, said in (("INLINE", "__device__ __forceinline__"), *words):
                piece = piece.replace(word, said)
            head, _, lines = piece.rstrip().partition("\n")
            name, *needs = head.split()
            yield name, (tuple(needs), lines)


def preamble(needed: Iterable[str]) -> str:
    """The definitions that must precede code which uses ``needed``; empty if nothing is needed."""
    pieces, needed = device_functions(), [*needed]
    records = [name for name in needed if name not in pieces]
    wanted = reachable({*needed}.difference(records), lambda name: pieces[name][0])
    lines: list[str] = []
    before = ""
    for name, (_, text) in pieces.items():
        if name in wanted:
            # One-liners of a kind stand together.
            if lines and not (text.startswith("#") and before.startswith("#")):
                lines.append("")
            lines.append(text)
            before = text
    for name in records:
        lines += [""] * bool(lines) + [struct_of(TYPES[name])]
    return "\n".join(lines) + "\n" if lines else ""
