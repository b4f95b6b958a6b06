"""Conditions and cells that only data decides, at two lines: where they are the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loopkit.codegen.proof.forms import Form, Loaded, Monomial, Node, Variable, walk


@dataclass(frozen=True)
class Matching:
    """Two nodes are the same where all ``words`` stand for the same, and all ``pairs`` are equal.

    Words are names of loops, constants and hardware indices, and of what lies in memory.
    """

    words: frozenset[str] = frozenset()
    pairs: tuple[tuple[Form, Form], ...] = ()

    def joined(self, other: Matching) -> Matching:
        """Where two pairs of nodes are the same."""
        return Matching(self.words | other.words, (*self.pairs, *other.pairs))


def words_in(node: Node) -> frozenset[str]:
    """The names of all variables and arrays in a node."""
    named = (part for part in walk(node) if isinstance(part, (Variable, Loaded)))
    return frozenset(part.name if isinstance(part, Variable) else part.array for part in named)


def matching(mine: Node, other: Node) -> Matching | None:
    """Where two nodes are the same, up to the subscripts of what they read; None if nowhere."""
    if mine == other:
        return Matching(words_in(mine))
    if type(mine) is not type(other):
        return None
    if isinstance(mine, Form) and isinstance(other, Form):
        return _forms(mine, other)
    if isinstance(mine, Loaded) and isinstance(other, Loaded):
        if mine.array != other.array:
            return None
        words = frozenset((mine.array,))
        if mine.offset.is_affine and other.offset.is_affine:
            return Matching(words, ((mine.offset, other.offset),))
        inner = matching(mine.offset, other.offset)
        return inner and Matching(words).joined(inner)
    if mine.besides != other.besides:
        return None
    return _in_turn(mine.inside, other.inside)


def _in_turn(first: Iterable[Node], second: Iterable[Node]) -> Matching | None:
    """All of some nodes as the others, in their order."""
    one, two = tuple(first), tuple(second)
    if len(one) != len(two):
        return None
    found = Matching()
    for a, b in zip(one, two, strict=True):
        part = matching(a, b)
        if part is None:
            return None
        found = found.joined(part)
    return found


def _forms(mine: Form, other: Form) -> Matching | None:
    """Sums, product by product: any order in which all are the same will do."""
    found, left = Matching(), dict(other.terms)
    rest: dict[Monomial, int] = {}
    for monomial, factor in mine.terms.items():
        if left.get(monomial) == factor:
            del left[monomial]
            found = found.joined(_in_turn(monomial, monomial) or Matching())
        else:
            rest[monomial] = factor
    for monomial, factor in rest.items():
        for there in [m for m, c in left.items() if c == factor]:
            part = _in_turn(monomial, there)
            if part is not None:
                break
        else:
            return None
        del left[there]
        found = found.joined(part)
    return None if left else found
