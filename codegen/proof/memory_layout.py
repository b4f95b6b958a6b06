"""Proof that shared arrays do not overlap, and that allocations are large enough."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod

import numpy as np

from loopkit._algebra.polynomials import minus, plus, times
from loopkit._algebra.terms import ONE, ZERO
from loopkit._arrays import TemporaryVariable, storage_shape, strides_of, swizzles_of
from loopkit._errors import counted
from loopkit._nodes import Expression
from loopkit._places import shared_storage
from loopkit._program import ArrayParam
from loopkit._promotion import dtype_name
from loopkit.codegen.c.tree import Declaration
from loopkit.codegen.c.types import TYPES
from loopkit.codegen.proof.forms import Form, is_affine, number_in, value_at
from loopkit.codegen.proof.recorder import Recorder
from loopkit.codegen.proof.spaces import at_most
from loopkit.codegen.proof.subject import Subject


def check_layout(subject: Subject, recorder: Recorder) -> None:
    """Compare the places of shared arrays, and what a call allocates or asks for."""
    shared = [d for d in subject.names.declarations.values() if d.space == "shared"]
    _side_by_side(subject, recorder, [d for d in shared if d.offset is not None])
    _static(subject, recorder, [d for d in shared if d.offset is None])
    for temporary in subject.kernel.temporaries:
        if swizzles_of(temporary) and temporary.name in subject.names.declarations:
            _swizzled(subject, recorder, temporary)
    for param in subject.program.params:
        if isinstance(param, ArrayParam):
            with recorder.question("memory", f"whether '{param.name}' is as large as it must be"):
                _allocated(subject, recorder, param)


def _swizzled(subject: Subject, recorder: Recorder, array: TemporaryVariable) -> None:
    """Check that a swizzle maps the cells of an array to distinct cells of it, by enumeration.

    The proof relies on this where it compares cells instead of subscripts.
    """
    line = subject.names.declarations[array.name].line
    extents = (array.shape, storage_shape(array), strides_of(array))
    if not all(isinstance(n, (int, np.integer)) for numbers in extents for n in numbers):
        recorder.open(
            "memory", f"whether the cells of '{array.name}' have different places", line=line
        )
        return
    shape, room, strides = (tuple(map(int, numbers)) for numbers in extents)
    if prod(shape) > _MOST_CELLS:
        recorder.open(
            "memory", f"whether the {prod(shape)} cells of '{array.name}' have different places"
        )
        return
    cells = np.indices(shape).reshape(len(shape), -1)
    places = cells.copy()
    for swizzle in swizzles_of(array):
        digits = cells[swizzle.by] >> swizzle.skip & (1 << swizzle.bits) - 1
        places[swizzle.axis] = cells[swizzle.axis] ^ digits << swizzle.base
    beyond = (places >= np.array(room)[:, None]).any(axis=0)
    if beyond.any():
        cell = tuple(cells[:, beyond.argmax()].tolist())
        what = f"the swizzle of '{array.name}' leaves cell {list(cell)} no place"
        recorder.wrong("memory", what, line, array=array.name)
        return
    elements = np.array(strides) @ places
    order = np.argsort(elements, kind="stable")
    same = np.flatnonzero(elements[order][1:] == elements[order][:-1])
    if len(same):
        one, two = (cells[:, order[same[0] + n]].tolist() for n in (0, 1))
        what = f"cells {one} and {two} of '{array.name}' have one place"
        recorder.wrong("memory", what, line, array=array.name)


_MOST_CELLS = 1 << 22
"""More than any block's memory holds."""


