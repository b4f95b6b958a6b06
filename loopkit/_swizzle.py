"""Swizzles: permutations of the cells of an array along an axis, by exclusive or.

The rows of an array in shared memory may all begin in the same bank, so that a column is in one
bank.  With ``j ^ i`` in place of ``j``, each row ``i`` has its own permutation, and a column covers
all banks (NVIDIA CUTLASS, ``cute/swizzle.hpp``; the idea is older: Frailong et al., "XOR-Schemes",
ICPP 1985).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from loopkit._called import fitting_type
from loopkit._errors import InvalidArgumentError
from loopkit._frozen import dataclass
from loopkit._nodes import Expression
from loopkit._spelling import shown

MOST_BITS = 30
"""No array in 32-bit indices has more to permute."""

Whole = TypeVar("Whole", int, "np.ndarray[Any, np.dtype[np.int64]]")


@fitting_type
@dataclass(frozen=True)
class Swizzle:
    """Index ``j`` of ``axis`` has the place ``j ^ ((i >> skip) % 2**bits << base)``.

    There ``i`` is the index of axis ``by``: its ``bits`` bits above the lowest ``skip`` change
    those of ``j`` above the lowest ``base``, which stay.  In rows of ``2**r`` elements that is
    CuTe's ``Swizzle<bits, base, r + skip - base>``.
    """

    axis: int
    by: int
    bits: int
    base: int = 0
    skip: int = 0

    def __post_init__(self) -> None:
        for name in ("axis", "by", "bits", "base", "skip"):
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value <= MOST_BITS:
                raise InvalidArgumentError(
                    f"{name} of a swizzle is a number from 0 to {MOST_BITS}, not {shown(value)}"
                )
        if not 0 < self.bits <= MOST_BITS - self.base:
            raise InvalidArgumentError(
                f"a swizzle of {self.bits} bits above the lowest {self.base} is none",
                instead=f"1 to {MOST_BITS} bits, counted from the lowest, can change",
            )

    def changed(self, index: Whole) -> Whole:
        """The bits that index ``i`` changes, as a number; of a table, of each entry."""
        return (index >> self.skip) % (1 << self.bits) << self.base

    def takes_all(self, extent: Expression) -> bool:
        """Whether indices from 0 have no bits above those that count."""
        return isinstance(extent, int) and extent <= 1 << (self.bits + self.skip)

    def arguments(self, shape: Sequence[int]) -> dict[str, int]:
        """The arguments of ``swizzle_array`` that make it, without those that have defaults."""
        last, rank = len(shape) - 1, len(shape)
        usual = {"axis": last, "by": default_by(self.axis, rank), "base": 0, "skip": 0}
        usual["bits"] = default_bits(shape[self.axis], shape[self.by], self.base, self.skip)
        names = ("axis", "by", "bits", "base", "skip")
        return {n: getattr(self, n) for n in names if getattr(self, n) != usual[n]}

    def text(self, names: Sequence[str], shape: Sequence[Expression]) -> str:
        """How it reads, given a name for the index of each axis: ``j ^ 4*(i % 8)``."""
        by = f"{names[self.by]}//{1 << self.skip}" if self.skip else names[self.by]
        if not self.takes_all(shape[self.by]):
            by = f"({by} % {1 << self.bits})"
        return f"{names[self.axis]} ^ " + (f"{1 << self.base}*{by}" if self.base else by)


def default_by(axis: int, rank: int) -> int:
    """The axis in front of one, and for the first one the last."""
    return (axis or rank) - 1


def default_bits(extent: int, other: int, base: int, skip: int) -> int:
    """As many bits as the indices of both axes have, those left out that stay or do not count."""
    return min(max(extent - 1, 0).bit_length() - base, max(other - 1, 0).bit_length() - skip)
