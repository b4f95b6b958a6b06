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
    """A replacement of loops over ``old`` inames, outermost first, by loops over ``new`` ones."""

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
        """The iname of the joined loop."""
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
        """The box of the old loops' iterations."""
        parts = zip(self.lows, self.old, self.lengths, strict=True)
        return _sets.intersection(_from(*part) for part in parts)

    @property
    def after(self) -> isl.Set:
        """The interval from 0 to the count."""
        return _from(0, self.joined, self.count)

    @property
    def counts(self) -> tuple[Expression, ...]:
        """The numbers of iterations of the old loops."""
        return self.lengths

    @property
    def product(self) -> Expression:
        """The expression for the count."""
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
        """The iname of the old loop."""
        return (self.iname,)

    @property
    def new(self) -> tuple[str, ...]:  # type: ignore[override]
        """The inames of the loop over chunks, and of the loop inside a chunk."""
        return (self.outer, self.inner)

    @property
    def short(self) -> Expression:
        """The length of the shorter chunks."""
        return prim.FloorDiv(self.length, self.chunks)

    @property
    def longer(self) -> Expression:
        """The number of chunks that are longer by one."""
        return prim.Remainder(self.length, self.chunks)

    @property
    def values(self) -> Mapping[str, Expression]:
        """The old iname as the start of a chunk plus the offset in it."""
        chunk = prim.Variable(self.outer)
        start = prim.Product((self.short, chunk)), prim.Min((chunk, self.longer))
        low = () if self.low == 0 else (self.low,)
        return {self.iname: prim.Sum((*start, prim.Variable(self.inner), *low))}

    @property
    def before(self) -> isl.Set:
        """The interval of the old loop."""
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
        """The number of iterations of the old loop."""
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
    """A ``factor`` removed from all terms added to ``name``, and multiplied into all its reads.

    ``factor`` is an expression of inames that all of these statements share, and of the names in
    ``axes``, which are the indices along the axes of the temporary.
    """

    name: str
    factor: Expression
    axes: tuple[tuple[str, int], ...] = ()

    def at(self, indices: tuple[Expression, ...]) -> Expression:
        """The factor for the element with given indices."""
        return substitute(self.factor, {name: indices[axis] for name, axis in self.axes})


def added_by(statement: Statement) -> Expression | None:
    """The term that a statement adds to the cell that it writes; None if it does something else."""
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
    """The map from instances of one new statement to instances of an old statement.

    ``values[iname]`` gives an old iname as an affine expression of the new statement's inames and
    of sizes; an old iname that is missing is an iname of the new statement, too.  For the inames in
    ``every``, one new instance corresponds to the old instances for all their values.
    """

    new: str
    old: str
    values: Mapping[str, Expression] = field(default_factory=dict)
    every: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Change:
    """The result of a transform: the new kernel, and the maps from new instances to old ones.

    A statement of the new kernel that is in no map and has the id of an old statement is mapped by
    the identity.  The statements in ``moves`` only copy data.  ``fixed`` are sizes that became
    constants. ``assumes`` is set where the step is a user's promise about sizes or data.  Each of
    ``wishes`` is a further change, in sequence, which is applied only if it can be proven.
    ``arguments``, if given, maps each old argument to its new name, in order; those that are
    missing were removed.

    A ``claim`` describes a step that no map between sets can express; the checker verifies it.
    With ``parts`` the change is a sequence of changes, each of which is proven.  With ``is_text``
    the new kernel, once proven, becomes the reference with which later steps are compared, since no
    instance map relates all of its statements to the old text.
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
        """Whether some new instance corresponds to several old ones."""
        return any(m.every for m in self.instances)