def _side_by_side(subject: Subject, recorder: Recorder, arrays: list[Declaration]) -> None:
    """Check that arrays in dynamic shared memory neither overlap nor exceed it.

    Arrays in one storage may overlap.
    """
    together = shared_storage(subject.kernel)
    placed = []
    for one in arrays:
        bytes_ = _bytes(subject, one)
        if bytes_ is None or one.offset is None:
            recorder.open("memory", f"how large '{one.name}' is", line=one.line)
            continue
        placed.append((one.offset, one.offset + bytes_, one))
        item = TYPES[one.ctype].itemsize
        if one.offset % item or (subject.function.alignment or 0) % item:
            what = f"'{one.name}' begins at byte {one.offset} of memory that lies at multiples of "
            what += f"{subject.function.alignment}: {one.ctype} must lie at multiples of {item}"
            recorder.wrong("memory", what, one.line, array=one.name)
    placed.sort(key=lambda p: p[:2])
    for (_, end, last), (start, stop, one) in combinations(placed, 2):
        if start < end and stop > start and one.name not in together.get(last.name, ()):
            what = f"'{one.name}' begins at byte {start} of shared memory, but '{last.name}' ends "
            what += f"at byte {end}"
            recorder.wrong("memory", what, one.line, array=one.name)
    for _, stop, one in placed:
        if stop > subject.program.dynamic_shared:
            what = f"'{one.name}' ends at byte {stop} of shared memory, but a launch asks for "
            what += str(subject.program.dynamic_shared)
            recorder.wrong("memory", what, one.line, array=one.name)


def _static(subject: Subject, recorder: Recorder, arrays: list[Declaration]) -> None:
    """What the launch says of static shared memory is not less than what the text declares."""
    total = sum(
        prod(extent or 1 for extent in one.dimensions) * TYPES[one.ctype].itemsize for one in arrays
    )
    if total > subject.program.static_shared:
        what = f"the text declares {total} bytes of shared memory, but the launch reckons with "
        what += str(subject.program.static_shared)
        recorder.wrong("memory", what, arrays[0].line, array=arrays[0].name)


def _bytes(subject: Subject, one: Declaration) -> int | None:
    """The number of bytes that a shared array's elements span in the text's layout."""
    held = subject.held(one.name)
    if not isinstance(held, TemporaryVariable):
        return None
    count = number_in(span(subject, storage_shape(held), strides_of(held)))
    row = prod(extent or 1 for extent in one.dimensions[1:])
    # Only whole rows are ever declared.
    return None if count is None else -(-count // row) * row * TYPES[one.ctype].itemsize


def _allocated(subject: Subject, recorder: Recorder, param: ArrayParam) -> None:
    """What a call allocates for a temporary is enough for the elements that the kernel has."""
    held = subject.held(param.name)
    if not isinstance(held, TemporaryVariable):
        return
    line = next((p.line for p in subject.function.parameters if p.name == param.name), 0)
    if held.dtype is not None and np.dtype(param.dtype).itemsize < held.dtype.itemsize:
        what = f"calls allocate {dtype_name(param.dtype)} for '{param.name}', which holds "
        what += dtype_name(held.dtype)
        recorder.wrong("memory", what, line, array=param.name)
    # Elements of the padding are never touched.
    due = span(subject, held.shape, strides_of(held))
    lacking = minus(due, span(subject, param.shape, param.strides))
    if (number_in(lacking) or 1) <= 0 or lacking is ZERO:
        return
    where = subject.admitted
    if is_affine(lacking):
        where = where & subject.space.where(at_most(ONE, lacking))
        if where.is_empty():
            return
    for there in (*subject.with_larger_sizes(where), where):
        point = recorder.point(there, subject.sizes)
        count = value_at(lacking, point)
        if count > 0:
            what = f"calls allocate {counted(str(count), 'element')} too few for '{param.name}'"
            sizes = subject.sizes_at(point)
            recorder.wrong("memory", what, line, array=param.name, sizes=sizes)
            return
    recorder.open("memory", f"whether calls allocate enough for '{param.name}'", line=line)


def span(subject: Subject, shape: Sequence[Expression], strides: Sequence[Expression]) -> Form:
    """How many elements lie between the first and the last one, both included."""
    total = ONE
    for extent, stride in zip(shape, strides, strict=True):
        last = minus(subject.meaning.form(extent), ONE)
        total = plus(total, times(last, subject.meaning.form(stride)))
    return total
