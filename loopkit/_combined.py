"""The kernel with explicit statements that combine partial results across threads.

A combination comes after the updates of an accumulator and before the statements that read it.
All threads of the block execute it.
"""

from __future__ import annotations

from dataclasses import replace

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import memoised
from loopkit._collectives import (
    COMBINE,
    adds_to,
    combined_axes,
    reduced_inames,
    reduction_text,
    scanned_blocks,
    scans_of,
)
from loopkit._determined import determined_by
from loopkit._errors import IllegalTransformError
from loopkit._expression import to_text, variable_names
from loopkit._kernel import Kernel, Statement
from loopkit._same import key_of
from loopkit._scan_places import placed_scan
from loopkit._tags import GroupAxis, InstructionParallel, LocalAuto, LocalAxis
from loopkit._tree import (
    Entry,
    Loop,
    Path,
    Tree,
    build,
    common_prefix,
    entries_of,
    path_inames,
    statements_in,
)
from loopkit._uniform import spares

_READ_BY_THREADS = "a running reduction that is read on the threads that add to it;"


@memoised
def with_combinations(kernel: Kernel) -> Kernel:
    """The kernel with a statement for each combination, in the tree where threads make it.

    It stands behind the updates, in front of what reads them, and runs once for each start of
    its accumulator.  Raises :class:`IllegalTransformError` where an accumulator is read in the
    midst of its updates.
    """
    for name in combined_axes(kernel):
        kernel = _started(kernel, name)
        scans = scans_of(kernel, name)
        for number in range(len(scans)):  # what stands where changes with each
            kernel = placed_scan(kernel, name, scans_of(kernel, name)[number])
        if not scans:
            if blocks := scanned_blocks(kernel, name):
                raise IllegalTransformError(
                    f"blocks along g.{blocks[0]} hold parts of '{name}', and its reader does not "
                    "run on all of these blocks and threads",
                    instead="a running reduction that is read on the blocks that add to it",
                )
            updates = [s for s in kernel.writers[name] if adds_to(s, name)]
            if any(s.operation is None for s in updates):
                raise _in_order(kernel, updates[0])
            kernel = _Placement(kernel, name).kernel_with()
    return kernel


def _started(kernel: Kernel, name: str) -> Kernel:
    """The kernel, in which all threads start an accumulator, whatever their data say.

    Nothing sees what is started in vain if all that uses the accumulator is under the same
    conditions, below its start in the same iteration of the loops around it.
    """
    start, *users = [s for s in kernel.statements if name in s.names]
    path = kernel.paths[start.id]
    is_plain = start.kind == "init" and not (variable_names(start.rhs) or name in kernel.bounding)
    inside = (s.kind != "init" and kernel.paths[s.id][: len(path)] == path for s in users)
    if not start.predicates or not is_plain or not all(inside):
        return kernel
    common = frozenset.intersection(*(frozenset(map(key_of, s.predicates)) for s in users))
    kept = (p for p in start.predicates if key_of(p) not in common or not spares(kernel, p, name))
    started = {start.id: replace(start, predicates=tuple(kept))}
    return kernel.with_(statements=tuple(started.get(s.id, s) for s in kernel.statements))


def _in_order(kernel: Kernel, update: Statement) -> IllegalTransformError:
    """The error for a combination of updates that must run in order."""
    return IllegalTransformError(
        f"threads hold parts of '{to_text(update.lhs)}', a {reduction_text(kernel, update)}, and "
        "its reader does not run on all of them",
        instead=f"{_READ_BY_THREADS} or the thread axis a sequential loop",
    )


