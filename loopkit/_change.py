"""The result of a transform step: the new kernel, and maps from its instances to the old kernel's.

A map is a quasi-affine relation between iteration domains.  Two kinds of change have no such map
when sizes are symbolic, because it would multiply sizes: renumbered loops, where
``for i in [0, n): for j in [0, m)`` becomes ``for k in [0, n*m)`` with ``k // m`` for ``i`` and
``k % m`` for ``j``, or where ``for i in [0, n)`` becomes four loops in sequence of about
``n // 4`` iterations each; and factors moved out of sums.  A step records these as explicit
claims, and the checker verifies each claim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import product
from loopkit._expression import replace_accesses, substitute
from loopkit._frozen import dataclass
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._poly.pairs import between
from loopkit._same import same

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


@dataclass(frozen=True)
class Factored:
    """``factor`` leaves what is added to the temporary ``name``, and multiplies what is read of it.

    It is an expression of inames that all of these have in common, and of the names in ``axes``,
    each of which stands for the index along an axis of the temporary.
    """

    name: str
    factor: Expression
    axes: tuple[tuple[str, int], ...] = ()

    def at(self, indices: tuple[Expression, ...]) -> Expression:
        """The factor for one element."""
        return substitute(self.factor, {name: indices[axis] for name, axis in self.axes})


def added_by(statement: Statement) -> Expression | None:
    """What a statement adds to the cell that it writes; None where it does something else."""
    if statement.operation is not None:
        return statement.rhs if statement.operation == "sum" else None
    if not isinstance(statement.rhs, prim.Sum):
        return None
    own = [same(child, statement.lhs) for child in statement.rhs.children]
    if sum(own) != 1:
        return None
    rest = tuple(c for c, mine in zip(statement.rhs.children, own, strict=True) if not mine)
    return rest[0] if len(rest) == 1 else prim.Sum(rest)


def adding(statement: Statement, term: Expression) -> Expression:
    """The right side of a statement that adds ``term`` instead of what it adds."""
    return term if statement.operation is not None else prim.Sum((statement.lhs, term))


def multiplied(statement: Statement, claim: Factored) -> Statement:
    """A statement with each value that it reads of the temporary multiplied by the factor."""

    def value(name: str, indices: tuple[Expression, ...]) -> Expression | None:
        if name != claim.name:
            return None
        old = prim.Subscript(prim.Variable(name), indices) if indices else prim.Variable(name)
        return prim.Product((claim.at(indices), old))

    return statement.map_expressions(lambda e: replace_accesses(e, value))


@dataclass(frozen=True)
class InstanceMap:
    """How instances of one new statement correspond to instances of an old one.

    ``values[iname]`` gives an old iname as an affine expression of the new
    statement's inames (and sizes); old inames that are missing kept their name.
    Of the inames in ``every``, the new instance stands for all values for which there are
    old instances.
    """

    new: str
    old: str
    values: Mapping[str, Expression] = field(default_factory=dict)
    every: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Change:
    """What a transform returns: the new kernel and how old instances map to new ones.

    Statements of the new kernel that are in no map and keep an old id are
    mapped identically; those in ``moves`` only carry data.  ``fixed`` are sizes
    that became numbers.  ``assumes`` says that the step is a promise about
    sizes or data.  Each of ``wishes`` makes more of the new kernel, one after the
    other, and is granted where that can be proven.  ``arguments``, where it is given, says what
    each argument is called now, in their order; those that are missing are gone.
    A ``claim`` says what a step does, and that it does nothing else, where no map between sets
    could: such a step is read back.
    With ``parts`` the change is several, one after the other, each of which is proven.
    With ``is_text`` the new kernel, once it is proven, is what later steps are compared with: it
    makes some values in statements of its own that are those of several statements of the text.
    """

    kernel: Kernel
    instances: tuple[InstanceMap, ...] = ()
    moves: frozenset[str] = frozenset()
    fixed: Mapping[str, int] = field(default_factory=dict)
    assumes: bool = False
    wishes: tuple[Callable[[Kernel], Kernel], ...] = ()
    arguments: Mapping[str, str] | None = None
    is_text: bool = False
    claim: Renumbered | Factored | None = None
    parts: tuple[Change, ...] = ()

    def __post_init__(self) -> None:
        if self.parts and self.kernel is not self.parts[-1].kernel:
            raise ValueError("a change in parts makes what the last of them makes")

    @property
    def merges(self) -> bool:
        """Whether some new instance stands for several old ones."""
        return any(m.every for m in self.instances)
