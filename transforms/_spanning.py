"""Footprints that a caller describes: subscripts with ranges, over inames of the original text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pymbolic.primitives as prim

from loopkit._arguments import names_in
from loopkit._change import Change
from loopkit._check.instance_maps import lineage_of
from loopkit._errors import IllegalTransformError, InvalidArgumentError, UnknownNameError, counted
from loopkit._expression import substitute, to_text, variable_names
from loopkit._footprint import Axis, Range, Use, iname_ranges, is_inside, outer_names
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._kernel import Kernel, Statement
from loopkit._linear import NotAffineError, linear
from loopkit._nodes import Expression
from loopkit.transforms import _uses
from loopkit.transforms._common import inames_in, is_parallel
from loopkit.transforms._expand import moved_out
from loopkit.transforms._uses import Given, Indices


def check_outer(
    kernel: Kernel, swept: Sequence[str], outer: str | Iterable[str] | None, argument: str
) -> None:
    """An error for what is given as loops around a copy, and is no iname or one that is swept."""
    for iname in inames_in(kernel, outer or ()):
        if iname in swept:
            raise InvalidArgumentError(
                f"'{iname}' is among {argument}, and swept: a copy that holds what is used for all "
                "its values is not filled for each of them",
                instead=f"leave '{iname}' out of one of the two",
            )


def also_swept(
    kernel: Kernel, uses: Sequence[Use], swept: tuple[str, ...], outer: str | Iterable[str] | None
) -> tuple[str, ...]:
    """The swept inames; with ``outer`` also the other sequential inames in the subscripts."""
    if outer is None:
        return swept
    moving = {n for use in uses for index in use.indices for n in variable_names(index)}
    moving -= {*swept, *names_in(outer)}
    return (*swept, *(i for i in kernel.all_inames if i in moving and not is_parallel(kernel, i)))


@dataclass(frozen=True, eq=False)
class Spanned:
    """A kernel whose rules are expanded where they are used, and the box that the ``uses`` span."""

    kernel: Kernel
    box: tuple[Axis, ...]
    uses: Sequence[Use]


def within_reach(
    kernel: Kernel,
    users: Collection[Statement],
    swept: Sequence[str],
    outer: str | Iterable[str] | None,
    spanned: Callable[[Kernel], Spanned],
    free: Collection[str] = (),
) -> tuple[Change, Spanned]:
    """The kernel with its loops reordered so that a copy can be filled, and its footprint.

    The names in the cells of the copy and the ``free`` names of its values must be constant while
    the ``swept`` inames run: their loops move outside of those.  If the caller gives ``outer``,
    exactly these loops are outside of all others.
    """
    found = spanned(kernel)
    order = moved_out(kernel, users, swept, outer, outer_names(found.box).union(free))
    return order, found if order.kernel is kernel else spanned(order.kernel)


def footprint(
    kernel: Kernel,
    found: Sequence[Use],
    swept: Sequence[str],
    subscripts: Given | None,
    name: str,
    what: str,
    shown: Callable[[Indices], Expression] | None = None,
) -> tuple[tuple[Axis, ...], Sequence[Use]]:
    """The box that uses span, or ``footprint_subscripts``, and those of the uses inside.

    ``shown`` is what errors call an access with given indices, if not one of ``name``.
    """
    if subscripts is None:
        return _uses.find_box(kernel, found, swept, what), found
    if not subscripts:
        raise InvalidArgumentError(
            "footprint_subscripts: a list of none spans nothing",
            instead="leave it out, or name a subscript, as in footprint_subscripts='i, j'",
        )
    rank = len(found[0].indices)
    spanning: list[Indices] = []
    more: dict[str, Range] = {}
    for indices in in_inames(kernel, found, subscripts) or ():
        if len(indices) != rank:
            given = ", ".join(":" if isinstance(i, slice) else to_text(i) for i in indices)
            raise InvalidArgumentError(
                f"footprint_subscripts: {name}[{given}] has "
                f"{counted(len(indices), 'index', 'indices')}, but '{name}' has "
                f"{counted(rank, 'axis', 'axes')}"
            )
        cells: list[Expression] = []
        for axis, index in enumerate(indices):
            if isinstance(index, slice):
                runs = hidden("slice", len(more))
                more[runs] = _slice_range(kernel, name, axis, index)
                index = prim.Variable(runs)
            cells.append(index)
        spanning.append(tuple(cells))
    uses = [
        use
        for cells in spanning
        for use in _uses.uses_of(kernel, _of(kernel, found, cells), name, [(cells, ())])
    ]
    if shown is not None:
        uses = [replace(use, text=to_text(shown(use.indices))) for use in uses]
    box = _uses.find_box(kernel, uses, swept, what, more)
    ranges = iname_ranges(kernel, swept)
    inside = [use for use in found if is_inside(use, box, ranges)]
    if not inside:
        raise IllegalTransformError(
            f"{what} would replace nothing: no access lies in the footprint of "
            "footprint_subscripts",
            instead="accesses are " + ", ".join(dict.fromkeys(use.text for use in found)),
        )
    return box, inside


def _of(kernel: Kernel, found: Sequence[Use], cells: Indices) -> Statement:
    """The first statement that has the inames of some cells; the first of all if none has."""
    names = {name for cell in cells for name in variable_names(cell)} & kernel.home_domain.keys()
    of_them = (use.statement for use in found if names <= use.statement.inames)
    return next(of_them, found[0].statement)


def in_inames(kernel: Kernel, found: Sequence[Use], subscripts: Given | None) -> Given | None:
    """Subscripts over the inames that uses have: those of the text may have been split."""
    if subscripts is None or not found:
        return subscripts
    split: dict[str, Expression] = {}
    for statement in {use.statement.id: use.statement for use in found}.values():
        split = {**_split_inames(kernel, statement), **split}

    def now(index: Expression | slice) -> Expression | slice:
        if not isinstance(index, slice):
            return substitute(index, split)
        start, stop = (
            None if e is None else substitute(e, split) for e in (index.start, index.stop)
        )
        return slice(start, stop)

    result = [tuple(map(now, indices)) for indices in subscripts]
    running = kernel.home_domain.keys() | kernel.integers
    known = running | kernel.arg_by_name.keys() | kernel.temporary_by_name.keys()
    known |= kernel.rule_by_name.keys()
    for index in (index for indices in result for index in indices):
        ends = (index.start, index.stop) if isinstance(index, slice) else (index,)
        for name in sorted(frozenset().union(*(variable_names(e) for e in ends if e is not None))):
            if name not in known:
                raise UnknownNameError("iname or size", name, running)
    return result


def _split_inames(kernel: Kernel, statement: Statement) -> dict[str, Expression]:
    """The inames of the text that a statement has no more, in terms of those that it has.

    One that only moves data, or computes a rule ahead, has those of the statements around it, where
    these agree.
    """
    lineage = lineage_of(kernel)
    told: dict[str, set[Expression]] = {}
    for other in kernel.statements:
        for iname, value in lineage.value_of(other.id).items():
            if variable_names(value) & kernel.home_domain.keys() <= statement.inames:
                told.setdefault(iname, set()).add(value)
    agreed = {iname: value for iname, (value, *others) in told.items() if not others}
    values = {**agreed, **lineage.value_of(statement.id)}
    return {i: e for i, e in values.items() if i not in kernel.home_domain}


def _slice_range(kernel: Kernel, name: str, axis: int, given: slice) -> Range:
    """How far a range of an axis runs; all of the axis where an end is left out."""
    shape = None if name in kernel.rule_by_name else kernel.array(name).shape
    end = given.stop if given.stop is not None else shape[axis] if shape is not None else None
    start = 0 if given.start is None else given.start
    for at in (start, end):
        if shape is not None and isinstance(at, (int, np.integer)) and at < 0:
            raise InvalidArgumentError(
                f"the range of axis {axis} of '{name}' begins or ends at {at}, and no index counts "
                "from behind",
                instead="the last element of n has the index n - 1",
            )
    try:
        lower, upper = linear(start), None if end is None else linear(end)
    except NotAffineError:
        upper = None
    if upper is None or not lower.same_terms(upper):
        raise IllegalTransformError(
            f"the range of axis {axis} of '{name}' has no constant length",
            instead="give both ends, as in 16*i_outer:16*i_outer + 16; or sweep an iname",
        )
    if upper.constant <= lower.constant:
        raise InvalidArgumentError(f"the range of axis {axis} of '{name}' is empty")
    return Range(lower, upper.constant - lower.constant - 1)