class _Placement:
    """The positions of the combinations of one accumulator."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self.kernel = kernel
        self.name = name
        self.updates = {s.id for s in kernel.writers[name] if s.operation is not None}
        self.starts = {s.id for s in kernel.writers[name] if s.kind == "init"}
        self.readers = {s.id for s in kernel.readers.get(name, ())} - self.updates
        self.open: set[str] = set()  # updates without a combination yet
        self.made: list[Statement] = []

    def kernel_with(self) -> Kernel:
        entries = [*self.behind(self.kernel.tree, entries_of(self.kernel.tree), ())]
        statements = (*self.kernel.statements, *self.made)
        return self.kernel.with_(tree=build(entries), statements=statements)

    def behind(self, nodes: Tree, entries: list[Entry], path: Path) -> list[Entry]:
        """The entries of a body's statements, and those of combinations behind the last updates."""
        found: list[Entry] = []
        position = 0
        is_open, is_whole = False, False  # updates without a combination; a combination was made
        last, latest = 0, ""  # where the last updates end, and one of them
        was_read = False
        for node in nodes:
            inside = set(statements_in(node))
            mine = entries[position : position + len(entries_of((node,)))]
            position += len(mine)
            updates, reads = inside & self.updates, inside & self.readers
            is_whole = is_whole and self.starts.isdisjoint(inside)
            latest = max(updates, default=latest)
            if updates and reads:
                assert isinstance(node, Loop)
                key = mine[0][1][len(path)]
                if is_open or is_whole or key[0] in self.reduced(latest):
                    raise self.amid(key[0])
                mine = self.behind(node.body, mine, (*path, key))
            elif updates:
                if is_whole:
                    raise self.amid(None)
                is_open, last = True, len(found) + len(mine)
                self.open |= updates
            elif reads and is_open:
                found.insert(last, self.combination(path, latest))
                is_open, is_whole = False, True
                self.open.clear()
            was_read = was_read or bool(reads)
            found += mine
        if is_open and was_read and path:
            raise self.amid(path[-1][0])
        return found

    def reduced(self, update: str) -> frozenset[str]:
        """The inames that an update runs over; its other inames distinguish the updated cells."""
        return reduced_inames(self.kernel, self.kernel.statement_by_id[update])

    def combination(self, path: Path, updated: str) -> Entry:
        """A combination in some loops, and in others: each cell that was updated, and once.

        The others are those of an update that it does not run over, or else those of the start.
        """
        taken = [s.id for s in self.made]
        update, reduced = self.kernel.statement_by_id[updated], self.reduced(updated)
        # All threads come to it, whatever their data say; what reads it asks them.
        asked = (p for p in update.predicates if not spares(self.kernel, p, self.name))
        predicates = tuple(p for p in asked if reduced.isdisjoint(variable_names(p)))
        statement = replace(
            update,
            id=self.kernel.fresh_name(f"{self.name}_{COMBINE}", taken),
            rhs=update.lhs,
            inames=update.inames - reduced,
            predicates=predicates,
            operation=None,
            kind=COMBINE,
            depends_on=frozenset(),
            made_by=self.kernel.temporary_by_name[self.name].made_by,
        )
        loops = self.kernel.paths[updated]
        if not (self.is_of_all(statement, updated) and self.is_once(statement, path)):
            start = self.kernel.statement_by_id[min(self.starts)]
            loops = self.kernel.paths[start.id]
            cell, inames, predicates = start.lhs, start.inames, start.predicates
            statement = replace(statement, lhs=cell, rhs=cell, inames=inames, predicates=predicates)
            is_there = self.starts == {start.id} and loops[: len(path)] == path
            if not (is_there and self.is_once(statement, path)):
                raise self.repeated(update)
        # For these sizes, nothing may have been started.
        starts = [self.kernel.statement_by_id[s].predicates for s in self.starts]
        started = starts[0] if len(starts) == 1 else ()
        of_sizes = (p for p in started if variable_names(p) <= {*self.kernel.sizes})
        predicates = tuple(dict.fromkeys((*statement.predicates, *of_sizes)))
        self.made.append(replace(statement, predicates=predicates))
        # Loops of its own: no other statement has a key with that number.
        fresh, number = statement.inames - {*path_inames(path)}, -len(self.made)
        return statement.id, (*path, *((iname, number) for iname, _ in loops if iname in fresh))

    def is_of_all(self, statement: Statement, updated: str) -> bool:
        """Whether a combination for one update covers the cells of all updates not yet combined."""
        others = (self.kernel.statement_by_id[s] for s in self.open - {updated})
        return all(
            other.lhs == statement.lhs
            and other.inames - self.reduced(other.id) == statement.inames
            and not (other.predicates or statement.predicates)
            for other in others
        )

    def is_once(self, statement: Statement, path: Path) -> bool:
        """Whether a combination in some loops combines each cell once per initialization."""
        kernel, indices = self.kernel, statement.write[1]
        prefix = common_prefix((path, *(kernel.paths[s] for s in self.starts)))
        tags, used = kernel.iname_tags, variable_names(indices)
        own = {
            i
            for i in statement.inames & tags.keys()
            if isinstance(tags[i], (GroupAxis, LocalAxis, LocalAuto))
            or (isinstance(tags[i], InstructionParallel) and i not in used)
        }
        fixed = {*path_inames(prefix), *own}
        free = statement.inames - fixed
        if not all(_sets.is_affine(i) and variable_names(i) <= kernel.integers for i in indices):
            return False
        domain = kernel.domain_around(statement.inames)
        # All threads of a block combine, also those for which the statement has no instances.
        domain = _sets.project_out(domain, sorted(i for i in own if isinstance(tags[i], LocalAxis)))
        told = determined_by(kernel, [*indices, *map(prim.Variable, sorted(fixed))], domain)
        return free <= told

    def repeated(self, update: Statement) -> IllegalTransformError:
        """The error where no position combines each cell exactly once."""
        return IllegalTransformError(
            f"threads hold partial results of '{to_text(update.lhs)}', and the cells are not "
            "known at the point where each would be combined once",
            instead="an array in shared memory, which all threads update: "
            f"set_temporary_address_space('{self.name}', 'shared'); or the thread axis a "
            "sequential loop",
        )

    def amid(self, iname: str | None) -> IllegalTransformError:
        """The error where an accumulator is read while threads hold partial results."""
        where = "between its updates" if iname is None else f"inside the loop over '{iname}'"
        update = self.kernel.statement_by_id[min(self.updates)]
        is_running = reduction_text(self.kernel, update).startswith("running")
        others = "move its readers after all of its updates,"
        return IllegalTransformError(
            f"threads hold partial results of '{self.name}', which is read {where}, before its "
            "last update",
            instead=f"{_READ_BY_THREADS if is_running else others} or the thread axis a "
            "sequential loop",
        )
