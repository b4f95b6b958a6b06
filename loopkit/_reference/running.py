"""Running reductions along threads: one thread after another, each going on from the one before.

The threads of a scan are loops here, around the statements that add, and the accumulator exists
once per thread. What a thread has added, those behind it begin with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from loopkit._arrays import AddressSpace
from loopkit._collectives import ThreadScan, thread_scans
from loopkit._errors import LaunchError
from loopkit._kernel import Kernel
from loopkit._places import decide_address_spaces
from loopkit._reference.memory import Memory
from loopkit._reference.places import Axis, Key
from loopkit._tree import Loop, Tree, statements_in


class Running:
    """The accumulator of a running reduction, which each thread of a block of ``extents`` has."""

    def __init__(self, memory: Memory, extents: Sequence[int]) -> None:
        self.extents = extents
        count = prod(extents)
        self.cells = [part.reshape(count, -1) for part in (memory.data, memory.written)]
        self.last = 0

    def begin(self) -> None:
        """Each thread begins with what the last one has."""
        self.last = 0
        for cells in self.cells:
            cells[:] = cells[-1:].copy()

    def reach(self, *place: int) -> None:
        """A thread begins with what the last one that was reached has, and all between do."""
        thread = 0
        for index, extent in zip(place, self.extents, strict=True):
            thread = thread * extent + index
        for cells in self.cells if thread > self.last else ():
            cells[self.last + 1 : thread + 1] = cells[self.last]
        self.last = max(self.last, thread)

    def end(self) -> None:
        """Threads that were not reached have what the last one has."""
        self.reach(*(extent - 1 for extent in self.extents))


def axes_of_scans(kernel: Kernel, axes: Mapping[Key, Axis]) -> dict[str, tuple[Axis, ...]]:
    """The axes along which accumulators are scanned, the slowest first, by accumulator."""
    return {
        name: tuple(a for i in scan.inames for a in axes.values() if i in a.first)
        for scan in thread_scans(decide_address_spaces(kernel))
        for name in scan.accumulators
    }


def threads_in_turn(kernel: Kernel) -> Kernel:
    """The kernel with loops over the threads of each scan, around the statements that add.

    Raises :class:`LaunchError` where all threads must come to something before one goes on.
    """
    decided = decide_address_spaces(kernel)
    scans = thread_scans(decided)
    for scan in scans:
        others = frozenset[str]().union(*(s.statements for s in scans if s is not scan))
        kernel = kernel.with_(tree=_in_turn(decided, kernel.tree, scan, others))
    return kernel


def _in_turn(kernel: Kernel, nodes: Tree, scan: ThreadScan, others: frozenset[str]) -> Tree:
    inside = [frozenset(statements_in(node)) for node in nodes]
    for at, node in enumerate(nodes):
        if isinstance(node, Loop) and scan.statements <= inside[at]:
            body = _in_turn(kernel, node.body, scan, others)
            return (*nodes[:at], replace(node, body=body), *nodes[at + 1 :])

    def is_own(id_: str) -> bool:
        """Whether a thread can run a statement before another one has come to it."""
        statement = kernel.statement_by_id[id_]
        to = kernel.temporary_by_name.get(statement.written)
        alone = to is not None and to.address_space is AddressSpace.PRIVATE and id_ not in others
        return (alone or id_ in scan.updates) and statement.inames.issuperset(scan.inames)

    adding = [at for at, ids in enumerate(inside) if ids & scan.updates]
    first, last = adding[0], adding[-1] + 1
    if all(is_own(id_) for ids in inside[first:last] for id_ in ids):
        return (*nodes[:first], _around(scan, nodes[first:last]), *nodes[last:])
    added = [
        {kernel.statement_by_id[s].written for s in inside[at] & scan.updates} for at in adding
    ]
    if len(frozenset[str]().union(*added)) < sum(map(len, added)) or not all(
        is_own(id_) for at in adding for id_ in inside[at]
    ):
        raise LaunchError(
            "the reference executor runs the threads of a scan one after another, and here all "
            f"must come to '{nodes[first]}' first",
            instead='executor("host") runs the source itself',
        )
    return tuple(_around(scan, (n,)) if at in adding else n for at, n in enumerate(nodes))


def _around(scan: ThreadScan, nodes: Tree) -> Loop:
    for iname in reversed(scan.inames):
        nodes = (Loop(iname, nodes),)
    (loop,) = nodes
    assert isinstance(loop, Loop)
    return loop
