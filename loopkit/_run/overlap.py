"""Check whether an array that a program writes overlaps another array, or itself.

Blocks run in any order, and the generated code requires that outputs do not overlap other arrays.
Where address ranges do not decide this, it is a question about integers within bounds: NumPy
answers easy cases, and isl all others, within a budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import islpy as isl
import numpy as np

from loopkit import _budget
from loopkit._errors import InvalidArgumentError, LaunchError
from loopkit._run.arrays import ArrayInfo, Layout, as_if_here

if TYPE_CHECKING:
    from loopkit._run.plan import ArgumentPlan

#: A stride, and the first and the last value of what it is multiplied by.
Term = tuple[int, int, int]


def reaching(terms: Sequence[Term], low: int, high: int) -> list[int] | None:
    """The first integer factors within bounds for which the sum of terms is in ``[low, high]``.

    None if there are none.  Raises :class:`SpentError` where isl cannot decide within its budget.
    """
    names = [f"d{i}" for i in range(len(terms))]
    bounds = [f"{first} <= {n} <= {last}" for n, (_, first, last) in zip(names, terms, strict=True)]
    total = " + ".join(f"{step}*{n}" for n, (step, _, _) in zip(names, terms, strict=True))
    conditions = " and ".join([*bounds, f"{low} <= {total or 0} <= {high}"])
    with _budget.at_most(_budget.OVERLAP):
        found = isl.Set(f"{{ [{', '.join(names)}] : {conditions} }}")
        if found.is_empty():
            return None
        point = found.lexmin().sample_point()
        values = [point.get_coordinate_val(isl.dim_type.set, i) for i in range(len(names))]
        return [int(value.to_python()) for value in values]


def overlaps(a: ArrayInfo, b: ArrayInfo) -> bool:
    """Whether an element of ``a`` and one of ``b`` share a byte."""
    if a.size == 0 or b.size == 0:
        return False
    (a_low, a_high), (b_low, b_high) = a.byte_range(), b.byte_range()
    if a_high <= b_low or b_high <= a_low:
        return False
    work: Any = _budget.OVERLAP_NUMPY
    try:
        one, other = (
            as_if_here(i.shape, f"|V{i.dtype.itemsize}", i.pointer, i.byte_strides) for i in (a, b)
        )
        return bool(np.shares_memory(one, other, work))
    except np.exceptions.TooHardError:
        terms = [*_terms(a, 1), *_terms(b, -1)]
        distance, a_size, b_size = b.pointer - a.pointer, a.dtype.itemsize, b.dtype.itemsize
        return reaching(terms, distance - a_size + 1, distance + b_size - 1) is not None


def _terms(info: ArrayInfo, sign: int) -> list[Term]:
    return [
        (sign * stride, 0, extent - 1)
        for extent, stride in zip(info.shape, info.byte_strides, strict=True)
        if extent > 1 and stride
    ]


def same_place(shape: Sequence[int], strides: Sequence[int]) -> tuple[list[int], list[int]] | None:
    """Two elements of an array that are one place in memory; None if there are none.

    Raises :class:`SpentError` where isl cannot say within its budget.
    """
    if 0 in shape or _is_nested(shape, strides):
        return None
    axes = [axis for axis, extent in enumerate(shape) if extent > 1]
    for number, axis in enumerate(axes):
        # The first axis along which they differ; they may do so by either sign along the rest.
        terms = [(strides[axis], 1, shape[axis] - 1)]
        terms += [(strides[a], 1 - shape[a], shape[a] - 1) for a in axes[number + 1 :]]
        found = reaching(terms, 0, 0)
        if found is not None:
            apart = dict(zip(axes[number:], found, strict=True))
            steps = [apart.get(a, 0) for a in range(len(shape))]
            return [max(-step, 0) for step in steps], [max(step, 0) for step in steps]
    return None


def _is_nested(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether each axis steps over the whole extent of the axes with smaller strides, as usual."""
    reach = 0
    for stride, extent in sorted(
        (abs(stride), extent) for extent, stride in zip(shape, strides, strict=True) if extent > 1
    ):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


def apart_from(plan: ArgumentPlan, arrays: Mapping[str, ArrayInfo], name: str) -> list[str]:
    """The arrays that the output ``name`` must not overlap; each pair is listed once."""
    outputs = plan.outputs
    return [n for n in arrays if n != name and not (n in outputs and n < name)]


def check(
    plan: ArgumentPlan, arrays: Mapping[str, ArrayInfo], layouts: Mapping[str, Layout]
) -> None:
    """Refuse arrays that are written and may not be, or share memory with themselves or others."""
    for name in plan.outputs:
        written = arrays.get(name)
        if written is None:
            _check_made(plan, name, layouts[name])
        elif not written.kind.immutable:
            if written.readonly:
                raise InvalidArgumentError(f"{name} is read-only, but {plan.name} writes it")
            layout = Layout(written.shape, written.strides)
            _check_alone(plan, name, layout, name, "pass a copy of it")
            for other in apart_from(plan, arrays, name):
                if arrays[other].location == written.location:
                    _check_apart(plan, name, written, other, arrays[other])


def _check_made(plan: ArgumentPlan, name: str, layout: Layout) -> None:
    """The strides of what the call makes may be sizes, too."""
    instead = f"pass other sizes, or {name}=..."
    if layout.before:
        raise InvalidArgumentError(
            f"{name} cannot be made: its strides are {layout.strides} elements, and of what a call "
            "makes none is negative",
            instead=instead,
        )
    _check_alone(plan, name, layout, f"{name} cannot be made", instead)


def _check_alone(plan: ArgumentPlan, name: str, layout: Layout, what: str, instead: str) -> None:
    """Refuse what is written and has elements in one place, or where that cannot be decided."""
    try:
        found = same_place(layout.shape, layout.strides)
        if found is None:
            return
        one, other = (f"{name}[{', '.join(map(str, index))}]" for index in found)
        why = f"{one} and {other} are the same place in memory, but {plan.name} writes them"
    except _budget.SpentError:
        why = "whether elements of it share a place in memory could not be decided within "
        why += f"{_budget.OVERLAP} steps"
    raise InvalidArgumentError(
        f"{what}: {why}: its shape is {tuple(layout.shape)}, its strides are "
        f"{tuple(layout.strides)} elements",
        instead=instead,
    )


def _check_apart(
    plan: ArgumentPlan, name: str, written: ArrayInfo, other: str, info: ArrayInfo
) -> None:
    why = f"but {plan.name} writes {name}, and its code relies on them not overlapping"
    instead = f"pass a copy of {other}, or another array for {name}"
    try:
        if overlaps(written, info):
            raise LaunchError(f"{name} shares memory with {other}, {why}", instead=instead)
    except _budget.SpentError:
        raise LaunchError(
            f"whether {name} shares memory with {other} could not be decided within "
            f"{_budget.OVERLAP} steps, {why}",
            instead=instead,
        ) from None
