"""Accesses whose cells, or execution, depend on data: they must keep their order.

Which write such a read sees is unknown, so all accesses that may touch a common cell must keep the
order that they have in the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import islpy as isl

from loopkit import _sets
from loopkit._assertions.asserted_cells import data_of, settling
from loopkit._cached import memoised
from loopkit._check.instance_maps import Image
from loopkit._check.schedule_check import Check, ReadEvent, with_computed_sizes
from loopkit._check.violation import Violation
from loopkit._errors import InvalidArgumentError
from loopkit._expression import Access, evaluate, variable_names
from loopkit._hidden import BASE, KILLER, OTHER, READER, SURE, WRITER, plain, variable
from loopkit._nodes import Expression
from loopkit._points import TooManyPointsError, points_of, smallest_point
from loopkit._poly.dataflow import commute, is_own_read, is_update
from loopkit._poly.equal_values import Computed, equal_values_of
from loopkit._poly.model import Cell
from loopkit._poly.pairs import Instance, Undecided, nonempty, parts_in, without
from loopkit._poly.smallest_case import looked_up, tables_of

_TEXT = (READER, WRITER)
_TRIED = 4096
"""At how many points subscripts that read tables are computed."""


@dataclass(frozen=True, eq=False)
class Meeting:
    """A read, and a write that may be to its cell.

    ``cell`` is what the event reads, ``image`` the statement that writes, and ``pairs`` holds ``{
    names of the event, inames·OTHER of the image, inames·WRITER of its origin }``.
    """

    event: ReadEvent
    image: Image
    cell: Cell
    pairs: isl.Set

    @property
    def at(self) -> Instance:
        """The writing instance of the schedule."""
        return Instance(self.image.statement, OTHER)

    @property
    def in_text(self) -> tuple[Instance, Instance]:
        """The writing instance of the text, and the reading one."""
        return Instance(self.image.origin, WRITER), Instance(self.event.reader, READER)


class DataDependentOrder:
    """Compares the order of accesses in a schedule with that of the text."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self.root = check.root
        self.new = check.new

    def matters(self, array: str) -> bool:
        """Whether the order of an array's writes is visible, apart from reads checked singly.

        A read whose cell depends on data may see any of the writes. For other inexact arrays, the
        order is not visible if each read sees a write that certainly happens, perhaps under
        conditions of the reader, and updates on top of it: that is checked read by read.
        """
        if self.is_looked_up(array):
            return True
        if all(self.root.is_exact(w) for w in self.root.writers(array)):
            return False
        if array not in self.root.kernel.temporary_by_name or self.is_scattered(array):
            return True
        return not all(
            self._is_sure(reader.id, access)
            for reader in self.root.kernel.readers.get(array, ())
            for access in dict.fromkeys(self.root.kernel.reads_of(reader))
            if access[0] == array
        )

    def _is_sure(self, reader: str, access: Access) -> bool:
        """Whether all cells that a read of the text may see are certainly set, updates aside."""
        if any(map(self.root.is_beyond_sets, access[1])):
            return False
        try:
            sources = self.check.dataflow.of_read(reader, access)
        except Undecided:
            return False
        stores = (w for w in sources.writes if not is_update(self.root.statement[w]))
        return bool(sources.untouched.is_empty()) and sources.certain.issuperset(stores)

    def is_looked_up(self, array: str) -> bool:
        """Whether data decide which cells of an array are read in the text."""
        return any(
            self.root.is_beyond_sets(index)
            for reader in self.root.kernel.readers.get(array, ())
            for name, indices in reader.reads
            if name == array
            for index in indices
        )

    @memoised
    def is_scattered(self, array: str) -> bool:
        """Whether data decide which cells of an array are written in the text."""
        return any(self.root.cells_by_data(w) for w in self.root.writers(array))

    def concerns(self, access: Access) -> bool:
        """Whether a read of the text must be checked by order alone."""
        name, indices = access
        if name not in self.root.written:
            return False
        return any(map(self.root.is_beyond_sets, indices)) or self.is_scattered(name)

    def read(self, event: ReadEvent, mine: Access, its: Access) -> None:
        """Check one read against all writes of its array."""
        cell = self.check.cell(event, its)
        reader = self.root.statement.get(event.reader)
        beside = reader if reader is not None and is_own_read(reader, mine) else None
        for writer in self.root.writers(mine[0]):
            if beside is not None and commute(writer, beside):
                continue  # in the order of one set, which is free
            for image in self.images(writer.id, mine[0], its[0]):
                pairs = event.bound & self.check.instances(image, OTHER, WRITER)
                meeting = Meeting(event, image, cell, pairs)
                written = self.new.write_cell(meeting.at)
                self.in_one_copy(meeting, written)
                meeting = replace(meeting, pairs=pairs & self.new.same_cell(written, cell))
                if not meeting.pairs.is_empty():
                    self.ordered(meeting, written)

    def seen(self, meeting: Meeting) -> list[isl.Set]:
        """The pairs in which the read of the text may see the write, as several sets.

        Over the names of ``pairs``; a superset: only writes that are certainly replaced are left
        out.
        """
        before = [*parts_in(meeting.pairs, self.root.order.before(*meeting.in_text))]
        if not before:
            return []
        replaced = self.check.dataflow.replaced(meeting.image.origin, meeting.event.reader)
        if replaced is None:
            return before
        return [left for piece in before if not (left := piece - replaced).is_empty()]

    def images(self, origin: str, array: str, now: str) -> tuple[Image, ...]:
        found: list[Image] = []
        for image in self.check.lineage.images_from[origin]:
            if self.check.lineage.every(image):
                raise Undecided(f"data decide which cells of '{array}' '{origin}' writes")
            reaching = self.check.reaching(image, now)
            if not reaching:
                raise Undecided(
                    f"'{array}' is written where data decide, or products of names, and its values "
                    "move to another array"
                )
            found += reaching
        return tuple(found)

    def ordered(self, meeting: Meeting, written: Cell) -> None:
        """Report a read that precedes a write it may see, or follows one that overwrites that."""
        event, at, cell = meeting.event, meeting.at, meeting.cell
        side = self.check.origin_side(meeting.image, at)
        late = self.new.not_before(at, event.time, cell.array)
        for before in self.seen(meeting):
            for how, bad in nonempty(before, late):
                found = Violation("order", bad, event.side, side, how=how)
                self.check.report(self.judged(found, written, cell))
        origin, reader = meeting.in_text
        itself = self.root.order.together(reader, origin)
        first = (*self.root.order.before(reader, origin), *(() if itself is None else (itself,)))
        early = self.new.not_before(event.time, at, cell.array, itself=False)
        for tied in parts_in(meeting.pairs, first):
            for how, bad in nonempty(tied, early):
                found = Violation("overwritten", bad, event.side, None, side, how=how)
                self.check.report(self.judged(found, written, cell))

    def in_one_copy(self, meeting: Meeting, written: Cell) -> None:
        """Report values in a private or shared copy that another thread or block may read."""
        cell = meeting.cell
        if not written.coordinates and not cell.coordinates:
            return
        one, two = (replace(c, coordinates=()) for c in (written, cell))
        pairs = meeting.pairs & self.new.same_cell(one, two)
        one, two = (replace(c, indices=()) for c in (written, cell))
        for piece in self.new.other_cell(one, two):
            for bad in self.seen(replace(meeting, pairs=pairs & piece)):
                side = self.check.origin_side(meeting.image, meeting.at)
                found = Violation("place", bad, meeting.event.side, side, written=cell.indices)
                self.check.report(self.judged(found, written, cell))

    def judged(self, violation: Violation, first: Cell, second: Cell) -> Violation:
        """A violation with what is known of whether data can bring it about."""
        violation = replace(violation, array=second.array, cell=second.indices)
        if not (first.by_data or second.by_data):
            # Cells of a copy are sets; whether those of the text are one cell, is still open.
            is_its_own = second.array in self.root.kernel.writers
            return violation if is_its_own else replace(violation, exact=False)
        if violation.kind != "rewritten" or violation.how != "after":
            # Else another write may come last in either order.
            met = self.met(violation.where, first, second)
            if met is not None:
                return replace(violation, where=met)
        kernel, cells = self.new.kernel, (first.indices, second.indices)
        found = settling(kernel.assertions, *cells, violation.where, data_of(kernel))
        return replace(violation, exact=False, settling=found)

    def met(self, where: isl.Set, first: Cell, second: Cell) -> isl.Set | None:
        """A case of ``where`` in which subscripts without data are of one cell; None if unknown."""
        kernel, pairs = self.new.kernel, [*zip(first.indices, second.indices, strict=True)]
        used = {plain(n) for pair in pairs for i in pair for n in variable_names(i)}
        tables = used & tables_of(kernel).keys()
        if not (self.new.data - tables).isdisjoint(used):
            return None
        if computed := kernel.computed_sizes:
            possible = with_computed_sizes(where, computed)
            where = where - where if possible is None else possible
        point = smallest_point(where, kernel.sizes)
        points = [] if point is None else [point]
        if tables and point is not None:
            points += self.points(where, {n: point[n] for n in kernel.sizes if n in point})
        for point in points:
            try:
                meets = all(self.value(a, point) == self.value(b, point) for a, b in pairs)
            except (ArithmeticError, LookupError, NotImplementedError):  # or functions are in them
                continue
            if meets:
                return where & _sets.at(point)
        return None

    def value(self, index: Expression, point: Mapping[str, int]) -> int:
        """An index at a point, where it may read tables of constants."""
        return int(evaluate(looked_up(self.new.kernel, index, point), point))

    def points(self, where: isl.Set, sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """All points of a set for some sizes, if these are not too many."""
        small = _sets.at_values(where, sizes)
        names = sorted(_sets.involved_names(small))
        with suppress(TooManyPointsError, InvalidArgumentError):
            for row in points_of(small, names, {}, _TRIED):
                yield {**sizes, **dict(zip(names, map(int, row), strict=True))}

    def writes(self, array: str) -> None:
        """Check that writes that may touch a common cell keep their order, or store equal values.

        Where each read is checked for the write it sees, only the order of writes that one read
        may see together matters.
        """
        images = [
            image for w in self.root.writers(array) for image in self.images(w.id, array, array)
        ]
        is_by_order = self.is_scattered(array) or self.is_looked_up(array)
        if is_by_order and self.check.copy_statements(array):
            raise Undecided(f"'{array}' is written where data decide, and buffered")
        together = self.check.dataflow.seen_together
        for first in images:
            for second in images:
                statements = self.root.statement
                if commute(statements[first.origin], statements[second.origin]):
                    continue  # in the order of one set, which is free
                one, two = Instance(first.statement, BASE), Instance(second.statement, OTHER)
                cell = self.new.write_cell(one)
                pairs = self.check.instances(first, BASE, READER)
                pairs = pairs & self.check.instances(second, OTHER, WRITER)
                its = self.new.write_cell(two)
                pairs = pairs & self.new.same_cell(cell, its) & self.check.lineage.sizes
                origins = Instance(first.origin, READER), Instance(second.origin, WRITER)
                gone = self.replaced(first, BASE, READER), self.replaced(second, OTHER, WRITER)
                for tied in parts_in(pairs, self.root.order.before(*origins)):
                    for one_side in gone:
                        tied = tied - one_side
                    for how, bad in nonempty(tied, self.new.not_before(one, two, array)):
                        # Of equal values it does not show which came last.
                        bad = bad - self.check.equal_writes(one, two, without(bad, *_TEXT))
                        if not is_by_order and not bad.is_empty():
                            bad = bad & together(first.origin, second.origin)
                        if bad.is_empty():
                            continue
                        sink = self.check.origin_side(second, two)
                        source = self.check.origin_side(first, one, READER)
                        found = Violation("rewritten", bad, sink, source, how=how)
                        self.check.report(self.judged(found, its, cell))

    def replaced(self, image: Image, label: str, root_label: str) -> isl.Set:
        """Writes whose cell another instance of the statement sets later, in text and schedule.

        ``{ inames·label of the image, inames·root_label of its origin }``, a subset, of arrays that
        the text does not read.  Of all other writes the last one is what is left in a cell.
        """
        origin = self.root.statement[image.origin]
        p = Instance(image.statement, label)
        mine = self.check.instances(image, label, root_label)
        nothing = mine - mine
        data = frozenset().union(*map(variable_names, origin.write[1])) & self.root.data
        if self.root.kernel.readers.get(origin.written) or data & self.root.written:
            return nothing
        is_sure = not self.root.conditions_on_data(origin) and not is_update(origin)
        if not is_sure or self.root.bounds_from_data(origin.id):
            return nothing
        values = equal_values_of(self.root.kernel)
        ends = Instance(origin.id, root_label), Instance(origin.id, KILLER)
        one, two = (
            Computed(origin.id, {i: variable(i, at.label) for i in origin.inames}) for at in ends
        )
        found = nothing
        for other in self.images(image.origin, origin.written, origin.written):
            k = Instance(other.statement, SURE)
            both = mine & self.check.instances(other, SURE, KILLER)
            races = self.new.unordered(p, k, origin.written)
            for tied in parts_in(both, self.root.order.before(*ends)):
                for index in origin.write[1]:
                    tied = values.equal(index, one, two, tied)
                for _, race in races:
                    tied = tied - race
                for later in parts_in(tied, self.new.order.before(p, k)):
                    found = found | without(later, SURE, KILLER)
        return found
