"""Addresses of array cells as sets: a swizzle is represented by binary digits of indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ArrayArg, TemporaryVariable, swizzles_of
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._nodes import Expression
from loopkit._swizzle import Swizzle


@dataclass(frozen=True, eq=False)
class Places:
    """A cell's place along each axis, by which its stride counts.

    ``along`` are affine expressions over the names of the cell's indices and over ``digits``,
    which have one value for each cell: ``tied`` is ``{ names of the indices, digits }``.
    """

    along: tuple[Expression, ...]
    digits: tuple[str, ...]
    tied: isl.Set

    @property
    def tying(self) -> tuple[Expression, ...]:
        """What is equal where equal digits are tied alike."""
        return self.along if self.digits else ()


def places_of(
    array: ArrayArg | TemporaryVariable, indices: Sequence[Expression], label: str = ""
) -> Places:
    """Where a cell of affine indices lies; ``label`` tells digits of several cells apart.

    Raises :class:`~loopkit._linear.NotAffineError` for other indices of a swizzled array.
    """
    along = list(indices)
    found: list[str] = []
    conditions: list[Expression] = []
    for swizzle in swizzles_of(array):
        digits = _Digits(swizzle, label)
        along[swizzle.axis] = digits.place(indices[swizzle.axis])
        conditions += digits.conditions(indices[swizzle.axis], indices[swizzle.by])
        found += digits.names
    tied = _sets.condition_set(prim.LogicalAnd(tuple(conditions))) if found else _sets.universe()
    return Places(tuple(along), tuple(found), tied)


def at_the_origin(places: Places, indices: Sequence[Expression]) -> isl.Set:
    """``{ names of the indices, digits : another cell has the place of the first one }``.

    However long axes are.  Places add digits modulo two, so that two cells lie together where
    the one whose digits tell them apart lies at the origin.
    """
    conditions = [prim.Comparison(place, "==", 0) for place in places.along]
    conditions += [prim.Comparison(index, ">=", 0) for index in indices]
    conditions.append(prim.Comparison(prim.Sum(tuple(indices)), ">=", 1))
    return _sets.condition_set(prim.LogicalAnd(tuple(conditions))) & places.tied


class _Digits:
    """The binary digits that one swizzle changes: those of ``j`` and ``i``, and both at once."""

    def __init__(self, swizzle: Swizzle, label: str) -> None:
        self.swizzle = swizzle
        self.names: list[str] = []
        self.label = f"{label}{swizzle.axis}"
        bits = range(swizzle.bits)
        self.mine, self.its, self.both = ([self._new(w, b) for b in bits] for w in "jib")

    def _new(self, word: str, number: int = 0) -> Expression:
        self.names.append(hidden(f"{word}{self.label}", number))
        return prim.Variable(self.names[-1])

    def place(self, index: Expression) -> Expression:
        """``j ^ i``: of digits, ``i + j - 2*i*j``."""
        parts = [index]
        for bit, (its, both) in enumerate(zip(self.its, self.both, strict=True)):
            weight = 1 << (self.swizzle.base + bit)
            parts += prim.Product((weight, its)), prim.Product((-2 * weight, both))
        return prim.Sum(tuple(parts))

    def conditions(self, index: Expression, by: Expression) -> Iterator[Expression]:
        """What all digits are."""
        yield from self._split("J", index, self.mine, self.swizzle.base)
        yield from self._split("I", by, self.its, self.swizzle.skip)
        for mine, its, both in zip(self.mine, self.its, self.both, strict=True):
            yield from _between(both, 0, 1)
            yield from _between(prim.Sum((mine, its, prim.Product((-2, both)))), 0, 1)

    def _split(
        self, word: str, value: Expression, digits: Sequence[Expression], below: int
    ) -> Iterator[Expression]:
        """``value`` is made of its digits, with what is above and below of them."""
        above = self._new(f"{word}a")
        parts = [prim.Product((1 << (below + len(digits)), above))]
        if below:
            low = self._new(f"{word}b")
            parts.append(low)
            yield from _between(low, 0, (1 << below) - 1)
        for bit, digit in enumerate(digits):
            parts.append(prim.Product((1 << (below + bit), digit)))
            yield from _between(digit, 0, 1)
        yield prim.Comparison(value, "==", prim.Sum(tuple(parts)))


def _between(value: Expression, low: int, high: int) -> tuple[Expression, Expression]:
    return prim.Comparison(value, ">=", low), prim.Comparison(value, "<=", high)
