"""The loops that the reference walks, where tags change the order of the tree.

Inames tagged ``ilp`` have no loops here: a statement is executed for all their values before the
next one.  The threads of a scan have: one thread after another goes on from the one before, in
loops around the statements that add and those that read what they have added, and the accumulator
is one for all of them.
"""

from __future__ import annotations

from dataclasses import replace

from loopkit._arrays import AddressSpace
from loopkit._collectives import ThreadScan, thread_scans
from loopkit._errors import LaunchError
from loopkit._kernel import Kernel
from loopkit._places import decide_address_spaces
from loopkit._tags import InstructionParallel
from loopkit._tree import Loop, Tree, rewrite_paths, statements_in


def loops_as_tagged(kernel: Kernel) -> Kernel:
    """The kernel without loops over ``ilp`` inames, and with loops over the threads of scans.

    Raises :class:`LaunchError` where all threads must come to something before one goes on.
    """
    side = {iname for iname, tag in kernel.tags if isinstance(tag, InstructionParallel)}
    if side:
        tree = rewrite_paths(
            kernel.tree, lambda _, path: tuple(k for k in path if k[0] not in side)
        )
        kernel = kernel.with_(tree=tree)
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
