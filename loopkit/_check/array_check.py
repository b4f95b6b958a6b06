"""Whether accesses are in bounds, and distinct cells of an array have distinct addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import permutations

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import (
    ArrayArg,
    Nested,
    Strided,
    TemporaryVariable,
    storage_shape,
    strides_of,
    swizzles_of,
)
from loopkit._check.read_ahead import check_read_ahead
from loopkit._check.schedule_check import Check
from loopkit._check.violation import Side, Violation
from loopkit._errors import counted
from loopkit._expression import to_text, variable_names
from loopkit._guarded import Guarded, guarded_reads
from loopkit._hidden import BASE, ONE, TWO, hidden, variable
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, Undecided, inside, outside
from loopkit._poly.places import at_the_origin, places_of
from loopkit._same import Key, key_of
from loopkit._simplify import simplify


def check_bounds(check: Check, statement_id: str) -> None:
    """Report accesses to a temporary, and accesses by a copy, that are out of bounds.

    Accesses to arguments that are in the text were checked when the kernel was made; those that
    depend on data are checked by the executors.
    """
    new = check.new
    statement = new.statement[statement_id]
    is_copy = statement_id not in check.lineage.image_of
    if is_copy:
        check_read_ahead(check, statement_id)
    at = Instance(statement_id, BASE)
    domain = new.domain(at) & check.lineage.sizes
    if (facts := new.facts(at)) is not None:
        domain = domain & facts
    accesses: list[Guarded] = [(*statement.write, ())]
    accesses += [g for g in guarded_reads(statement) if g[0] in new.data]
    seen: set[Key] = set()
    for name, indices, guards in accesses:
        temporary = name in new.kernel.temporary_by_name
        key = key_of((name, indices, guards))
        if not indices or not (temporary or is_copy) or key in seen:
            continue
        seen.add(key)
        shape = new.array(name).shape
        if shape is None:
            continue
        where = domain & new.where_evaluated(guards, BASE)
        for index, extent in zip(indices, shape, strict=True):
            if variable_names(index) & new.data or _is_inside(new, index, extent):
                continue
            value = new.named(index, BASE)
            for is_below, there in outside(value, extent):
                bad = where & there
                if not bad.is_empty():
                    cell = tuple(new.named(i, BASE) for i in indices)
                    end = f"which has {counted(to_text(extent), 'element')} there"
                    detail = "before its first element" if is_below else end
                    side = check.side_of(at)
                    found = Violation("bounds", bad, side, array=name, cell=cell, detail=detail)
                    check.report(found)
                    return


def _is_inside(new: Model, index: Expression, extent: Expression) -> bool:
    """Whether an index is an iname whose values all lie in an axis of constant length."""
    if not (isinstance(index, prim.Variable) and isinstance(extent, (int, np.integer))):
        return False
    if index.name not in new.kernel.home_domain:
        return False
    low, high = new.kernel.range_of(index.name)
    return low is not None and high is not None and low >= 0 and high < int(extent)


def check_storage(check: Check, name: str) -> None:
    """Check that each cell of an array has an address of its own.

    Only explicit strides, padding and swizzles are checked; violations have kind ``"overlap"`` or
    ``"outside"``. Strides of arguments that are not constant are trusted, those of temporaries are
    undecided.
    """
    model = check.new
    array = model.kernel.temporary_by_name.get(name) or model.kernel.arg_by_name.get(name)
    tags = getattr(array, "dim_tags", None)
    shape = getattr(array, "shape", None)
    if not isinstance(array, (ArrayArg, TemporaryVariable)) or not shape:
        return
    # With nested strides, cells have distinct addresses unless padding makes strides smaller.
    shrunk = any(p < 0 for p in getattr(array, "padding", ()))
    swizzled = swizzles_of(array)
    if not (shrunk or swizzled) and not any(isinstance(t, Strided) for t in tags or ()):
        return
    words = [hidden("index", axis) for axis in range(len(shape))]
    cells = [[variable(word, label) for word in words] for label in (ONE, TWO)]
    try:
        if swizzled and _is_swizzled_wrongly(check, array, cells):
            return
        # What is swizzled lies where cells would that have its places for indices.
        extents = list(shape)
        for swizzle in swizzled:
            extents[swizzle.axis] = storage_shape(array)[swizzle.axis]
        both = reduce(isl.Set.intersect, (_within(check, cell, extents) for cell in cells))
    except _sets.NotAffineError:
        if swizzled:
            raise Undecided(
                f"whether all cells of '{name}' have different places depends on its extents",
                "extents that are numbers, or sums of sizes, can be proven",
            ) from None
        return
    if not shrunk and not any(isinstance(t, Strided) for t in tags or ()):
        return
    strides = strides_of(array)
    places = (
        prim.Sum(tuple(prim.Product(factors) for factors in zip(strides, cell, strict=True)))
        for cell in cells
    )
    try:
        both = both & _sets.affine_equality(*places)
    except _sets.NotAffineError:
        if isinstance(array, TemporaryVariable) and not _is_nested(array):
            raise Undecided(
                f"whether two cells of '{name}' lie in the same place depends on its strides",
                "strides that are numbers, or an order of axes (tag_array_axes), can be proven",
            ) from None
        return
    _report_overlap(check, name, both, cells)


Cells = Sequence[Sequence[Expression]]
"""The indices of two cells."""


def _is_swizzled_wrongly(check: Check, array: ArrayArg | TemporaryVariable, cells: Cells) -> bool:
    """Whether a swizzle maps a cell beyond its axis, or two cells to one; reports it.

    Raises :class:`~loopkit._linear.NotAffineError` if extents cannot be compared.
    """
    shape = array.shape or ()
    one, two = (places_of(array, cell, label) for cell, label in zip(cells, LABELS, strict=True))
    first = _within(check, cells[0], shape) & one.tied
    for swizzle in swizzles_of(array):
        extent = storage_shape(array)[swizzle.axis]
        beyond = prim.Comparison(one.along[swizzle.axis], ">=", extent)
        bad = first & _sets.condition_set(beyond)
        if not bad.is_empty():
            bad = _sets.project_out(bad, one.digits)
            detail = f"axis {swizzle.axis} has {to_text(extent)} places"
            found = Violation(
                "outside", bad, _NOBODY, array=array.name, cell=tuple(cells[0]), detail=detail
            )
            check.report(found)
            return True
    apart = at_the_origin(two, cells[1])
    if apart.is_empty():
        return False
    second, digits = _within(check, cells[1], shape), (*one.digits, *two.digits)
    origin = _sets.condition_set(
        prim.LogicalAnd(tuple(prim.Comparison(index, "==", 0) for index in cells[0]))
    )
    together = reduce(isl.Set.intersect, map(_sets.affine_equality, one.along, two.along))
    # The first cell and another one; then any two, which is harder to find out.
    return any(
        _report_overlap(check, array.name, pairs, cells, digits)
        for pairs in (origin & apart & second, first & second & two.tied & together)
    )


def _report_overlap(
    check: Check, name: str, together: isl.Set, cells: Cells, digits: Sequence[str] = ()
) -> bool:
    """Report different cells with a common address; returns whether there are any."""
    mine, its = map(tuple, cells)
    for one, two in zip(mine, its, strict=True):
        bad = together & _sets.condition_set(prim.Comparison(one, "<", two))
        if not bad.is_empty():
            bad = _sets.project_out(bad, digits)
            check.report(Violation("overlap", bad, _NOBODY, array=name, cell=mine, written=its))
            return True
    return False


def _within(check: Check, cell: Sequence[Expression], shape: Sequence[Expression]) -> isl.Set:
    """``{ indices, sizes : the cell lies in a box }``."""
    box = reduce(isl.Set.intersect, map(inside, cell, shape))
    return box & check.new.kernel.assumptions.set


_NOBODY = Side(None, None)
LABELS = (ONE, TWO)


def _is_nested(array: TemporaryVariable) -> bool:
    """Whether the strides are those of some order of the axes."""
    axes = range(len(array.shape))
    mine = [simplify(stride) for stride in strides_of(array)]
    for order in permutations(axes):
        tags = tuple(Nested(order.index(axis)) for axis in axes)
        plain = strides_of(replace(array, dim_tags=tags))
        if [simplify(stride) for stride in plain] == mine:
            return True
    return False
