"""Loopy's statistics, computed from the costs: operations, memory accesses, synchronisation.

All counts are per thread (*work item*) executions, and exact at any sizes: a count prints as a
polynomial of the sizes where it is one.  Index arithmetic is not counted, and an element that a
statement reads twice counts once.  If a kernel has several launches, each has keys of its own, with
its name.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._arguments import checked_kernel, is_integer, unfit
from loopkit._arrays import strides_of, swizzles_of
from loopkit._budget import in_turn
from loopkit._cached import memoised
from loopkit._called import fitting
from loopkit._compat.count_maps import (
    CountGranularity,
    MemAccess,
    Op,
    Sizes,
    Sync,
    Times,
    ToCountMap,
    count_map,
)
from loopkit._costs.accesses import Access, accesses_of, address_map, in_calls, space_of
from loopkit._costs.barrier_counts import barriers_of, kinds_of_barriers
from loopkit._costs.cost_values import SPACES
from loopkit._costs.counting import UNCOUNTED
from loopkit._costs.counts import instances_at, operations_in
from loopkit._costs.launch_counts import Calls, Launched, launched
from loopkit._costs.operation_counts import Operation
from loopkit._expression import to_text
from loopkit._guarded import Guards
from loopkit._kernel import Kernel
from loopkit._linear import NotAffineError, linear, linear_sum
from loopkit._match import Match, matching
from loopkit._nodes import Expression
from loopkit._poly.integer_points import count
from loopkit._poly.model import Model
from loopkit._slabs import settled

Ids = frozenset[str] | None

_NAMES = {"bitwise": "bw", "min": "maxmin", "max": "maxmin"}
_PLAIN = {"add", "mul", "div", "floordiv", "mod", "pow", "shift", "bw", "maxmin"} | {
    "compare",
    "select",
    "logical",
    "cast",
}


_SINGLE = "it can be left out: single threads are counted"


def _checked(kernel: Kernel, subgroup_size: int | str | None, within: str | Match | None) -> Ids:
    """What is asked of is a kernel; the ids of the statements that match, None for all."""
    checked_kernel(kernel)
    is_count = is_integer(subgroup_size) and int(subgroup_size) > 0  # type: ignore[arg-type]
    if not (subgroup_size is None or subgroup_size == "guess" or is_count):
        raise unfit("subgroup_size", "a number above 0, 'guess' or None", subgroup_size, _SINGLE)
    return None if within is None else matching(settled(kernel), within)


def _key(one: Launched, kind: str, dtype: str) -> Op:
    name = _NAMES.get(kind, kind)
    name = name if name in _PLAIN else f"func:{name}"
    return Op(dtype, name, CountGranularity.WORKITEM, one.kernel.name)


@memoised
def _instances(model: Model, calls: Calls, statement: str, guards: Guards, at: Sizes) -> int | None:
    return instances_at(model, statement, dict(at), guards, calls)[0]


def _kind_of(found: tuple[str, Operation]) -> tuple[str, str]:
    return found[1].kind, found[1].dtype


def _done(one: Launched, statement: str, operation: Operation, at: Sizes) -> int | None:
    """How often threads do an operation."""
    times = _instances(one.model, one.calls, statement, operation.guards, at)
    return None if times is None else operation.times * times


@fitting
@in_turn
def get_op_map(
    kernel: Kernel,
    count_redundant_work: bool = False,
    subgroup_size: int | str | None = None,
    within: str | Match | None = None,
) -> ToCountMap:
    """The operations of threads: a map from :class:`Op` to counts.

    *count_redundant_work* and *subgroup_size* change nothing: single threads are counted, with
    all that they do.  *within* is a match string: only these statements.  Raises what lowering
    raises.
    """
    ids = _checked(kernel, subgroup_size, within)
    return count_map(
        kernel,
        (
            (_key(one, o.kind, o.dtype), partial(_done, one, statement, o))
            for one in launched(kernel)
            for statement, o in sorted(operations_in(one.model), key=_kind_of)
            if ids is None or statement in ids
        ),
    )


@memoised
def _accessed(model: Model, calls: Calls, access: Access, at: Sizes) -> int | None:
    """How often threads access an array."""
    try:
        where = in_calls(address_map(model, access, dict(at)), calls)
        return count(where.domain, where.names, dict(at))
    except UNCOUNTED:
        return None


def _access_key(model: Model, access: Access) -> MemAccess:
    space = SPACES[space_of(model.kernel, access.array)]
    array = model.array(access.array)
    strides: dict[str, dict[int, Any]] = {"l": {}, "g": {}}
    for iname in model.statement[access.statement].inames:
        axis = model.axis_of(iname)
        if axis is not None and axis[0] in strides and isinstance(axis[1], int):
            # Along an axis that is swizzled no step is constant.
            moved = {swizzle.axis for swizzle in swizzles_of(array)}
            by_axis = (0 if n in moved else s for n, s in enumerate(strides_of(array)))
            step = _step(access.indices, tuple(by_axis), iname)
            if step != 0:
                strides[axis[0]][axis[1]] = step if isinstance(step, int) else to_text(step)
    return MemAccess(
        "local" if space == "shared" else "global",
        array.dtype,
        strides["l"],
        strides["g"],
        "store" if access.is_write else "load",
        access.array,
        None,
        CountGranularity.WORKITEM,
        model.kernel.name,
    )


def _step(
    indices: tuple[Expression, ...], strides: tuple[Expression, ...], iname: str
) -> Expression:
    """By how many elements an iname moves the address; 0 where that is no constant of sizes."""
    constant = 0
    terms: list[tuple[int, Expression]] = []
    for index, stride in zip(indices, strides, strict=True):
        try:
            coefficient = linear(index).terms.get(prim.Variable(iname), 0)
        except NotAffineError:
            continue
        if isinstance(stride, (int, np.integer)):
            constant += coefficient * int(stride)
        elif coefficient:
            terms.append((coefficient, stride))
    return linear_sum(terms, constant) if terms else constant


@fitting
@in_turn
def get_mem_access_map(
    kernel: Kernel,
    count_redundant_work: bool = False,
    subgroup_size: int | str | None = None,
    within: str | Match | None = None,
) -> ToCountMap:
    """The memory accesses of threads: a map from :class:`MemAccess` to counts.

    *count_redundant_work* and *subgroup_size* change nothing: single threads are counted, with
    all that they do.  *within* is a match string: only these statements.  ``knl.costs()`` says
    what warps make of that.  Raises what lowering raises.
    """
    ids = _checked(kernel, subgroup_size, within)
    return count_map(
        kernel,
        (
            (_access_key(one.model, access), partial(_accessed, one.model, one.calls, access))
            for one in launched(kernel)
            for access in accesses_of(one.model.kernel)
            if space_of(one.model.kernel, access.array) in SPACES
            and (ids is None or access.statement in ids)
        ),
    )


def _started(one: Launched, at: Sizes) -> int:
    """How often a call runs a launch."""
    return one.calls.counted(one.kernel.program().grid, dict(at))[0] if one.calls.loops else 1


def _passed(one: Launched, number: int, at: Sizes) -> int | None:
    """How often a thread passes a barrier, if all threads pass it as often."""
    each = barriers_of(one.kernel, dict(at), one.kernel.program().grid, one.calls)
    passed = each[number].per_thread
    return None if passed is None else passed * _started(one, at)


@fitting
@in_turn
def get_synchronization_map(kernel: Kernel, subgroup_size: int | str | None = None) -> ToCountMap:
    """The synchronisations of a thread: a map from :class:`Sync` to counts.

    Barriers are counted as one thread passes them; where threads pass different numbers, none is
    given, and ``knl.costs().barriers`` counts all.  *subgroup_size* changes nothing.  Raises what
    lowering raises.
    """
    _checked(kernel, subgroup_size, None)
    found: list[tuple[Sync, Times]] = []
    for one in launched(kernel):
        for number, of_warp in enumerate(kinds_of_barriers(one.kernel)):
            kind = "barrier_warp" if of_warp else "barrier_local"
            found.append((Sync(kind, one.kernel.name), partial(_passed, one, number)))
        found.append((Sync("kernel_launch", one.kernel.name), partial(_started, one)))
    return count_map(kernel, found)
