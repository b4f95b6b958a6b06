"""Where the threads of a block combine running results: after the updates, before the first read.

In each iteration of the loops around it, a scan gives each thread the result over all threads up
to itself.  Where these loops carry the accumulator to the next iteration, the total goes into the
first thread after the last read, and the other threads are set to the neutral element, so that the
next iteration continues from the total.
"""

from __future__ import annotations

from dataclasses import replace

from loopkit import _sets
from loopkit._collectives import (
    CARRY,
    SCAN,
    TOGETHER,
    ThreadScan,
    adds_to,
    combined_axes,
    reduced_inames,
    scanned_blocks,
    scans_of,
    thread_scans,
)
from loopkit._errors import IllegalTransformError
from loopkit._expression import to_text, variable_names
from loopkit._kernel import Kernel, Statement
from loopkit._launches import launch_of
from loopkit._promotion import COMPLEXES, components_of
from loopkit._tags import GroupAxis, LocalAxis
from loopkit._tree import Entry, build, entries_of, path_inames, statements_in


def placed_scan(kernel: Kernel, name: str, scan: ThreadScan) -> Kernel:
    """The kernel with the statements by which threads make the running results of ``name``.

    Raises :class:`IllegalTransformError` where there is no place for them, or no way.
    """
    temporary = kernel.temporary_by_name[name]
    if temporary.combined_by == "atomic":
        raise IllegalTransformError(
            f"an atomic {temporary.accumulates} leaves no running results: it has no order",
            instead="by='shuffle' or by='shared'",
        )
    return _Place(kernel, name, scan).kernel_with()


