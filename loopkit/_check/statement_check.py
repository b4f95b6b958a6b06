"""Whether the statements of a schedule compute those of the text, and leave the same results."""

from __future__ import annotations

import numpy as np

from loopkit import _sets
from loopkit._check.compare_statements import Untouched, with_rests
from loopkit._check.expression_check import ExpressionCheck
from loopkit._check.instance_maps import Image
from loopkit._check.schedule_check import ReadEvent
from loopkit._expression import is_literal, substitute
from loopkit._hidden import (
    BASE,
    END,
    READER,
    STANDS,
    WRITER,
    instances,
    labelled,
    variable,
)
from loopkit._kernel import Statement
from loopkit._make.reduction_operations import operations_of
from loopkit._poly.pairs import Instance, equal, renamed


class StatementCheck(ExpressionCheck):
    """Checks the expressions of each statement, and the final contents of arguments."""

    def event(self, image: Image) -> ReadEvent:
        """All executions of one statement of the schedule."""
        at = Instance(image.statement, BASE)
        where, everywhere = self.check.runs(at)
        values = {i: self.new.named(e, BASE) for i, e in image.values}
        if every := self.check.lineage.every(image):
            # Each instance of the text that it executes must have its value.
            values |= {i: variable(i, STANDS) for i in every}
            of_text = self.check.executed(image, BASE, STANDS)
            mine = instances(every, STANDS).values()
            gone = [n for n in labelled(_sets.names_of(of_text), STANDS) if n not in mine]
            where = where & _sets.project_out(of_text, gone)
        for name in self.root.bounds_from_data(image.origin):
            values[name] = variable(name, BASE)
        by_data = bool(self.root.conditions_on_data(self.root.statement[image.origin]))
        return ReadEvent(where, at, image.origin, values, everywhere, at, by_data=by_data)

    def statement(self, image: Image, unchanged: frozenset[int] | None = None) -> None:
        """Check all that one statement of the schedule computes.

        With ``unchanged``, the statement is one that was proven, but for reads that a step
        replaced; the set holds the identities of expressions that have their old value.
        """
        old = self.root.statement[image.origin]
        new = self.new.statement[image.statement]
        event = self.event(image)
        if event.where.is_empty():
            return
        if unchanged is not None:
            self.unchanged = unchanged
            self.same(old.rhs, new.rhs, event)
            self.unchanged = frozenset()
            return
        if old.operation != new.operation:
            self.different(event, f"{old.operation} is no {new.operation}")
            return
        if old.is_atomic and not new.is_atomic:
            self.different(event, "the update is not atomic any more")
            return
        mine, its = self.root.conditions_on_data(old), self.new.conditions_on_data(new)
        if len(mine) != len(its):
            self.different(event, "it runs under other conditions")
            return
        for a, b in zip(mine, its, strict=True):
            self.same(a, b, event)
        for name in self.check.bounds_from_data(image):
            self.read(event, (name, ()), (name, ()))
        carried = self.check.partial.carried(image, old.written)
        if carried:
            self.check.partial.check_image(image)
            for one in carried:
                flush = self.new.statement[one.statement]
                self.read(self.check.partial.at_flush(event, one), old.write, flush.write)
        elif new.operation is not None:
            self.read(event, old.write, new.write)
        if old.written == new.written or carried:
            for a, b in zip(old.write[1], new.write[1], strict=False):
                if not self.root.is_beyond_sets(a):
                    continue
                both = with_rests(a, b, self.root, self.new) if carried else None
                if both is None:
                    self.same_index(a, b, event)
                    continue
                # To which cell a partial sum is flushed is asked besides.
                for one, two in both.beyond:
                    self.same(one, two, event)
        if not self.same_start(old, new):
            # What is kept on the way in another type is the nearer reason, and comes first.
            self.same(old.rhs, new.rhs, event)
            self.same_type(old, new, event)

    def same_type(self, old: Statement, new: Statement, event: ReadEvent) -> None:
        """Whether a line is computed in its type: integers that were kept have one, inames none."""
        if old.rhs is new.rhs:
            return
        kinds = (self.root_types.of(old.rhs), self.new_types.of(new.rhs))
        if all(isinstance(kind, np.dtype) for kind in kinds) and kinds[0] != kinds[1]:
            self.different(event, f"{kinds[0]} was computed, and {kinds[1]} is now")

    def same_start(self, old: Statement, new: Statement) -> bool:
        """Whether both start the same reduction from its neutral element, of whatever type."""
        kernel = self.new.kernel
        temporary = kernel.temporary_by_name.get(new.written)
        if old.kind != "init" or temporary is None or temporary.accumulates is None:
            return False
        operation = operations_of(kernel.reductions)[temporary.accumulates]
        expected = [operation.start(None), operation.start(temporary.dtype)]
        value = new.rhs
        alike = [e for e in expected if value == e or (e != e and value != value)]
        return is_literal(value) and bool(alike)

    def ends(self, array: str) -> None:
        """Check the final contents of an argument that the text writes."""
        access_of = {s.id: s.write for s in self.root.writers(array)}
        for move in self.check.moves(array):
            if move.operation is not None:
                self.check.partial.check_flush(move)
        if self.order.matters(array):
            self.order.writes(array)
        if self.order.is_scattered(array):
            return
        for origin, access in access_of.items():
            left, sources = self.check.dataflow.at_end(origin)
            where = (
                renamed(left, {READER: END})
                & self.new.kernel.assumptions.set
                & self.check.lineage.sizes
            )
            if where.is_empty():
                continue
            statement = self.root.statement[origin]
            bounds = self.root.bounds_from_data(origin)
            values = {i: variable(i, END) for i in (*statement.inames, *bounds)}
            event = ReadEvent(where, Instance(None, END), origin, values, {}, None, sources)
            indices = tuple(substitute(i, values) for i in access[1])
            self.read(event, access, (array, indices))
        self.extra_stores(array)

    def extra_stores(self, array: str) -> None:
        """Check that stores to cells which the text does not write store their old values."""
        for statement in self.check.copy_statements(array):
            at = Instance(statement.id, BASE)
            where, everywhere = self.check.runs(at)
            indices = tuple(self.new.named(i, BASE) for i in statement.write[1])
            for writer in self.root.writers(array):
                w = Instance(writer.id, WRITER)
                cell = self.root.write_cell(w)
                both = where & self.root.domain(w)
                for a, b in zip(cell.indices, indices, strict=True):
                    both = both & equal(a, b)
                where = where - self.check.onto(both, where)
            if where.is_empty():
                continue
            event = ReadEvent(where, at, statement.id, {}, everywhere, at)
            self.same(Untouched(array, indices), statement.rhs, event)
