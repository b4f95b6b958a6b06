"""Loopy's statistics, on the counts of costs: operations, memory accesses, synchronisation.

Counts are of single threads (*work items*) everywhere, and exact at any sizes: a count prints as
a polynomial of the sizes where it is one.  Arithmetic of subscripts is not counted, and an element
that a statement names twice is read once.
Of several launches each has keys of its own, with its name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._arguments import is_integer, unfit
from loopkit._arrays import strides_of, swizzles_of
from loopkit._budget import in_turn
from loopkit._cached import memoised
from loopkit._called import fitting
from loopkit._compat.count_maps import (
    Counted,
    CountGranularity,
    MemAccess,
    Op,
    Sizes,
    Sync,
    ToCountMap,
    count_map,
)
from loopkit._costs.accesses import Access, accesses_of, address_map, in_calls, space_of
from loopkit._costs.barrier_counts import barriers_of, kinds_of_barriers
from loopkit._costs.counting import UNCOUNTED
from loopkit._costs.counts import added, instances_at, kinds_of_operations, operations_at
from loopkit._costs.launched import Launched, launched
from loopkit._costs.values import SPACES
from loopkit._errors import InvalidArgumentError
from loopkit._expression import to_text
from loopkit._kernel import Kernel
from loopkit._linear import NotAffineError, linear, linear_sum
from loopkit._match import Match, matching
from loopkit._nodes import Expression
from loopkit._poly.integer_points import count
from loopkit._poly.model import Model
from loopkit._slabs import settled
from loopkit._spelling import shown

Ids = frozenset[str] | None

_NAMES = {"bitwise": "bw", "min": "maxmin", "max": "maxmin"}
_PLAIN = {"add", "mul", "div", "floordiv", "mod", "pow", "shift", "bw", "maxmin"} | {
    "compare",
    "select",
    "logical",
    "cast",
}


def _op_key(kernel: Kernel, kind: str, dtype: str) -> Op:
    name = _NAMES.get(kind, kind)
    name = name if name in _PLAIN else f"func:{name}"
    return Op(dtype, name, CountGranularity.WORKITEM, kernel.name)


_SINGLE = "it can be left out: single threads are counted"


def _checked(kernel: Kernel, subgroup_size: int | str | None, within: str | Match | None) -> Ids:
    """What is asked of is a kernel; the ids of the statements that match, None for all."""
    if not isinstance(kernel, Kernel):
        raise InvalidArgumentError(f"this takes a kernel, not {shown(kernel)}")
    is_count = is_integer(subgroup_size) and int(subgroup_size) > 0  # type: ignore[arg-type]
    if not (subgroup_size is None or subgroup_size == "guess" or is_count):
        raise unfit("subgroup_size", "a number above 0, 'guess' or None", subgroup_size, _SINGLE)
    return None if within is None else matching(settled(kernel), within)


def _among(model: Model, ids: Ids) -> list[str]:
    """The statements of a launch that are counted."""
    return [s.id for s in model.kernel.statements if ids is None or s.id in ids]


@memoised
def _operations(kernel: Kernel, sizes: Sizes, ids: Ids) -> Counted:
    found: list[tuple[Any, int | None]] = []
    for one in launched(kernel):
        model, at = one.model, dict(sizes)
        known = {n: instances_at(model, n, at, (), one.calls)[0] for n in _among(model, ids)}
        every = operations_at(model, known, at, one.calls)
        found += ((_op_key(one.kernel, *kind), times) for kind, times in every)
    return added(found)


@fitting
@in_turn
def get_op_map(
    kernel: Kernel,
    count_redundant_work: bool = False,
    subgroup_size: int | str | None = None,
    within: str | Match | None = None,
) -> ToCountMap:
    """How often threads do which operations: a map from :class:`Op` to counts.

    *count_redundant_work* and *subgroup_size* change nothing: single threads are counted, with
    all that they do.  *within* is a match string: only these statements.  Raises what lowering
    raises.
    """
    ids = _checked(kernel, subgroup_size, within)
    keys = (
        _op_key(one.kernel, *kind)
        for one in launched(kernel)
        for kind in kinds_of_operations(one.model, _among(one.model, ids))
    )
    return count_map(kernel, lambda k, at: _operations(k, at, ids), dict.fromkeys(keys))


@memoised
def _memory(kernel: Kernel, sizes: Sizes, ids: Ids) -> Counted:
    def times(one: Launched, access: Access) -> int | None:
        try:
            where = in_calls(address_map(one.model, access, dict(sizes)), one.calls)
            return count(where.domain, where.names, dict(sizes))
        except UNCOUNTED:
            return None

    every = _accesses(kernel, ids)
    return added((_access_key(one.model, access), times(one, access)) for one, access in every)


def _accesses(kernel: Kernel, ids: Ids) -> list[tuple[Launched, Access]]:
    return [
        (one, access)
        for one in launched(kernel)
        for access in accesses_of(one.model.kernel)
        if space_of(one.model.kernel, access.array) in SPACES
        and (ids is None or access.statement in ids)
    ]


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
    """How often threads access which arrays: a map from :class:`MemAccess` to counts.

    *count_redundant_work* and *subgroup_size* change nothing: single threads are counted, with
    all that they do.  *within* is a match string: only these statements.  ``knl.costs()`` says
    what warps make of that.  Raises what lowering raises.
    """
    ids = _checked(kernel, subgroup_size, within)
    keys = (_access_key(one.model, access) for one, access in _accesses(kernel, ids))
    return count_map(kernel, lambda k, at: _memory(k, at, ids), dict.fromkeys(keys))


@memoised
def _synchronisation(kernel: Kernel, sizes: Sizes) -> Counted:
    found: list[tuple[Any, int | None]] = []
    for one in launched(kernel):
        made, at = one.kernel.program(), dict(sizes)
        times = one.calls.counted(made.grid, at)[0] if one.calls.loops else 1
        found.append((Sync("kernel_launch", one.kernel.name), times))
        for barrier in barriers_of(one.kernel, at, made.grid, one.calls):
            key, each = _sync_key(one.kernel, of_warp=barrier.of_warp), barrier.per_thread
            found.append((key, None if each is None else each * times))
    return added(found)


def _sync_key(kernel: Kernel, *, of_warp: bool) -> Sync:
    return Sync("barrier_warp" if of_warp else "barrier_local", kernel.name)


@fitting
@in_turn
def get_synchronization_map(kernel: Kernel, subgroup_size: int | str | None = None) -> ToCountMap:
    """How often a thread waits: a map from :class:`Sync` to counts.

    Barriers are counted as one thread passes them; where threads pass different numbers, none is
    given, and ``knl.costs().barriers`` counts all.  *subgroup_size* changes nothing.  Raises what
    lowering raises.
    """
    _checked(kernel, subgroup_size, None)
    keys: list[Sync] = []
    for one in launched(kernel):
        waits = kinds_of_barriers(one.kernel)
        keys += [_sync_key(one.kernel, of_warp=of_warp) for of_warp in waits]
        keys.append(Sync("kernel_launch", one.kernel.name))
    return count_map(kernel, _synchronisation, dict.fromkeys(keys))
