"""Running reductions along threads: one thread after another, each going on from the one before.

The threads of a scan are loops here, around the statements that add and those that read what they
have added, and the accumulator is one for all of them.
"""

from __future__ import annotations

from dataclasses import replace

from loopkit._arrays import AddressSpace
from loopkit._collectives import ThreadScan, thread_scans
from loopkit._errors import LaunchError
from loopkit._kernel import Kernel
from loopkit._places import decide_address_spaces
from loopkit._tree import Loop, Tree, statements_in


def threads_in_turn(kernel: Kernel) -> Kernel:
    """The kernel with loops over the threads of each scan, around the statements of it.

    Raises :class:`LaunchError` where all threads must come to something before one goes on.
    """
    decided = decide_address_spaces(kernel)
    for scan in thread_scans(decided):
        kernel = kernel.with_(tree=_in_turn(decided, kernel.tree, scan))
    return kernel


def _in_turn(kernel: Kernel, nodes: Tree, scan: ThreadScan) -> Tree:
    inside = [frozenset(statements_in(node)) for node in nodes]
    for at, node in enumerate(nodes):
        if isinstance(node, Loop) and scan.statements <= inside[at]:
            body = _in_turn(kernel, node.body, scan)
            return (*nodes[:at], replace(node, body=body), *nodes[at + 1 :])
    places = [at for at, ids in enumerate(inside) if ids & scan.statements]
    first, last = places[0], places[-1] + 1
    for id_ in frozenset[str]().union(*inside[first:last]) - scan.statements:
        statement = kernel.statement_by_id[id_]
        to = kernel.temporary_by_name.get(statement.written)
        alone = to is not None and to.address_space is AddressSpace.PRIVATE
        if not alone or not statement.inames.issuperset(scan.inames):
            raise LaunchError(
                f"the reference runs one thread of a scan after another, and all must do '{id_}'",
                instead='executor("host") runs the source itself',
            )
    loops = nodes[first:last]
    for iname in reversed(scan.inames):
        loops = (Loop(iname, loops),)
    return (*nodes[:first], *loops, *nodes[last:])
