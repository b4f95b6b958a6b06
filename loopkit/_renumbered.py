"""Loops that run through the same iterations in the same order under other numbers.

``for i in [0, n): for j in [0, m)`` is ``for k in [0, n*m)`` with ``k // m`` for ``i`` and
``k % m`` for ``j``; ``for i in [0, n)`` is four loops one after the other of about ``n // 4``
iterations.  Where lengths are sizes no set says so, for the numbers are multiplied: that the loops
are the same program is a fact of its own, and what is said here is all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import product
from loopkit._frozen import dataclass
from loopkit._nodes import Expression
from loopkit._poly.in_bounds import between

if TYPE_CHECKING:
    from loopkit._kernel import Kernel


class Renumbered:
    """Loops over ``old`` inames, the first one outermost, that become loops over ``new`` ones."""

    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def values(self) -> Mapping[str, Expression]:
        """Each old iname, in terms of the new ones."""
        raise NotImplementedError

    @property
    def before(self) -> isl.Set:
        """``{ old inames, sizes : there is an iteration }``, for lengths of at least 0."""
        raise NotImplementedError

    @property
    def after(self) -> isl.Set:
        """``{ new inames, sizes : there is an iteration }``, for sizes for which there was one."""
        raise NotImplementedError

    @property
    def counts(self) -> tuple[Expression, ...]:
        """Numbers of iterations of old loops, where there are any."""
        raise NotImplementedError


@dataclass(frozen=True)
class Joined(Renumbered):
    """Several loops, each of the ``lengths`` whole numbers from ``lows`` on, as one.

    That counts from 0 to ``count``, the product of the lengths: an expression, or the name of a
    size that is computed so.
    """

    old: tuple[str, ...]
    lows: tuple[Expression, ...]
    lengths: tuple[Expression, ...]
    joined: str
    count: Expression

    @property
    def new(self) -> tuple[str, ...]:  # type: ignore[override]
        """The loop that counts through all."""
        return (self.joined,)

    @property
    def values(self) -> Mapping[str, Expression]:
        """Quotients and remainders: the last loop runs fastest."""
        rest: Expression = prim.Variable(self.joined)
        found = {}
        for iname, low, length in reversed([*zip(self.old, self.lows, self.lengths, strict=True)]):
            value: Expression = rest if iname == self.old[0] else prim.Remainder(rest, length)
            found[iname] = value if low == 0 else prim.Sum((value, low))
            rest = prim.FloorDiv(rest, length)
        return found

    @property
    def before(self) -> isl.Set:
        """A box."""
        parts = zip(self.lows, self.old, self.lengths, strict=True)
        return _sets.intersection(_from(*part) for part in parts)

    @property
    def after(self) -> isl.Set:
        """From 0 to the count."""
        return _from(0, self.joined, self.count)

    @property
    def counts(self) -> tuple[Expression, ...]:
        """The lengths."""
        return self.lengths

    @property
    def product(self) -> Expression:
        """What the count is."""
        return product(list(self.lengths))


@dataclass(frozen=True)
class Chunked(Renumbered):
    """A loop of ``length`` whole numbers from ``low`` on in ``chunks``, the longer ones first."""

    iname: str
    low: Expression
    length: Expression
    chunks: int
    outer: str
    inner: str

    @property
    def old(self) -> tuple[str, ...]:  # type: ignore[override]
        """The loop."""
        return (self.iname,)

    @property
    def new(self) -> tuple[str, ...]:  # type: ignore[override]
        """Chunks, and what is in each."""
        return (self.outer, self.inner)

    @property
    def short(self) -> Expression:
        """How long the shorter chunks are."""
        return prim.FloorDiv(self.length, self.chunks)

    @property
    def longer(self) -> Expression:
        """How many chunks are longer by one."""
        return prim.Remainder(self.length, self.chunks)

    @property
    def values(self) -> Mapping[str, Expression]:
        """Where a chunk starts, and how far into it."""
        chunk = prim.Variable(self.outer)
        start = prim.Product((self.short, chunk)), prim.Min((chunk, self.longer))
        low = () if self.low == 0 else (self.low,)
        return {self.iname: prim.Sum((*start, prim.Variable(self.inner), *low))}

    @property
    def before(self) -> isl.Set:
        """All numbers."""
        return _from(self.low, self.iname, self.length)

    @property
    def after(self) -> isl.Set:
        """Chunks of two lengths: ``inner`` is below ``(length - outer)/chunks``, rounded up."""
        outer, inner = prim.Variable(self.outer), prim.Variable(self.inner)
        last = prim.Sum((prim.Product((self.chunks, inner)), outer))
        inside = (prim.Comparison(inner, ">=", 0), prim.Comparison(last, "<", self.length))
        return _from(0, self.outer, self.chunks) & _sets.condition_set(prim.LogicalAnd(inside))

    @property
    def counts(self) -> tuple[Expression, ...]:
        """The length."""
        return (self.length,)


def known_of_sizes(kernel: Kernel) -> isl.Set:
    """What every call of a kernel promises: its assumptions, and that no array has fewer elements
    than none along an axis whose length is a size.
    """
    known = kernel.assumptions.set
    for argument in kernel.args:
        for extent in getattr(argument, "shape", None) or ():
            if isinstance(extent, prim.Variable) and extent.name in kernel.sizes:
                known = known & _sets.condition_set(prim.Comparison(extent, ">=", 0))
    return known


def known_of_count(known: isl.Set, claim: Renumbered, size: str) -> isl.Set:
    """What is known of sizes with one more, the product of lengths: if none of these is negative,
    neither is that.
    """
    whole = (prim.Comparison(n, ">=", 0) for n in (*claim.counts, prim.Variable(size)))
    *lengths, count = map(_sets.condition_set, whole)
    return known & count if known.is_subset(_sets.intersection(lengths)) else known


def _from(low: Expression, iname: str, length: Expression) -> isl.Set:
    """``{ iname, sizes : low <= iname < low + length }``."""
    return between(iname, low, prim.Sum((low, length, -1)))
