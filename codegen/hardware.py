"""Blocks and threads: the inames that are hardware coordinates, and the extents of the axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _budget, _sets
from loopkit._budget import SpentError, within
from loopkit._cached import cached_property
from loopkit._errors import IllegalTransformError, ResourceError
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._open_lengths import first_index, thread_range
from loopkit._places import runs_once_along
from loopkit._relations import grouped
from loopkit._same import Exact, remembered
from loopkit._sets import UnboundedError
from loopkit._tags import GroupAxis, LocalAuto, LocalAxis
from loopkit._target import CUDA
from loopkit.codegen.bounds import loose_end, plus


@dataclass(frozen=True)
class Coordinate:
    """One parallel iname: ``iname = hardware index + lower``.

    ``extent`` is the length of its axis, at least the number of values of the iname. ``is_exact``
    is False if the number of values is not known exactly: more blocks may execute.
    """

    iname: str
    kind: str
    axis: int
    lower: int
    extent: Expression
    is_exact: bool = True

    @property
    def word(self) -> str:
        """CUDA's name of the hardware index."""
        return CUDA.index(self.kind, self.axis)


@dataclass(frozen=True, eq=False)
class Hardware(Exact):
    """The launch configuration that a kernel's tags describe."""

    coordinates: tuple[Coordinate, ...]
    grid: tuple[Expression, Expression, Expression]
    block: tuple[int, int, int]

    @cached_property
    def by_iname(self) -> Mapping[str, Coordinate]:
        """Coordinates by iname."""
        return {c.iname: c for c in self.coordinates}

    @cached_property
    def local_inames(self) -> frozenset[str]:
        """Inames that are thread indices."""
        return frozenset(c.iname for c in self.coordinates if c.kind == "l")

    @cached_property
    def group_inames(self) -> frozenset[str]:
        """Inames that are block indices."""
        return frozenset(c.iname for c in self.coordinates if c.kind == "g")

    def extents(self, kind: str) -> tuple[Expression, Expression, Expression]:
        """The number of blocks, or threads, along each axis."""
        return self.grid if kind == "g" else self.block

    def used_axes(self, kind: str) -> tuple[int, ...]:
        """The axes of that kind with more than one index."""
        return tuple(axis for axis, extent in enumerate(self.extents(kind)) if extent != 1)

    def alone(self, kernel: Kernel, statement: Statement) -> tuple[tuple[str, int], ...]:
        """The axes without a coordinate of the statement, on which it executes at index 0 only."""
        mine = {(c.kind, c.axis) for c in self.coordinates if c.iname in statement.inames}
        once = runs_once_along(kernel, statement) - mine
        used = ((kind, axis) for kind in "gl" for axis in self.used_axes(kind))
        return tuple(axis for axis in used if axis in once)


def piecewise_maximum(function: isl.PwAff, context: isl.Set) -> Expression:
    """A piecewise affine function as an expression that is right in ``context``.

    Several pieces become their minimum where that is the function (the end of a
    loop that two conditions limit), and else their maximum, which is exact for the
    largest value of an iname in a union, and never less than the function.
    """
    pieces: list[tuple[Expression, isl.Set]] = []
    for domain, aff in function.get_pieces():
        where = domain.params() & context
        if not where.is_empty():
            pieces.append((_sets.from_affine(aff), where))
    if not pieces:
        return -1
    if len({expr for expr, _ in pieces}) == 1:
        return pieces[0][0]
    is_least = all(
        (_sets.condition_set(prim.Comparison(other, "<", expr)) & where).is_empty()
        for expr, where in pieces
        for other, _ in pieces
        if other is not expr
    )
    kind = prim.Min if is_least else prim.Max
    return kind(tuple(dict.fromkeys(expr for expr, _ in pieces)))


