"""Whether all threads come to where they combine their partial results."""

from __future__ import annotations

from collections.abc import Iterator

from loopkit._check.instance_maps import Lineage
from loopkit._check.schedule_check import Check
from loopkit._check.violation import Violation
from loopkit._combined import with_combinations
from loopkit._hidden import OTHER, SOURCE
from loopkit._kernel import Kernel
from loopkit._poly.model import model_of
from loopkit._poly.pairs import Instance, differ, equal_inames, within_any
from loopkit._uniform import partings, thread_inames


def missed_meetings(lineage: Lineage, schedule: Kernel) -> Iterator[Violation]:
    """Combinations that data of some threads may keep from running, each with two threads."""
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
