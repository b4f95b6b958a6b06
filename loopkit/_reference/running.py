"""Running reductions along threads: one thread after another, each going on from the one before.

The threads of a scan are loops here, around the statements that add, and the accumulator exists
once per thread. What a thread has added, those behind it begin with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from loopkit._arrays import AddressSpace
from loopkit._collectives import ThreadScan, thread_scans
from loopkit._errors import LaunchError
from loopkit._kernel import Kernel
from loopkit._places import decide_address_spaces
from loopkit._reference.memory import Memory
from loopkit._reference.places import Axis, Key
from loopkit._tree import Loop, Tree, statements_in


class Running:
    """The accumulator of a running reduction, which each thread along some axes has."""

    def __init__(self, memory: Memory, axes: Sequence[Axis]) -> None:
        self.extents = [a.extent for a in axes]
        count = int(np.prod(self.extents))
        self.cells = [part.reshape(count, -1) for part in (memory.data, memory.written)]

    def begin(self) -> None:
        """Each thread begins with what the last one has."""
        for cells in self.cells:
            cells[:] = cells[-1].copy()

    def pass_on(self, *place: int) -> None:
        """The threads behind one of them have what it has."""
        thread = int(np.ravel_multi_index(place, self.extents))
        for cells in self.cells:
            cells[thread + 1 :] = cells[thread]


def axes_of_scans(kernel: Kernel, axes: Mapping[Key, Axis]) -> dict[str, tuple[Axis, ...]]:
    """The axes along which accumulators are scanned, the slowest first, by accumulator."""
    return {
        name: tuple(a for i in scan.inames for a in axes.values() if i in a.first)
        for scan in thread_scans(decide_address_spaces(kernel))
        for name in scan.accumulators
    }


def threads_in_turn(kernel: Kernel) -> tuple[Kernel, dict[str, tuple[str, ...]]]:
    """The kernel with loops over the threads of each scan, around the statements that add.

    With the accumulators of each outermost of these loops, by its iname.  Raises
    :class:`LaunchError` where all threads must come to something before one goes on.
    """
    decided, started = decide_address_spaces(kernel), dict[str, tuple[str, ...]]()
    for scan in thread_scans(decided):
        kernel = kernel.with_(tree=_in_turn(decided, kernel.tree, scan))
        first = scan.inames[0]
        started[first] = (*started.get(first, ()), *scan.accumulators)
    return kernel, started


def _in_turn(kernel: Kernel, nodes: Tree, scan: ThreadScan) -> Tree:
    inside = [frozenset(statements_in(node)) for node in nodes]
    for at, node in enumerate(nodes):
        if isinstance(node, Loop) and scan.statements <= inside[at]:
            body = _in_turn(kernel, node.body, scan)
            return (*nodes[:at], replace(node, body=body), *nodes[at + 1 :])
    adding = [at for at, ids in enumerate(inside) if ids & scan.updates]
    first, last = adding[0], adding[-1] + 1
    for id_ in frozenset[str]().union(*inside[first:last]) - scan.updates:
        statement = kernel.statement_by_id[id_]
        to = kernel.temporary_by_name.get(statement.written)
        alone = to is not None and to.address_space is AddressSpace.PRIVATE
        if not alone or not statement.inames.issuperset(scan.inames) or id_ in scan.readers:
            raise LaunchError(
                f"the reference runs one thread of a scan after another, and all must do '{id_}'",
                instead='executor("host") runs the source itself',
            )
    loops = nodes[first:last]
    for iname in reversed(scan.inames):
        loops = (Loop(iname, loops),)
    return (*nodes[:first], *loops, *nodes[last:])