class _Place:
    """The place of one accumulator's scan."""

    def __init__(self, kernel: Kernel, name: str, scan: ThreadScan) -> None:
        self.kernel = kernel
        self.name = name
        self.scan = scan
        writers = kernel.writers[name]
        self.updates = [s for s in writers if adds_to(s, name)]
        self.inside = [s for s in self.updates if s.id in scan.updates]
        self.others = {i for s in thread_scans(kernel) if s != scan for i in s.statements}
        self.is_one = len(scans_of(kernel, name)) == 1
        (self.start, *self.more) = [s for s in writers if s.kind == "init"]
        own = {s.id for s in self.updates}
        readers = (s for s in kernel.readers[name] if s.kind not in TOGETHER)
        self.readers = ({s.id for s in readers} & scan.statements) - own

    def kernel_with(self) -> Kernel:
        path, kernel = self.scan.path, self.kernel
        self.check()
        entries = entries_of(kernel.tree)
        places = {leaf: at for at, (leaf, _) in enumerate(entries) if isinstance(leaf, str)}
        inside = {s.id for s in self.inside}
        until = min(places[id_] for id_ in self.readers)
        alone = {s.id for s in self.updates if places[s.id] < until}
        last = max(places[id_] for id_ in inside | alone)
        self.check_order(entries, places, last)
        first = kernel.paths[self.start.id]
        is_carried = len(first) < len(path) or not self.is_one
        made = [self.statement(SCAN)]
        entries.insert(self.behind(entries, last), (made[0].id, path))
        if is_carried:
            made.append(self.statement(CARRY, made[0].id))
            latest = max(at for at, (leaf, _) in enumerate(entries) if leaf in self.readers)
            entries.insert(self.behind(entries, latest), (made[1].id, path))
        return kernel.with_(tree=build(entries), statements=(*kernel.statements, *made))

    def behind(self, entries: list[Entry], at: int) -> int:
        """The place behind an entry, and behind the loop that it is in at the scan's depth."""
        depth = len(self.scan.path)
        own = entries[at][1]
        while len(own) > depth and at + 1 < len(entries):
            if entries[at + 1][1][: depth + 1] != own[: depth + 1]:
                break
            at += 1
        return at + 1

    def statement(self, kind: str, *taken: str) -> Statement:
        """A statement that all threads execute together."""
        update = self.inside[0]
        return replace(
            update,
            id=self.kernel.fresh_name(f"{self.name}_{kind}", taken),
            rhs=update.lhs,
            inames=(update.inames - reduced_inames(self.kernel, update))
            | {*path_inames(self.scan.path)},
            predicates=self.start.predicates,
            operation=None,
            kind=kind,
            depends_on=frozenset(),
            made_by=self.kernel.temporary_by_name[self.name].made_by,
        )

    def check(self) -> None:
        """Refuse scans that threads cannot compute together."""
        kernel, path = self.kernel, self.scan.path
        first = kernel.paths[self.start.id]
        around = {*path_inames(path)}
        if self.more or path[: len(first)] != first:
            raise self.refused("it starts in several places, or behind the loops around them")
        for other in thread_scans(kernel):
            if other != self.scan and other.statements & self.scan.statements:
                raise self.refused(
                    f"another scan, of '{other.accumulators[0]}', runs along other threads in the "
                    "same place"
                )
        if scanned_blocks(kernel, self.name):
            self.check_blocks()
        for update in self.updates:
            cells = frozenset[str]().union(*map(variable_names, update.write[1]))
            if (cells & kernel.home_domain.keys()) - around or update.lhs != self.start.lhs:
                raise self.refused(
                    f"'{to_text(update.lhs)}' is another cell for each '{min(cells)}'"
                    if cells
                    else "its updates are of several cells"
                )

    def check_blocks(self) -> None:
        """Refuse scans across blocks where some block might not take part exactly once."""
        kernel, launch = self.kernel, launch_of(self.kernel)[self.start.id]
        loops = path_inames(self.scan.path)[len(launch.loops) :]
        inside = [kernel.statement_by_id[s] for s in statements_in(launch.body)]
        used = frozenset().union(*(s.inames for s in inside))
        if not self.is_one:
            raise self.refused("there are several scans, and one of them continues another")
        if loops:
            raise self.refused(
                f"it is inside the loop over '{loops[-1]}', and a scan with look-back is a single "
                "pass: the values that blocks publish are not reset, and the next iteration "
                "would read them",
                f"'{loops[-1]}' another thread axis of the same scan, if the scan runs along it, "
                f"or, if '{loops[-1]}' enumerates independent rows, another block axis",
            )
        blocks = [i for i, tag in kernel.tags if isinstance(tag, GroupAxis) and i in used]
        both = kernel.domain_around([*blocks, *launch.loops]) & kernel.assumptions.set
        parts = (_sets.project_out(both, names) for names in (blocks, launch.loops))
        if launch.loops and not both.is_equal(next(parts) & next(parts)):
            raise self.refused(
                f"other blocks run for each '{launch.loops[-1]}', and a call has as many tiles "
                "for all",
                "bounds that are the same in each iteration, and a condition on what is added",
            )
        if any(not variable_names(p) <= kernel.integers for p in self.start.predicates):
            raise self.refused("data decide whether a block comes to it, and later ones would wait")
        written = {s.written for s in inside}
        axes = sorted({a for name in written for a in scanned_blocks(kernel, name)})
        if len(axes) > 1:
            raise self.refused(
                "blocks that look back come one after another, and here they are along "
                + ", ".join(f"g.{axis}" for axis in axes),
                "one block axis of the scan; join_inames makes one iname of two",
            )
        own = combined_axes(kernel)[self.name]
        for iname, tag in kernel.tags:
            if isinstance(tag, LocalAxis) and tag.axis not in own and iname in used:
                lower, upper = kernel.range_around(iname)
                if lower is None or lower != upper:
                    raise self.refused(
                        f"a block has several of them, along {tag} ('{iname}'), and looks back "
                        "for one",
                        f"'{iname}' a block axis, if it enumerates independent rows",
                    )
        dtype = kernel.temporary_by_name[self.name].dtype
        if any(kind in COMPLEXES for kind in components_of(dtype).values()):
            raise self.refused(
                "it holds complex numbers and other values, and warp shuffles do not exchange "
                "these together",
                "the real and the imaginary part separate accumulators",
            )

    def check_order(self, entries: list[Entry], places: dict[str, int], last: int) -> None:
        """In an iteration of the loops around, all updates come before what reads them."""
        depth = len(self.scan.path)
        behind = self.behind(entries, last)
        mine = {self.kernel.paths[s][: depth + 1] for s in self.scan.statements}
        for other in self.others:
            path = self.kernel.paths[other]
            if path[: depth + 1] in mine and len(path) > depth:
                raise self.refused(f"another scan is inside the loop over '{path[depth][0]}'")
        for reader in self.readers:
            if places[reader] < behind:
                path = self.kernel.paths[reader]
                inner = f"inside the loop over '{path[depth][0]}'" if len(path) > depth else ""
                raise self.refused(
                    f"'{reader}' reads it {inner or 'before the last of them has been added'}"
                )

    def refused(self, why: str, instead: str = "") -> IllegalTransformError:
        threads = ", ".join(f"'{i}'" for i in self.scan.inames)
        update = to_text(self.inside[0].lhs)
        return IllegalTransformError(
            f"threads along {threads} cannot compute the running results of '{update}' together: "
            f"{why}",
            instead=instead
            or "one accumulator, which all of a thread's terms are added to before it is "
            "read; or the thread axis a sequential loop",
        )
