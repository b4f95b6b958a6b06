"""Copies of temporaries per thread or block, and the order of instances that tags require.

Inames tagged ``ilp`` have no loops here: a statement is executed for all of their values before the
next statement.  The threads of a scan run one after the other, as a loop around the statements that
add to the accumulator and those that read it; all threads share the accumulator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loopkit import _sets
from loopkit._arrays import AddressSpace, TemporaryVariable
from loopkit._collectives import ThreadScan, reduced_inames, scans_of, thread_scans
from loopkit._errors import InvalidArgumentError, LaunchError
from loopkit._expression import variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._kernel import Kernel, Statement
from loopkit._places import decide_address_spaces, space_of
from loopkit._points import range_in
from loopkit._tags import GroupAxis, InstructionParallel, LocalAuto, LocalAxis
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


Key = tuple[str, int | str]
_KINDS = ("g", "l", "ilp")


@dataclass(frozen=True)
class Axis:
    """A hardware axis: the inames that run along it, each with its first value."""

    key: Key
    extent: int
    first: Mapping[str, int]

    @property
    def outside(self) -> int | None:
        """The copy of statements without an iname of copies side by side, which have their own."""
        return self.extent if self.key[0] == "ilp" else None

    def iname_of(self, statement: Statement) -> str | None:
        """The iname by which a statement runs along the axis."""
        found = [i for i in self.first if i in statement.inames]
        return min(found) if found else None


def column_of(axis: Axis) -> str:
    """The name of a thread's place on an axis, for statements without an iname along it."""
    return hidden("axis", *axis.key)


def find_axes(kernel: Kernel, sizes: Mapping[str, int]) -> dict[Key, Axis]:
    """All axes that a kernel's tags name, blocks first."""
    keys: dict[Key, list[str]] = {}
    for iname, tag in kernel.tags:
        match tag:
            case GroupAxis() | LocalAxis():
                key: Key = (tag.spelling, tag.axis)
            case InstructionParallel() | LocalAuto():  # each value has its own copy
                key = ("ilp", iname)
            case _:
                continue
        keys.setdefault(key, []).append(iname)
    axes = {}
    for key in sorted(keys, key=lambda k: (_KINDS.index(k[0]), str(k[1]))):
        first: dict[str, int] = {}
        extent = 1  # statements without a coordinate on an axis that nothing runs along run once
        for iname in keys[key]:
            domain = _sets.at_values(kernel.domain_around([iname]), sizes)
            found = (0, -1) if domain.is_empty() else range_in(domain, iname)
            if found is None:
                raise InvalidArgumentError(f"iname '{iname}' is parallel, but unbounded")
            first[iname], last = found
            extent = max(extent, last - first[iname] + 1)
        axes[key] = Axis(key, extent, first)
    return axes


def copies_of(
    kernel: Kernel, temporary: TemporaryVariable, axes: Mapping[Key, Axis]
) -> tuple[Axis, ...]:
    """The axes along which a temporary exists several times."""
    space = space_of(kernel, temporary)
    if space is AddressSpace.GLOBAL:
        return ()
    writers = kernel.writers.get(temporary.name, ())
    indexing = {name for w in writers for index in w.write[1] for name in variable_names(index)}
    touching = (*writers, *kernel.readers.get(temporary.name, ()))
    # Along the threads of its reduction an accumulator is one: they combine what each has.
    updates = [w for w in writers if w.operation is not None and temporary.accumulates is not None]
    reduced = [i for w in updates for i in reduced_inames(kernel, w)]
    decided = decide_address_spaces(kernel) if temporary.is_running else kernel
    scanned = {i for scan in scans_of(decided, temporary.name) for i in scan.inames}
    found = []
    for axis in axes.values():
        kind = axis.key[0]
        if space is AddressSpace.LOCAL and kind != "g":
            continue
        inside = [s for s in touching if axis.iname_of(s) is not None]
        if scanned & axis.first.keys():  # they add to it one after another
            continue
        if not inside or (kind == "l" and not axis.first.keys().isdisjoint(reduced)):
            continue
        if kind == "ilp" and not (
            indexing.isdisjoint(axis.first) and any(axis.iname_of(w) for w in writers)
        ):
            continue
        found.append(axis)
    return tuple(found)
