"""Whether all threads reach a combination, and a scan preserves the order of other accesses.

All threads of a block must reach the point where they combine partial results. A scan by threads
changes the order of execution: in a loop, the update and the readers of one iteration precede
those of the next; with threads, all updates precede all readers. The accumulator gives each thread
its own running result, but for any other cell that two threads access the order would change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loopkit._check.instance_maps import Lineage
from loopkit._check.schedule_check import Check
from loopkit._check.violation import Violation
from loopkit._collectives import thread_scans
from loopkit._combined import with_combinations
from loopkit._expression import Access
from loopkit._hidden import BASE, OTHER, SOURCE
from loopkit._kernel import Kernel, Statement
from loopkit._poly.model import Cell, model_of
from loopkit._poly.pairs import Instance, differ, equal_inames, parts_in, steps, within_any
from loopkit._poly.program_order import before
from loopkit._uniform import partings, thread_inames


def missed_meetings(lineage: Lineage, schedule: Kernel) -> Iterator[Violation]:
    """Combinations that data may keep some threads from reaching, each with two threads."""
    check = Check(lineage, model_of(schedule))
    kernel = check.new.kernel
    for found in partings(with_combinations(kernel)):
        array = found.combination.written
        update = next(s for s in kernel.writers[array] if s.kind == "update")
        threads = update.inames & thread_inames(kernel, None)
        one, two = Instance(update.id, SOURCE), Instance(update.id, OTHER)
        apart = threads & {*found.names} or threads
        where = check.new.domain(one) & check.new.domain(two) & check.lineage.sizes
        # What is summed up need not be the same, nor need other threads.
        where = where & equal_inames(sorted(found.combination.inames - threads), SOURCE, OTHER)
        where = within_any(where, [differ(i, SOURCE, OTHER) for i in sorted(apart)])
        if not where.is_empty():
            sides = check.side_of(two), check.side_of(one)
            yield Violation("divergent", where, *sides, array=array, detail=found.why)


def crossed_scans(lineage: Lineage, schedule: Kernel) -> list[Violation]:
    """Accesses whose order a scan by threads would reverse, each with two instances."""
    check = Check(lineage, model_of(schedule))
    new = check.new
    for scan in thread_scans(new.kernel):
        inside = [new.statement[s.id] for s in new.kernel.statements if s.id in scan.statements]
        loops = [iname for iname, _ in scan.path]
        for number, first in enumerate(inside):
            for second in inside[number + 1 :]:
                one, two = Instance(first.id, BASE), Instance(second.id, OTHER)
                where = new.domain(one) & new.domain(two) & check.lineage.sizes
                where = where & equal_inames(loops, BASE, OTHER)
                where = within_any(where, before(steps(scan.inames, OTHER, BASE)))
                for mine, its in _meeting(first, second, scan.accumulators):
                    a, b = _cell(check, one, mine), _cell(check, two, its)
                    for bad in parts_in(where, [new.same_cell(a, b)]):
                        found = _crossed(check, one, two, mine == first.write, its == second.write)
                        exact = not (a.by_data or b.by_data)
                        found = replace(found, where=bad, array=a.array, cell=a.indices)
                        check.report(replace(found, exact=exact))
    return check.found


def _meeting(
    first: Statement, second: Statement, but: tuple[str, ...]
) -> Iterator[tuple[Access, Access]]:
    """Pairs of accesses of two statements to one array, one of them a write."""
    for mine in dict.fromkeys(first.accesses):
        for its in dict.fromkeys(second.accesses):
            is_write = mine == first.write or its == second.write
            if is_write and mine[0] == its[0] and mine[0] not in but:
                yield mine, its


def _cell(check: Check, at: Instance, access: Access) -> Cell:
    """The cell of an access."""
    name, indices = access
    return check.new.cell(name, check.new.indices(at, indices), at)


def _crossed(
    check: Check, one: Instance, two: Instance, writes_first: bool, writes_second: bool
) -> Violation:
    """``two`` comes first in the text, and ``one`` would."""
    first, second = check.side_of(one), check.side_of(two)
    nowhere = check.lineage.sizes
    if writes_first and writes_second:
        return Violation("rewritten", nowhere, first, source=second)
    if writes_first:
        return Violation("overwritten", nowhere, second, other=first)
    return Violation("order", nowhere, first, source=second)
