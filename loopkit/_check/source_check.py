"""Whether the writes that a read must see execute before it, and write to its cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import islpy as isl

from loopkit import _hidden
from loopkit._check.instance_maps import Image
from loopkit._check.schedule_check import Check, ReadEvent
from loopkit._check.violation import Violation
from loopkit._frozen import dataclass
from loopkit._poly.dataflow import is_update
from loopkit._poly.model import Cell
from loopkit._poly.pairs import Instance, differ, nonempty, parts_in, without


@dataclass(frozen=True, eq=False)
class SourceImage:
    """An image of a source: pairs of source and reader, and the number of common loops.

    ``equal`` counts the shared loops, outermost first, in the same iteration.
    """

    image: Image
    at: Instance
    pairs: isl.Set
    equal: int


class SourceCheck:
    """Checks when and where each execution of a source writes."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self.root = check.root
        self.new = check.new

    def equal_loops(self, pairs: isl.Set, a: Instance, b: Instance) -> int:
        """How many of the loops that two instances share, outermost first, have equal values."""
        if a.statement is None or b.statement is None:
            return 0
        loops = self.new.order.shared_loops(a.statement, b.statement)
        for number, iname in enumerate(loops):
            if not (pairs & differ(iname, a.label, b.label)).is_empty():
                return number
        return len(loops)

    def check_sources(
        self, event: ReadEvent, found: list[SourceImage], cell: Cell
    ) -> list[SourceImage]:
        """Check that the executions of one write of the text write the cell, before it is read.

        Where it is executed several times, one that does is enough, if the others have an order.
        Returns ``found``, or the images with only those pairs that are right.
        """
        wrong = [list(self.wrong_pairs(event, one, cell)) for one in found]
        if not any(wrong):
            return found
        serving = []
        for one, violations in zip(found, wrong, strict=True):
            pairs = one.pairs
            for violation in violations:
                pairs = pairs - violation.where
            equal = self.equal_loops(pairs, one.at, event.time)
            serving.append(SourceImage(one.image, one.at, pairs, equal))
        is_whole = True
        for violation in (v for violations in wrong for v in violations):
            bad = violation.where
            for one in serving:
                if self._may_serve(one, violation):
                    bad = bad - without(one.pairs, _hidden.SOURCE)
            if not bad.is_empty():
                is_whole = False
                self.check.report(replace(violation, where=bad))
        return serving if is_whole else found

    def wrong_pairs(self, event: ReadEvent, found: SourceImage, cell: Cell) -> Iterator[Violation]:
        """Where an image writes another cell than the event reads, or does not do so before."""
        at, pairs = found.at, found.pairs
        written = self.new.write_cell(at)
        source = self.check.origin_side(found.image, at)
        for bad in parts_in(pairs, self.new.other_cell(written, cell)):
            violation = event.violation("place", bad, cell, source=source)
            yield replace(violation, written=written.indices)
        late = self.new.not_before(at, event.time, cell.array)
        order, reader = self.new.order, event.time.statement or ""
        mine = found.image.statement
        # Above the reader in the same iteration of all loops that they share, it comes first.
        if late and found.equal == len(order.shared_loops(mine, reader)):
            is_above = order.is_above(mine, reader)
            late = [(how, piece) for how, piece in late if how != "after" or not is_above]
        for how, bad in nonempty(pairs, late):
            yield event.violation("order", bad, cell, source=source, how=how)

    def _may_serve(self, found: SourceImage, other: Violation) -> bool:
        """Whether one of several executions of a source is enough: a store to a known cell.

        Data let all executions happen, or none. The ``other`` execution writes another cell, such
        as that of another thread; or it comes later, and no update in between is undone by it.
        """
        statement = self.new.statement[found.image.statement]
        by_data = self.new.cells_by_data(statement) or self.new.bounds_from_data(statement.id)
        is_elsewhere = other.kind == "place"
        writers = [statement] if is_elsewhere else self.new.kernel.writers[statement.written]
        may_be = is_elsewhere or other.how == "after"
        return may_be and not (by_data or any(map(is_update, writers)))

    def serving(self, where: isl.Set, event: ReadEvent, sure: Instance, cell: Cell) -> isl.Set:
        """The part of ``where`` in which a write is to the cell, and precedes the read."""
        late = [piece for _, piece in self.new.not_before(sure, event.time, cell.array)]
        for piece in (*self.new.other_cell(self.new.write_cell(sure), cell), *late):
            where = where - piece
        return where

    def with_facts(self, both: isl.Set, event: ReadEvent, at: Instance) -> isl.Set:
        """Pairs of an event and another instance, without those that no data can bring about.

        Over the names of ``both``; a superset of the pairs that there are.
        """
        if not (self.new.kernel.bounding or self.root.kernel.bounding):
            return both
        if event.base is not None:
            mine = self.new.loads(event.base)
        elif event.reader in self.root.statement:
            mine = self.root.loads(Instance(event.reader, _hidden.END))
        else:
            mine = []
        known = self.new.known([*mine, *self.new.loads(at)])
        return both if known is None else both & known
