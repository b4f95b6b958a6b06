"""Reads of copies: following the value to the cell from which it was copied.

When a read sees a copy, the copying statement must have read, when it executed, what the read is
to see. The event (see :mod:`.schedule_check`) then continues at the copying statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._check.schedule_check import Check, ReadEvent
from loopkit._expression import Access, accesses, variable_names
from loopkit._guarded import guarded_reads
from loopkit._hidden import BASE, OTHER, SOURCE, copied, instance, variable
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._poly.dataflow import dataflow_of
from loopkit._poly.model import Cell
from loopkit._poly.pairs import Instance, Undecided, differ, nonempty, parts_in
from loopkit._relations import grouped
from loopkit._uniform import divergent_bounds


class CopyChains:
    """Follows reads through the copies of one schedule."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self.new = check.new

    def behind_copies(self, event: ReadEvent, access: Access) -> isl.Set:
        """``{ names of the event : a copy is the cell's last writer, no statement of the text }``.

        Exact; conditions on data that reader and copy share count as true.
        """
        cell = self.check.cell(event, access)
        result = event.where - event.where
        others = [w for w in self.new.writers_of(cell) if w.id in self.check.lineage.image_of]
        for statement in self.check.copy_statements(cell.array):
            at = Instance(statement.id, SOURCE)
            both = event.where & self.new.writing(at, cell)
            for part in parts_in(both, self.new.order.before(at, event.time)):
                self.check_plain(statement, event, at, part)
                for writer in others:
                    left = self.not_replaced(part, at, writer, cell, event.time)
                    if not (self.new.is_exact(writer) or left.is_equal(part)):
                        raise Undecided(
                            f"data decide whether '{cell.array}' is written, or what was copied to "
                            "it is kept"
                        )
                    part = left
                result = result | self.check.onto(part, event.where)
        return result

    def check_filled(self, mover: str) -> None:
        """Report cells of temporaries that are stored in an argument before they are written.

        Cells of a copy that are never used may be undefined; those of a caller's array may not,
        even if a later statement overwrites them. Reads whose cell depends on data are left out,
        and writes that depend on data count as executed. Bounds of loops must have been loaded.
        """
        for name in self.new.bounds_from_data(mover):
            loads = dataflow_of(self.new.kernel).of_read(mover, (name, ()))
            if not (loads.untouched.is_empty() and loads.certain.issuperset(loads.writes)):
                raise Undecided(f"data decide whether '{name}' is loaded where '{mover}' runs")
        statement, at = self.new.statement[mover], Instance(mover, BASE)
        if statement.written not in self.new.kernel.arg_by_name:
            return
        if self.new.conditions_on_data(statement) or self.new.bounds_from_data(mover):
            return
        runs, everywhere = self.check.runs(at)
        for name, indices, guards in dict.fromkeys(guarded_reads(statement)):
            temporary = self.new.kernel.temporary_by_name.get(name)
            cell = self.new.cell(name, self.new.indices(at, indices), at, everywhere)
            if temporary is None or temporary.initializer is not None or cell.by_data:
                continue
            where = runs & self.new.where_evaluated(guards, BASE)
            for writer in self.new.writers(name):
                other = Instance(writer.id, OTHER)
                both = where & self.new.writing(other, cell)
                for filled in parts_in(both, self.new.order.before(other, at)):
                    where = where - self.check.onto(filled, where)
            if not where.is_empty():
                self.check.missing(ReadEvent(where, at, mover, {}, everywhere, at), cell)

    def not_replaced(
        self,
        where: isl.Set,
        at: Instance,
        writer: Statement,
        cell: Cell,
        until: Instance,
        *,
        surely: bool = False,
    ) -> isl.Set:
        """The cases of ``where`` in which a statement does not write ``cell`` between two others.

        Over the names of ``where``.  Exact, unless the statement's loops have loaded bounds: then
        each write counts that some bounds allow, or with ``surely`` those that certainly happen.
        """
        other = Instance(writer.id, OTHER)
        both = where & self.new.writing(other, cell)
        for first in parts_in(both, self.new.order.before(at, other)):
            for dead in parts_in(first, self.new.order.before(other, until)):
                if surely:
                    dead = self.with_equal_bounds(dead, at, other, writer)
                where = where - self.check.onto(dead, where)
        return where

    def with_equal_bounds(
        self, where: isl.Set, at: Instance, until: Instance, asked: Statement
    ) -> isl.Set:
        """The cases of ``where`` in which a statement surely runs, if its bounds are loaded.

        ``asked`` is the statement of one of two instances.  It runs as often as the loops of the
        other one say where both have the same bounds, which have not changed in between.
        """
        loaded = self.new.bounds_from_data(asked.id)
        if not loaded:
            return where
        both, wanted, known = (at, until), {*loaded}, self.new.bounds_from_data
        if any(one.statement is None or wanted - {*known(one.statement)} for one in both):
            return where - where
        for name in loaded:
            where = where & _sets.equality(instance(name, at.label), variable(name, until.label))
        for name in divergent_bounds(self.new.kernel, asked.inames):
            cells = (self.new.cell(name, (), one, self.new.everywhere(one)[1]) for one in both)
            where = where & self.new.same_cell(*cells)
        if all(self.is_unchanged(prim.Variable(name), at, until, where) for name in loaded):
            return where
        return where - where

    def check_plain(self, copy: Statement, event: ReadEvent, at: Instance, where: isl.Set) -> None:
        """Raise :class:`Undecided` for a copy that is conditional on data, or that accumulates.

        A conditional copy is accepted if the reader has the same condition, or conditions that
        imply that of the copy ``at``: ``{ inames of both : the reader sees the copy }``.
        """
        reader = self.new.statement.get(event.time.statement or "")
        known = () if reader is None else reader.predicates
        given = [self.new.named(p, event.time.label) for p in known]
        if copy.operation is not None:
            raise Undecided(
                f"'{copy.id}' adds to '{copy.written}', but implements no statement of the text"
            )
        conditions = self.new.conditions_on_data(copy)
        data = {*filter(self.reads_data, conditions)}
        sizes = [self.new.named(c, at.label) for c in conditions if c not in data]
        if self.new.cells_by_data(copy) or not (
            data <= {*known} and all(self.new.holds(c, where, given) for c in sizes)
        ):
            raise self.left_out(copy)
        if set(self.new.bounds_from_data(copy.id)) - set(
            self.new.bounds_from_data(reader.id) if reader is not None else ()
        ):
            raise Undecided(f"data decide how much '{copy.id}' copies")

    def reads_data(self, condition: Expression) -> bool:
        """Whether a condition is of more than inames and sizes."""
        return not variable_names(condition) <= self.new.integers

    def left_out(self, copy: Statement) -> Undecided:
        """The error: data decide whether there is a copy."""
        return Undecided(f"data decide whether, or to where, '{copy.id}' copies")

    def check_conditions(
        self, copy: Statement, later: ReadEvent, access: Access, event: ReadEvent
    ) -> None:
        """Raise :class:`Undecided` where conditions may have changed since a copy was made.

        ``later`` is the copy behind an access of ``event``, which runs under the same conditions.
        """
        data = [*filter(self.reads_data, self.new.conditions_on_data(copy))]
        where = self.latest(later, access, event) if data else later.where
        if not all(self.is_unchanged(p, later.time, event.time, where) for p in data):
            raise self.left_out(copy)

    def is_unchanged(self, expr: Expression, at: Instance, until: Instance, where: isl.Set) -> bool:
        """Whether an expression is known to have the same value at two times.

        ``where`` is ``{ inames of both, and others }``.
        """
        inames = variable_names(expr) & {*self.new.kernel.all_inames}
        if any(not (where & differ(i, at.label, until.label)).is_empty() for i in sorted(inames)):
            return False
        for name, indices in accesses(expr):
            for writer in self.new.writers(name):
                cell = self.new.cell(name, self.new.indices(at, indices), at)
                other = Instance(writer.id, OTHER)
                both = where & self.new.writing(other, cell)
                late = self.new.not_before(other, at, name)
                early = self.new.not_before(until, other, name, itself=False)
                for _, piece in nonempty(both, late):
                    if any(True for _ in nonempty(piece, early)):
                        return False
        return True

    def through_copies(
        self, event: ReadEvent, access: Access
    ) -> Iterator[tuple[ReadEvent, Statement]]:
        """The copying instances that a read may see, as events at their time, with the statement.

        A later copy may have replaced the cell of some of them: see :meth:`latest`.
        """
        if event.depth > 12:
            raise Undecided(f"the copies that '{access[0]}' comes from form a cycle")
        cell = self.check.cell(event, access)
        remaining = event.where
        label = copied(event.depth)
        for _, group in self.by_time(cell.array, event, label):
            covered: isl.Set | None = None
            for statement, piece in group:
                at = Instance(statement.id, label)
                bounds, everywhere = self.new.everywhere(at)
                # Of a copy that all threads make, each thread has its own.
                written = self.new.cell(
                    cell.array, self.new.indices(at, statement.write[1]), at, everywhere
                )
                # Which cell it is says most, and what is known of it spares isl the rest.
                both = remaining & (self.new.same_cell(written, cell) & piece & bounds)
                both = both & self.new.domain(at)
                if both.is_empty():
                    continue
                self.check_plain(statement, event, at, both)
                # Copies in global memory must come from the block that reads them.
                for how, bad in nonempty(both, self.new.unordered(at, event.time, cell.array)):
                    source = self.check.side_of(at)
                    self.check.report(event.violation("order", bad, cell, source=source, how=how))
                self.check_no_write_since(both, event, at, cell)
                later = replace(
                    event,
                    where=both,
                    time=at,
                    everywhere=everywhere,
                    depth=event.depth + 1,
                )
                self.check_conditions(statement, later, access, event)
                yield later, statement
                sure = self.with_equal_bounds(both, at, event.time, statement)
                part = self.check.onto(sure, remaining)
                covered = part if covered is None else covered | part
            if covered is not None:
                remaining = remaining - covered
                if remaining.is_empty():
                    return
        self.check.missing(event.narrowed(remaining), cell)

    def by_time(
        self, array: str, event: ReadEvent, label: str
    ) -> list[tuple[float, tuple[tuple[Statement, isl.Set], ...]]]:
        """Copies of an array before the event, by the loop that carries them, latest first.

        With each copy ``{ inames of the copy·label, inames of the event's time }``, exactly.
        """
        found: list[tuple[float, tuple[Statement, isl.Set]]] = []
        order, time = self.new.order, event.time
        for copy in self.check.copy_statements(array):
            depth = len(order.shared_loops(copy.id, time.statement)) if time.statement else 0
            for level, piece in order.before_by_loop(Instance(copy.id, label), time):
                # An earlier iteration of a loop is nearer than a statement beside that loop.
                found.append((depth if level == depth else level + 0.5, (copy, piece)))
        return sorted(grouped(found).items(), key=lambda group: -group[0])

    def check_no_write_since(
        self, both: isl.Set, event: ReadEvent, at: Instance, cell: Cell
    ) -> None:
        """No statement of the text may write a copied cell between the copy and its use.

        ``both`` is ``{ names of the event, inames of the copy at }``.
        """
        for writer in self.new.writers_of(cell):
            if writer.id not in self.check.lineage.image_of:
                continue
            other = Instance(writer.id, OTHER)
            later = both & self.new.writing(other, cell)
            for since in parts_in(later, self.new.order.before(at, other)):
                late = self.new.not_before(event.time, other, cell.array, itself=False)
                for how, bad in nonempty(since, late):
                    side = self.check.side_of(other)
                    found = event.violation("overwritten", bad, cell, other=side, how=how)
                    self.check.report(found)

    def latest(self, event: ReadEvent, access: Access, reader: ReadEvent) -> isl.Set:
        """``event.where`` without copies that a later one surely replaces before they are read.

        ``event`` is one that :meth:`through_copies` found behind an access of ``reader``.
        """
        result = event.where
        cell = self.check.cell(reader, access)
        for statement in self.check.copy_statements(access[0]):
            result = self.not_replaced(
                result, event.time, statement, cell, reader.time, surely=True
            )
        return result
