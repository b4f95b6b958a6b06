"""The final contents of argument cells, as terms over the initial contents.

The last writers come from :mod:`loopkit._poly.dataflow`. A value under a condition becomes a
choice, and a reduction becomes its operation over a set of values. Values of loop-carried
recurrences have no term, nor have cells whose position depends on data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._algebra.conditions import choose, conjunction, negation
from loopkit._algebra.make import make_term, substitute_names
from loopkit._algebra.polynomials import scaled
from loopkit._algebra.reading import term_of
from loopkit._algebra.terms import (
    TRUE,
    ZERO,
    Term,
    UnreadableError,
    is_constant,
    name,
    node,
    subterms,
)
from loopkit._algebra.typed import TypedReader, sort_of
from loopkit._arrays import DType
from loopkit._cached import memoised
from loopkit._expression import variable_names
from loopkit._hidden import KILLER, READER, WRITER, hidden, instance
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._poly.dataflow import Sources, commute, dataflow_of, is_update
from loopkit._poly.pairs import Instance, Undecided, equal, renamed, without
from loopkit._promotion import INTEGERS, promote
from loopkit._types import known_types
from loopkit._verify.canonicalize import as_updates
from loopkit._verify.solver import Solver
from loopkit._verify.totals import Points, lengths

Indices = tuple[Expression, ...]

_MODULAR = frozenset(("sum", "product", "bit_and", "bit_or", "bit_xor"))
"""Operations whose low bits hang on low bits alone."""

_DEEPEST = 64
"""Over so many statements may a value be passed on."""

_LARGEST = 2000
"""Of so many parts may a value consist."""


Pieces = list[tuple[isl.Set, Term]]
"""Values, each with where a cell has it: sets that are disjoint."""


@dataclass(frozen=True)
class Cells:
    """The final contents of the cells of an argument that may be written, and those ``before``.

    Over names for the subscripts of a cell, and sizes.
    """

    where: isl.Set
    pieces: Pieces
    before: Term

    @property
    def everywhere(self) -> Pieces:
        """The values of all cells."""
        return [*self.pieces, (self.where.complement(), self.before)]


@memoised
def cells_of(kernel: Kernel) -> Mapping[str, Cells]:
    """The final contents of a kernel's outputs (memoised).

    Raises :class:`~loopkit._poly.pairs.Undecided` for values without a term.
    """
    values = _Values(as_updates(kernel))
    try:
        return {name: values.at_end(name) for name in values.outputs}
    except UnreadableError:
        raise Undecided("a value is more than arithmetic of what arguments hold") from None


class _Values:
    """Computes the values that statements store, each once."""

    def __init__(self, kernel: Kernel) -> None:
        self.flow = dataflow_of(kernel)
        self.model = self.flow.model
        self.types = known_types(self.model.kernel)
        self.found: dict[str, tuple[Term, Term] | None] = {}
        self.outputs = sorted(kernel.writers.keys() & kernel.arg_by_name.keys())

    def at_end(self, array: str) -> Cells:
        """The final contents of an argument."""
        where = _sets.universe() - _sets.universe()
        writes: dict[str, isl.Set] = {}
        writers = self.model.writers(array)
        names = [hidden("cell", axis) for axis in range(len(writers[0].write[1]))]
        for writer in writers:
            self.check_known(writer)
            if len(writer.write[1]) != len(names):
                raise Undecided(f"'{array}' has subscripts of several kinds")
            left, sources = self.flow.at_end(writer.id)
            for text, index in zip(names, writer.write[1], strict=True):
                left = left & equal(prim.Variable(text), self.model.named(index, READER))
            where = where | without(left, READER)
            for other, relation in sources.writes.items():
                seen = without(left & relation, READER)
                writes[other] = writes[other] | seen if other in writes else seen
        held = self.untouched(array, tuple(map(name, names)))
        where = where.coalesce()
        return Cells(where, self.last(held, writes, where), held)

    def dtype(self, array: str) -> DType:
        """The type of what an array holds."""
        found = self.types[array]
        if not isinstance(found, np.dtype):
            raise UnreadableError(array)
        return found

    def untouched(self, array: str, indices: tuple[Term, ...]) -> Term:
        """What a cell holds that nothing has written."""
        dtype = self.dtype(array)
        return node("read", sort_of(dtype), indices, (array, dtype.name))

    def check_known(self, writer: Statement) -> None:
        """Raise :class:`Undecided` where data decide what a statement writes, or how often."""
        bounds = self.model.bounds_from_data(writer.id)
        if writer.is_atomic or bounds or self.model.cells_by_data(writer):
            raise Undecided(f"data decide what '{writer.id}' writes")

    def reader(self, statement: Statement, *, anyway: bool) -> TypedReader:
        """Reads the expressions of a statement."""
        return TypedReader(self.types, lambda a, i: self.read(statement, a, i, anyway=anyway))

    def read(self, reader: Statement, array: str, indices: Indices, *, anyway: bool) -> Term:
        """What a statement reads, over its inames; in a condition ``anyway``."""
        at = self.reader(reader, anyway=anyway)
        if array not in self.model.written:
            if array in self.model.kernel.temporary_by_name:
                raise Undecided(f"'{array}' is a table of a kernel's own")
            return self.untouched(array, tuple(map(at.index, indices)))
        if any(map(self.model.is_beyond_sets, indices)):
            raise Undecided("data decide which cell is read")
        sources: Sources = self.flow.of_read(reader.id, (array, indices), anyway=anyway)
        writes = {w: renamed(relation, {READER: ""}) for w, relation in sources.writes.items()}
        held = self.untouched(array, tuple(map(at.index, indices)))
        domain = self.model.domain(Instance(reader.id, ""))
        *others, (_, value) = self.last(held, writes, domain)
        for where, other in others:
            value = choose(_condition(where.gist(domain)), other, value)
        return value

    def last(self, held: Term, writes: Mapping[str, isl.Set], domain: isl.Set) -> Pieces:
        """The contents of a cell after some writes, over the names of a domain; ``held`` before."""
        if self.model.data.intersection(_sets.names_of(domain)):
            raise Undecided("data decide how often a loop runs")
        seen = {w: without(relation & domain, KILLER) for w, relation in writes.items()}
        pieces = [(domain, held)]
        for writer in self.in_order(seen):
            statement, relation = self.model.statement[writer], seen[writer]
            self.check_known(statement)
            if is_update(statement):  # where there is none, nothing is added
                pieces = [(where, self.updated(statement, relation, v)) for where, v in pieces]
                continue
            here, now = without(relation, WRITER), dict[Term, isl.Set]()
            stored, guard = self.stored(statement, relation)
            for where, value in pieces:
                value = choose(guard, stored, value)
                now[value] = now[value] | where & here if value in now else where & here
            pieces = [(where - here, value) for where, value in pieces]
            pieces += [(where, value) for value, where in now.items()]
            pieces = [(where, value) for where, value in pieces if not where.is_empty()]
            if sum(1 for _ in subterms(*now)) > _LARGEST:
                raise Undecided("a value is too long")
        return pieces or [(domain, held)]

    def in_order(self, writes: Mapping[str, isl.Set]) -> Iterator[str]:
        """Writes of one cell, those first that others come after."""
        left = {w: relation for w, relation in writes.items() if not relation.is_empty()}
        while left:
            first = [w for w in left if not any(self.precedes(o, w, left) for o in left if o != w)]
            if not first:
                raise Undecided("now one write comes last, now another")
            yield from sorted(first)
            left = {w: relation for w, relation in left.items() if w not in first}

    def precedes(self, one: str, two: str, writes: Mapping[str, isl.Set]) -> bool:
        """Whether one write may come before another that the same reader may see."""
        if commute(self.model.statement[one], self.model.statement[two]):
            return False
        both = writes[one] & renamed(writes[two], {WRITER: KILLER})
        if both.is_empty():
            return False
        pieces = self.model.order.before(Instance(one, WRITER), Instance(two, KILLER))
        return any(not (both & piece).is_empty() for piece in pieces)

    def stored(self, writer: Statement, relation: isl.Set) -> tuple[Term, Term]:
        """What a write stores, and under which condition, over the names of who sees it."""
        value, guard = self.of_statement(writer)
        outer = [n for n in _sets.names_of(relation) if n not in self.labelled(writer)]
        solver = Solver(relation, self.labelled(writer), {n: n for n in outer}, ())
        values = {}
        for iname, labelled in zip(sorted(writer.inames), self.labelled(writer), strict=True):
            found = solver.value(labelled)
            if found is None or not relation.is_subset(equal(prim.Variable(labelled), found)):
                raise Undecided(f"'{writer.id}' stores more than one value there")
            values[iname] = term_of(found)
        return substitute_names(value, values), substitute_names(guard, values)

    def labelled(self, writer: Statement) -> list[str]:
        """The names of a writer's inames in relations."""
        return [instance(i, WRITER) for i in sorted(writer.inames)]

    def of_statement(self, writer: Statement) -> tuple[Term, Term]:
        """What a statement stores, or adds, and under which condition, over its inames."""
        if writer.id not in self.found:
            self.found[writer.id] = None
            if sum(found is None for found in self.found.values()) > _DEEPEST:
                raise Undecided("values are passed on in too many steps")
            self.found[writer.id] = self.find(writer)
        found = self.found[writer.id]
        if found is None:
            raise Undecided(f"'{writer.id}' goes on with what it has stored itself")
        return found

    def find(self, writer: Statement) -> tuple[Term, Term]:
        """The value and the condition of a statement."""
        own = self.reader(writer, anyway=False)
        asked = self.reader(writer, anyway=True)
        conditions = map(asked.condition, self.model.conditions_on_data(writer))
        guard, dtype = conjunction(*conditions), self.dtype(writer.written)
        kind = own.kind(writer.rhs)
        if is_update(writer) and isinstance(kind, np.dtype) and kind != dtype:
            common = promote(kind, dtype)
            is_modular = writer.operation in _MODULAR or common == dtype
            if not ({kind, dtype, common} <= INTEGERS and is_modular):
                raise Undecided(f"'{writer.id}' adds what is of another type")
        return own.stored(writer.rhs, dtype), guard

    def updated(self, writer: Statement, relation: isl.Set, start: Term) -> Term:
        """The contents of a cell after updates of a reduction."""
        body, guard = self.of_statement(writer)
        if guard is not TRUE:
            if writer.operation != "sum" or body.sort != "Z":
                raise Undecided(f"data decide what '{writer.id}' adds")
            body = choose(guard, body, ZERO)
        inside = sum(t.op == "reduce" for t in subterms(body))
        outer = _sets.involved_names(relation).difference(self.labelled(writer))
        values: dict[str, Term] = {}
        bound: list[str] = []
        for iname, labelled in zip(sorted(writer.inames), self.labelled(writer), strict=True):
            known = _sets.value_by_equality(relation, labelled)
            if known is not None and variable_names(known) <= outer:
                values[iname] = term_of(known)
                relation = _sets.project_out(relation, [labelled])
            else:
                bound.append(hidden("bound", inside, len(bound)))
                values[iname] = name(bound[-1])
                relation = _sets.rename(relation, {labelled: bound[-1]})
        free = sorted(outer.difference(self.model.kernel.sizes))
        parameters = tuple(hidden("parameter", at) for at in range(len(free)))
        points = Points(
            _sets.rename(relation, dict(zip(free, parameters, strict=True))).coalesce(),
            tuple(bound),
            parameters,
        )
        operation, body = writer.operation, substitute_names(body, values)
        counts = lengths(relation, bound[0]) if len(bound) == 1 and is_constant(body) else None
        if counts is not None and operation == "sum" and body.sort == "Z":
            times = (choose(_condition(where), length, ZERO) for where, length in counts)
            total = make_term("add", start, *(scaled(t, body.data) for t in times))
            return make_term("wrap", total, data=self.dtype(writer.written).name)
        is_any = operation == "any"
        args = (negation(start), negation(body)) if is_any else (start, body)
        data = ("all" if is_any else operation, points)
        found = node("reduce", start.sort, (*args, *map(name, free)), data)
        if start.sort == "Z":
            found = make_term("wrap", found, data=self.dtype(writer.written).name)
        return negation(found) if is_any else found


def _condition(where: isl.Set) -> Term:
    """Where the names of a set are one of its points."""
    try:
        return term_of(_sets.conditions(where.coalesce().compute_divs()))
    except _sets.NotAffineError:
        raise Undecided("a set is no condition") from None
