"""What the terms of a sum are made of, and the sets in which they stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._check.value_types import ValueTypes
from loopkit._expression import Access, ExpressionMapper, access_of, variable_names
from loopkit._hidden import READER, WRITER, hidden, label_of
from loopkit._kernel import Statement
from loopkit._nodes import Expression, subtrahend
from loopkit._poly.dataflow import Dataflow
from loopkit._poly.model import Model
from loopkit._poly.pairs import Undecided, equal, renamed
from loopkit._same import Key

Form = Key | tuple[Key, ...] | None

Terms = dict[tuple[str, Form], isl.Set]
"""For each output and form of a term the cells that have it, and what it reads: ``{ cell··axis,
slot··number, sizes }``. With None in the place of a form the cells that are written."""


class TermReader:
    """What those who follow values need to know of a kernel."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        self.model = flow.model
        self.types = ValueTypes(flow.model)
        self.output = ""

    def writers(self, name: str) -> tuple[Statement, ...]:
        """The statements that write an array: those of which all is known."""
        found = self.model.writers(name)
        for writer in found:
            is_known = writer.operation in (None, "sum") and not writer.is_atomic
            if not (is_known and self.model.is_exact(writer)):
                raise Undecided(f"'{writer.id}' is more than a sum, or data decide about it")
        return found

    def behind_read(
        self, access: Access, reader: Statement, where: isl.Set, here: str, there: str
    ) -> Iterator[tuple[Statement, isl.Set]]:
        """The last stores of what a temporary holds, and updates since, with where they are read.

        Inames of the reader have the label ``here`` in ``where``, those of writers ``there``.
        """
        sources = self.flow.of_read(reader.id, access)
        if not (where & renamed(sources.untouched, {READER: here})).is_empty():
            raise Undecided(f"'{reader.id}' reads what nobody wrote")
        for writer, relation in sources.writes.items():
            onto = where & renamed(relation, {READER: here, WRITER: there})
            yield self.model.statement[writer], onto

    def bound(
        self, where: isl.Set, word: str, indices: tuple[Expression, ...], label: str
    ) -> isl.Set:
        """``where`` with names for the values of some indices."""
        self.check_affine(indices)
        for number, index in enumerate(indices):
            name = prim.Variable(hidden(word, number))
            where = where & equal(name, self.model.named(index, label))
        return where

    def check_affine(self, indices: tuple[Expression, ...]) -> None:
        """Raise :class:`Undecided` where data decide which cell some indices are of."""
        for index in indices:
            if not _sets.is_affine(index) or not variable_names(index) <= self.model.integers:
                raise Undecided("data decide which cell is read")

    def once(self, where: isl.Set) -> isl.Set:
        """``where`` without inames; raises :class:`Undecided` where a term stands twice."""
        for name in _sets.names_of(where):
            if label_of(name):
                position = where.find_dim_by_name(isl.dim_type.param, name)
                last = where.dim(isl.dim_type.set)
                where = where.move_dims(isl.dim_type.set, last, isl.dim_type.param, position, 1)
        if not where.is_singleton():
            raise Undecided(f"a term of '{self.output}' stands more than once")
        return where.params()


def as_term(expr: Expression) -> Expression:
    """A term that is not the first one: what is subtracted is computed before."""
    subtracted = subtrahend(expr)
    return expr if subtracted is None else prim.Product((-1, subtracted))


class Slots(ExpressionMapper):
    """The form of a term: numbered names stand for its subscripts, which are kept."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self.indices: tuple[Expression, ...] = ()

    def map_subscript(self, expr: Any) -> Expression:
        access = access_of(expr, self.model.data)
        assert access is not None
        self.check_read(access[0])
        numbers = range(len(self.indices), len(self.indices) + len(access[1]))
        self.indices += access[1]
        slots = tuple(prim.Variable(hidden("slot", number)) for number in numbers)
        return prim.Subscript(prim.Variable(access[0]), slots)

    def map_variable(self, expr: Any) -> Expression:
        self.check_read(expr.name)
        return expr

    def check_read(self, name: str) -> None:
        """Raise :class:`Undecided` for what is no argument that keeps its value."""
        if name not in self.model.kernel.arg_by_name or name in self.model.written:
            raise Undecided(f"a term reads '{name}', which is no argument, or is written")
