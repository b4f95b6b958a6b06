"""Whether accesses lie in their arrays, and each cell of an array has a place of its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import Nested, Strided, TemporaryVariable, strides_of
from loopkit._check.schedule_check import Check
from loopkit._check.violation import Side, Violation
from loopkit._expression import to_text, variable_names
from loopkit._guarded import Guarded, guarded_reads
from loopkit._hidden import BASE, ONE, TWO, hidden, variable
from loopkit._nodes import Expression
from loopkit._poly.in_bounds import inside, outside
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, Undecided
from loopkit._same import Key, key_of
from loopkit._simplify import simplify


def check_bounds(check: Check, statement_id: str) -> None:
    """Report accesses of a statement that leave a temporary, or that a copy makes outside.

    Accesses to arguments that stand in the text were judged when the kernel
    was made; those that data decide are for the executors to catch.
    """
    new = check.new
    statement = new.statement[statement_id]
    is_copy = statement_id not in check.lineage.image_of
    at = Instance(statement_id, BASE)
    domain = new.domain(at) & check.lineage.sizes
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
                    end = f"which has {to_text(extent)} elements there"
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
    """Check that no two cells of an array with explicit strides or with padding overlap.

    A violation of kind ``"overlap"`` is reported.  Strides of arguments that are
    not constants are taken on trust, those of temporaries are undecided.
    """
    model = check.new
    array = model.kernel.temporary_by_name.get(name) or model.kernel.arg_by_name.get(name)
    tags = getattr(array, "dim_tags", None)
    shape = getattr(array, "shape", None)
    if array is None or not shape:
        return
    # Axes that are laid one into the other keep their cells apart, unless padding makes them less.
    shrunk = any(p < 0 for p in getattr(array, "padding", ()))
    if not shrunk and not any(isinstance(t, Strided) for t in tags or ()):
        return
    strides = strides_of(array)  # type: ignore[arg-type]
    words = [hidden("index", axis) for axis in range(len(shape))]
    cells = [[variable(word, label) for word in words] for label in (ONE, TWO)]
    both = model.kernel.assumptions.set
    try:
        for cell in cells:
            for index, extent in zip(cell, shape, strict=True):
                both = both & inside(index, extent)
    except _sets.NotAffineError:
        return
    places = (
        prim.Sum(tuple(prim.Product(factors) for factors in zip(strides, cell, strict=True)))
        for cell in cells
    )
    try:
        both = both & _sets.affine_equality(*places)
    except _sets.NotAffineError:
        if isinstance(array, TemporaryVariable) and not _is_nested(array):
            raise Undecided(
                f"whether two cells of '{name}' lie in the same place hangs on its strides",
                "strides that are numbers, or an order of axes (tag_array_axes), can be proven",
            ) from None
        return
    mine, its = map(tuple, cells)
    for one, two in zip(mine, its, strict=True):
        bad = both & _sets.condition_set(prim.Comparison(one, "<", two))
        if not bad.is_empty():
            side = Side(None, None)
            check.report(Violation("overlap", bad, side, array=name, cell=mine, written=its))
            return


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
