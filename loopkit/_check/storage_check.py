"""Whether every cell of an array has a place of its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import Nested, Strided, TemporaryVariable, strides_of
from loopkit._check.schedule_check import Check
from loopkit._check.violation import Side, Violation
from loopkit._hidden import ONE, TWO, hidden, variable
from loopkit._nodes import Expression
from loopkit._poly.in_bounds import inside
from loopkit._poly.pairs import Undecided
from loopkit._simplify import simplify


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
    both = model.kernel.assumptions.set
    places: list[Expression] = []
    for label in (ONE, TWO):
        terms: list[Expression] = []
        for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
            index = variable(hidden("index", axis), label)
            try:
                both = both & inside(index, extent)
            except _sets.NotAffineError:
                return
            terms.append(prim.Product((stride, index)))
        places.append(prim.Sum(tuple(terms)))
    try:
        both = both & _sets.affine_equality(*places)
    except _sets.NotAffineError:
        if isinstance(array, TemporaryVariable) and not _is_nested(array):
            raise Undecided(
                f"whether two cells of '{name}' lie in the same place hangs on its strides",
                "strides that are numbers, or an order of axes (tag_array_axes), can be proven",
            ) from None
        return
    for axis in range(len(shape)):
        one, two = (variable(hidden("index", axis), label) for label in (ONE, TWO))
        bad = both & _sets.condition_set(prim.Comparison(one, "<", two))
        if not bad.is_empty():
            cells = tuple(variable(hidden("index", axis), ONE) for axis in range(len(shape)))
            others = tuple(variable(hidden("index", axis), TWO) for axis in range(len(shape)))
            check.report(
                Violation("overlap", bad, Side(None, None), array=name, cell=cells, written=others)
            )
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
