"""Whether every cell of an array has a place of its own."""

from __future__ import annotations

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import Strided, strides_of
from loopkit._check.flow import Flow
from loopkit._check.violation import Side, Violation
from loopkit._nodes import Expression

_ONE, _TWO = "_one", "_two"


def check_storage(flow: Flow, name: str) -> None:
    """Check that no two cells of an array with explicit strides overlap.

    A violation of kind ``"overlap"`` is reported.  Strides that are not
    constants are taken on trust.
    """
    model = flow.new
    array = model.kernel.temporary_by_name.get(name) or model.kernel.arg_by_name.get(name)
    tags = getattr(array, "dim_tags", None)
    shape = getattr(array, "shape", None)
    if array is None or tags is None or not shape:
        return
    if not any(isinstance(t, Strided) for t in tags):
        return
    strides = strides_of(array)  # type: ignore[arg-type]
    both = model.kernel.assumptions.set
    places: list[Expression] = []
    for suffix in (_ONE, _TWO):
        terms: list[Expression] = []
        for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
            index = prim.Variable(f"_i{axis}{suffix}")
            inside = (prim.Comparison(index, ">=", 0), prim.Comparison(index, "<", extent))
            try:
                both = both & _sets.condition_set(prim.LogicalAnd(inside))
            except _sets.NotAffineError:
                return
            terms.append(prim.Product((stride, index)))
        places.append(prim.Sum(tuple(terms)))
    try:
        both = both & _sets.affine_equality(*places)
    except _sets.NotAffineError:
        return
    for axis in range(len(shape)):
        one, two = (prim.Variable(f"_i{axis}{s}") for s in (_ONE, _TWO))
        bad = both & _sets.condition_set(prim.Comparison(one, "<", two))
        if not bad.is_empty():
            cells = tuple(prim.Variable(f"_i{axis}{_ONE}") for axis in range(len(shape)))
            others = tuple(prim.Variable(f"_i{axis}{_TWO}") for axis in range(len(shape)))
            flow.report(
                Violation("overlap", bad, Side(None, None), array=name, cell=cells, written=others)
            )
            return