def find_hardware(kernel: Kernel) -> Hardware:
    """The grid and block of a kernel.

    An axis is as long as the longest of its inames; guards stop the others.

    Raises :class:`IllegalTransformError` where an axis has no extent,
    :class:`ResourceError` where the block is larger than any GPU allows.
    """
    context = kernel.assumptions.set
    coordinates = []
    used = frozenset().union(*(s.inames for s in kernel.statements))
    for iname, tag in kernel.tags:
        if isinstance(tag, LocalAuto) and iname in used:
            raise IllegalTransformError(
                f"iname '{iname}' is still tagged l.auto", instead="tag it l.0, l.1 or l.2"
            )
        if isinstance(tag, (GroupAxis, LocalAxis)) and iname in used:
            coordinates.append(_coordinate(kernel, iname, tag, context))
    extents = {
        axis: _longest([c.extent for c in alike], context)
        for axis, alike in grouped(((c.kind, c.axis), c) for c in coordinates).items()
    }
    coordinates = [_on_axis(c, extents[c.kind, c.axis]) for c in coordinates]
    grid = tuple(extents.get(("g", a), 1) for a in range(3))
    empty = [axis for axis in range(3) if _may_be_empty(kernel, axis, grid[axis], context)]
    for axis in empty:
        # Statements without this coordinate run in the first block, which must exist.
        least = 1 if isinstance(grid[axis], int) else prim.Max((grid[axis], 1))
        grid = (*grid[:axis], least, *grid[axis + 1 :])
    coordinates = [
        replace(c, is_exact=False) if c.kind == "g" and c.axis in empty else c for c in coordinates
    ]
    block = tuple(int(extents.get(("l", a), 1)) for a in range(3))
    threads = prod(block)
    if threads > CUDA.block_threads:
        factors = [str(b) for b in block if b != 1]
        shape = f"{' x '.join(factors)} = " if len(factors) > 1 else ""
        raise ResourceError(
            f"a block of {shape}{threads} threads is larger than any GPU allows "
            f"({CUDA.block_threads})",
            instead="split the l.0, l.1 and l.2 inames by less, and keep the rest as a loop",
        )
    for axis, extent in enumerate(block):
        if extent > CUDA.block_extents[axis]:
            raise ResourceError(
                f"axis l.{axis} has {extent} threads; "
                f"a GPU allows {CUDA.block_extents[axis]} there",
                instead="use l.0 for the longest iname",
            )
    return Hardware(tuple(coordinates), (grid[0], grid[1], grid[2]), (block[0], block[1], block[2]))


def _longest(extents: Sequence[Expression], context: isl.Set) -> Expression:
    """The maximum of several extents, without those that never exceed another one."""
    kept: list[Expression] = []
    for extent in extents:
        if not any(_never_exceeds(extent, other, context) for other in kept):
            kept = [other for other in kept if not _never_exceeds(other, extent, context)]
            kept.append(extent)
    return kept[0] if len(kept) == 1 else prim.Max(tuple(kept))


def _never_exceeds(one: Expression, two: Expression, context: isl.Set) -> bool:
    return one == two or _sets.is_nowhere(context, [prim.Comparison(one, ">", two)])


def _on_axis(coordinate: Coordinate, extent: Expression) -> Coordinate:
    """A coordinate where the axis may be longer than its iname."""
    if coordinate.extent == extent:
        return coordinate
    is_number = isinstance(extent, (int, np.integer))
    return replace(coordinate, extent=extent, is_exact=is_number)


def _may_be_empty(kernel: Kernel, axis: int, extent: Expression, context: isl.Set) -> bool:
    """Whether an axis may have no blocks although some statement has instances."""
    if isinstance(extent, int) and extent >= 1:
        return False
    inames = frozenset(i for i, tag in kernel.tags if tag == GroupAxis(axis))
    if all(s.inames & inames for s in kernel.statements):
        return False
    return isinstance(extent, int) or not _sets.is_nowhere(
        context, [prim.Comparison(extent, "<", 1)]
    )


def _coordinate(
    kernel: Kernel, iname: str, tag: GroupAxis | LocalAxis, context: isl.Set
) -> Coordinate:
    if isinstance(tag, LocalAxis):
        first, last = thread_range(kernel, iname, tag)
        return Coordinate(iname, "l", tag.axis, first, last - first + 1)
    lower = first_index(kernel, iname, tag)
    if lower is None:
        return Coordinate(iname, "g", tag.axis, 0, 0)
    reach = _sets.project_onto(kernel.domain_around([iname]) & context, [*kernel.sizes, iname])
    # A grid follows the sizes, also where assumptions bound them.
    end = _end(reach, iname, context)
    if end is None:
        raise IllegalTransformError(
            f"iname '{iname}' is tagged {tag}, but has no upper bound",
            instead=f"assume, or a condition of its domain, may say where '{iname}' ends",
        )
    return Coordinate(iname, "g", tag.axis, lower, plus(end, -lower))


def _end(reach: isl.Set, iname: str, context: isl.Set) -> Expression | None:
    """The exclusive upper bound of an iname; None if it has none.

    It is the largest value plus one. If isl exceeds its budget for that, it is a bound from the
    conditions without their quotients, which may launch more blocks than needed; guards stop them.
    """

    try:
        with suppress(SpentError):
            return _exact_end(reach, iname, context)
        return loose_end(reach, iname)
    except UnboundedError:
        return None


@remembered(1 << 10)
def _exact_end(reach: isl.Set, iname: str, context: isl.Set) -> Expression:
    """The largest value plus one (memoised across launches).

    Raises :class:`SpentError` if isl exceeds its budget.
    """

    def find() -> Expression:
        return plus(piecewise_maximum(_sets.maximum(reach, iname), context), 1)

    return within(_budget.GRID, find)
