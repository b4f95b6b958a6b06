"""Reductions over blocks: an accumulator in global memory, to which they add atomically."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._arrays import AddressSpace
from loopkit._errors import IllegalTransformError
from loopkit._kernel import Kernel
from loopkit._launches import launch_of
from loopkit._make.reduction_operations import operations_of
from loopkit._nodes import Expression
from loopkit._simplify import simplify
from loopkit._tree import LaunchBarrier, build, entries_of
from loopkit.transforms._common import with_arrays, with_statements
from loopkit.transforms._expand import with_axes
from loopkit.transforms._loop_nests import extent
from loopkit.transforms._rule_uses import expand_rules_that_use


def added_atomically(kernel: Kernel, parts: Iterable[tuple[str, str]]) -> Kernel:
    """A kernel in which partial results are added to accumulators in global memory.

    ``parts`` are the statements between which partial results are made: the start of one, and
    the update that takes it.  Launches end in front of the first and behind the second.
    """
    for start, taking in parts:
        kernel = _with_launches(_in_global_memory(kernel, taking), start, taking)
    return kernel


def _in_global_memory(kernel: Kernel, taking: str) -> Kernel:
    """The accumulator has a cell for each value of the inames around its start.

    Loops around launches leave one for all iterations, which come one after another.
    """
    update = kernel.statement_by_id[taking]
    accumulator = kernel.temporary_by_name[update.written]
    name = accumulator.name
    every = [s.id for s in kernel.statements]
    kernel = expand_rules_that_use(kernel, name, every, in_reductions=True)
    if operations_of(kernel.reductions)[update.operation or ""].components:
        raise IllegalTransformError(
            f"'{name}' has several components, which nothing changes at once in memory",
            instead="split_reduction_outward, and a launch for the partial results of blocks",
        )
    users = kernel.users(name)
    starts = [s for s in users if s.kind == "init" and s.written == name]
    around = frozenset.intersection(*(s.inames for s in users))
    inames = [
        i for i in kernel.all_inames if i in around and i not in launch_of(kernel)[taking].loops
    ]
    if any(s.inames - around for s in starts):
        raise IllegalTransformError(
            f"what reads '{name}' is outside of loops that its start is in: it has no cell there"
        )
    lengths: list[Expression] = []
    cell: list[Expression] = []
    for iname in inames:
        found = extent(kernel, iname)
        if found is None:
            raise IllegalTransformError(
                f"'{name}' would have a cell for each '{iname}', and the number of these does not "
                "follow from the sizes"
            )
        lengths.append(found[1])
        cell.append(simplify(prim.Sum((prim.Variable(iname), prim.Product((-1, found[0]))))))
    moved = replace(
        accumulator, address_space=AddressSpace.GLOBAL, dim_tags=None, padding=(), swizzles=()
    )
    kernel = with_arrays(kernel, {name: moved})
    kernel = (
        with_axes(kernel, moved, lengths, {s.id: tuple(cell) for s in users}) if cell else kernel
    )
    changed = replace(kernel.statement_by_id[taking], kind="atomic")
    return with_statements(kernel, {taking: changed})


def _with_launches(kernel: Kernel, start: str, taking: str) -> Kernel:
    """Launches end in front of a statement and of what loads its bounds, and behind another one."""
    around = kernel.paths[taking][: len(launch_of(kernel)[taking].loops)]
    inames = frozenset().union(*(kernel.statement_by_id[id_].inames for id_ in (start, taking)))
    loads = {w.id for name in kernel.loaded_bounds(inames) for w in kernel.writers[name]}
    loads = {id_ for id_ in loads if len(kernel.paths[id_]) > len(around)}
    entries = [e for e in entries_of(kernel.tree) if e[0] not in loads]
    first = [leaf for leaf, _ in entries].index(start)
    entries[first:first] = [e for e in entries_of(kernel.tree) if e[0] in loads]
    ids = [leaf for leaf, _ in entries]
    for at in (ids.index(taking) + 1, first):
        barrier = LaunchBarrier(kernel.fresh_name("gbarrier"))
        if 0 < at < len(entries):
            entries.insert(at, (barrier, around))
        kernel = kernel.with_(tree=build(entries))
    return kernel
