"""Conditions and cells that only data decides, at two lines: where they are the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from loopkit.codegen.proof.forms import Form
from loopkit.codegen.proof.subject import Subject

_WORD = re.compile(r"[A-Za-z_]\w*(?:\.[xyz])?")
_ARRAY = re.compile(r"([A-Za-z_]\w*)\[")


@dataclass(frozen=True)
class Alike:
    """Two texts are the same where all ``words`` stand for the same, and all ``pairs`` are equal.

    Words are names of loops, constants and hardware indices, and of what lies in memory.
    """

    words: frozenset[str]
    pairs: tuple[tuple[Form, Form], ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """What equal answers share."""
        return self.words, tuple((a.key, b.key) for a, b in self.pairs)

    def joined(self, other: Alike) -> Alike:
        """Where two pairs of texts are the same."""
        return Alike(self.words | other.words, (*self.pairs, *other.pairs))


def words_in(text: str) -> frozenset[str]:
    """All names in a text."""
    return frozenset(_WORD.findall(text))


def offsets(subject: Subject) -> dict[str, Form]:
    """The affine forms of all subscripts, by their texts."""
    return {
        touch.offset.key: touch.offset
        for leaf in subject.leaves
        for touch in leaf.touches
        if touch.offset.is_affine
    }


def alike(mine: str, other: str, forms: Mapping[str, Form]) -> Alike | None:
    """Where two texts are the same, up to the subscripts of what they read; None if nowhere."""
    if mine == other:
        return Alike(words_in(mine))
    (one, first), (two, second) = _parts(mine), _parts(other)
    if one != two:
        return None
    words, pairs = words_in(one), []
    for a, b in zip(first, second, strict=True):
        if a == b:
            words |= words_in(a)
        elif a in forms and b in forms:
            pairs.append((forms[a], forms[b]))
        else:
            return None
    return Alike(words, tuple(pairs))


def _parts(text: str) -> tuple[str, list[str]]:
    """A text without the outermost subscripts, and these."""
    rest, inner, at = "", [], 0
    while (found := _ARRAY.search(text, at)) is not None:
        depth, end = 1, found.end()
        while depth:
            depth += {"[": 1, "]": -1}.get(text[end], 0)
            end += 1
        rest += text[at : found.end()] + "]"
        inner.append(text[found.end() : end - 1])
        at = end
    return rest + text[at:], inner
