"""Which instances of statements compute equal values, for all data.

Two instances of an expression have equal values if everything they depend on is equal: numbers,
cells of arrays that nothing writes, and reads that see the same write or writes of equal values.
The analysis assumes for all statements on which a read depends that their values do not depend on
certain inames, and drops the assumption if a source contradicts it. What remains holds by
induction over time (uniformity or divergence analysis: Coutinho and others 2011, for programs
without sets).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import islpy as isl

from loopkit import _budget, _sets
from loopkit._budget import SpentError, apart_from_kept
from loopkit._cached import memoised, once
from loopkit._expression import Access, access_of, is_constant, parts_of, substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import (
    NEW,
    NEW_SOURCE,
    OLD,
    OLD_SOURCE,
    READER,
    SIBLING,
    WRITER,
    instance,
    variable,
)
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._poly.dataflow import Sources, commute, dataflow_of, is_update
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, Undecided, equal, equal_inames, without
from loopkit._relations import reachable
from loopkit._same import key_of, same

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Computed:
    """The origin of a value: a statement, and its inames over the names of a set."""

    statement: str
    values: Mapping[str, Expression]


@memoised
def equal_values_of(kernel: Kernel) -> EqualValues:
    """The equal-values analysis of a kernel (memoised on it)."""
    return EqualValues(kernel)


class EqualValues:
    """Compares values that instances of one kernel compute."""

    def __init__(self, kernel: Kernel) -> None:
        self.dataflow = dataflow_of(kernel)
        self.model = self.dataflow.model
        self._known: dict[str, Mapping[str, frozenset[str]]] = {}
        self._assumed: dict[str, frozenset[str]] | None = None

    def stored(self, one: Computed, two: Computed, where: isl.Set) -> isl.Set:
        """The part of ``where`` in which two instances are known to store one value.

        ``where`` is ``{ names of both, sizes }``.  Nothing where isl takes too long to tell.
        """
        mine, its = (self.model.statement[c.statement] for c in (one, two))
        nothing = where - where
        if is_update(mine) or is_update(its) or not same(mine.rhs, its.rhs):
            return nothing
        try:
            with apart_from_kept(_budget.EQUAL_VALUES):
                return self.equal(mine.rhs, one, two, where)
        except (SpentError, Undecided):
            return nothing

    def equal(self, expr: Expression, one: Computed, two: Computed, where: isl.Set) -> isl.Set:
        """The part of ``where`` in which an expression has one value in two instances."""
        if is_constant(expr) or where.is_empty():
            return where
        names = variable_names(expr)
        if names <= self.model.integers:
            try:
                return where & equal(substitute(expr, one.values), substitute(expr, two.values))
            except Undecided:
                return where & _alike(names, one, two)
        access = access_of(expr, self.model.data)
        parts = parts_of(expr) if access is None else access[1]
        for part in parts:
            where = self.equal(part, one, two, where)
        if access is None or access[0] not in self.model.written or where.is_empty():
            return where
        both = [self.sources(c.statement, access) for c in (one, two)]
        if both[0] is None or both[1] is None:
            return where - where
        return where - self.differing((one, both[0]), (two, both[1]), where)

    def sources(self, statement: str, access: Access) -> Sources | None:
        """Where a read's value comes from; None where data decide."""
        model = self.model
        users = [s for s in model.kernel.statements if s.written == access[0]]
        if any(model.bounds_from_data(s.id) for s in (model.statement[statement], *users)):
            return None
        if any(map(model.is_beyond_sets, access[1])):
            return None
        if any(map(model.cells_by_data, users)):
            return None
        return self.dataflow.of_read(statement, access)

    def differing(
        self, mine: tuple[Computed, Sources], its: tuple[Computed, Sources], where: isl.Set
    ) -> isl.Set:
        """Where two reads of a cell may see different values; a superset, within ``where``."""
        (one, first), (two, second) = mine, its
        names = dict.fromkeys((*first.writes, *second.writes))
        before = _Seen(self, one, first, OLD_SOURCE, where)
        after = _Seen(self, two, second, NEW_SOURCE, where)
        bad = before.untouched - after.untouched
        bad = bad | (after.untouched - before.untouched)
        # The same writes leave the same, whatever data decide of them.
        other = bad
        for name in names:
            other = other | _apart(before.of(name), after.as_seen_by(before, name), where)
        if other.is_empty():
            return other
        statements = [self.model.statement[name] for name in names]
        updates = [s for s in statements if is_update(s)]
        if not all(
            is_update(s) or (first.is_sure(s.id) and second.is_sure(s.id)) for s in statements
        ):
            return other
        if not updates:
            for a in names:
                for b in names:
                    pairs = before.of(a) & after.of(b)
                    bad = bad | _onto(pairs - self.alike(a, b), where)
            return bad & other
        if not all(commute(updates[0], s) for s in updates):
            return other
        for name in names:
            own = self.model.statement[name].inames - self.model.statement[one.statement].inames
            unpaired = self.unpaired(name, before, after, where)
            if not unpaired.is_empty():
                unpaired = unpaired & self.unpaired(name, before, after, where, own)
            bad = bad | unpaired
        return bad & other

    def unpaired(
        self, name: str, before: _Seen, after: _Seen, where: isl.Set, own: frozenset[str] = _NONE
    ) -> isl.Set:
        """Where the terms of two sets are not known to be alike one by one; a superset.

        Two of them belong together that agree in ``own`` inames, and in all that values depend on.
        """
        inames = self.model.statement[name].inames
        agree = own | (self.varying(name) & inames)
        bad = where - where
        for one, two in ((before, after), (after, before)):
            mine, its = one.of(name), two.of(name)
            alike = equal_inames(agree, one.label, two.label)
            bad = bad | _onto(mine - _onto(its & alike & mine, mine), where)
            # It does not show how many there are where several agree.
            others = _sets.rename(mine, _marks(inames, one.label, SIBLING))
            pairs = mine & others & equal_inames(agree, one.label, SIBLING)
            bad = bad | _onto(pairs - equal_inames(inames, one.label, SIBLING), where)
        return bad

    def alike(self, a: str, b: str) -> isl.Set:
        """``{ inames·OLD_SOURCE, inames·NEW_SOURCE : both write equal values }``, a subset."""
        inames = self.varying(a) & self.model.statement[a].inames
        found = equal_inames(inames, OLD_SOURCE, NEW_SOURCE)
        return found if a == b else found - found

    # {{{ what values depend on

    def varying(self, name: str) -> frozenset[str]:
        """The inames on which the value that a statement stores may depend, and if it does."""
        if self._assumed is not None:
            return self._assumed[name]
        return once(self._known, name, self._find_varying, name)[name]

    def _find_varying(self, name: str) -> Mapping[str, frozenset[str]]:
        # In the order of the text, what a statement reads is known first: terms that are taken for
        # alike before that count as one.
        behind = reachable([name], self._behind)
        group = [s.id for s in self.model.kernel.statements if s.id in behind]
        found = {one: self._direct(self.model.statement[one]) for one in group}
        self._assumed = found
        try:
            before: dict[str, frozenset[str]] = {}
            while before != found:
                before = dict(found)
                for one in group:
                    found[one] |= self._indirect(self.model.statement[one])
        finally:
            self._assumed = None
        return found

    def _behind(self, name: str) -> Iterator[str]:
        for array, _ in self._reads(self.model.statement[name]):
            yield from (w.id for w in self.model.writers(array))

    def _reads(self, statement: Statement) -> Iterator[Access]:
        """What a statement reads, but for the cell that an update changes."""
        waiting = [statement.rhs, *statement.predicates]
        for expr in waiting:
            access = access_of(expr, self.model.data)
            if access is not None and access[0] in self.model.written:
                yield access
            waiting += [] if is_constant(expr) else parts_of(expr)

    def _direct(self, statement: Statement) -> frozenset[str]:
        by_data = self.model.conditions_on_data(statement)
        names = map(variable_names, (statement.rhs, *by_data))
        return frozenset().union(*names) & statement.inames

    def _indirect(self, statement: Statement) -> frozenset[str]:
        """Further inames of a statement on which the values seen by its reads depend."""
        found = self.varying(statement.id)
        for access in dict.fromkeys(self._reads(statement)):
            sources = self.sources(statement.id, access)
            if sources is None:
                return statement.inames
            agree = self.dataflow.agreeing(statement.id, access)
            for name in sources.writes:
                found |= self.varying(name) & agree.get(name, _NONE)
            if self._is_one(sources, agree) or self._is_told(statement, sources, found):
                continue
            told = statement.inames
            for iname in sorted(told - found):
                if self._is_told(statement, sources, told - {iname}):
                    told -= {iname}
            found = told
        return found

    def _is_one(self, sources: Sources, agree: Mapping[str, frozenset[str]]) -> bool:
        """Whether a read sees one write, of a value that inames of both decide."""
        names = [*sources.writes]
        return (
            len(names) == 1
            and not is_update(self.model.statement[names[0]])
            and sources.is_sure(names[0])
            and self.varying(names[0]) <= agree.get(names[0], _NONE)
            and bool(sources.untouched.is_empty())
        )

    def _is_told(self, statement: Statement, sources: Sources, inames: frozenset[str]) -> bool:
        """Whether reads see one value where some inames agree."""
        one, two = (
            Computed(statement.id, {i: variable(i, label) for i in statement.inames})
            for label in (OLD, NEW)
        )
        where = equal_inames(inames, OLD, NEW)
        for label in (OLD, NEW):
            where = where & self.model.domain(Instance(statement.id, label))
        return bool(self.differing((one, sources), (two, sources), where).is_empty())

    # }}}


class _Seen:
    """What one read may see: writes whose inames carry ``label``, over the names of a set."""

    def __init__(
        self, values: EqualValues, reader: Computed, sources: Sources, label: str, where: isl.Set
    ) -> None:
        self.model = values.model
        self.reader = reader
        self.sources = sources
        self.label = label
        self.where = where
        self._found: dict[str, isl.Set] = {}

    @property
    def untouched(self) -> isl.Set:
        """The part of the set in which no write may be seen."""
        return self._tied(self.sources.untouched)

    def _tied(self, relation: isl.Set) -> isl.Set:
        """A relation with the reader's inames, by what they are over the names of the set."""
        found = self.where & relation
        for iname, value in self.reader.values.items():
            found = found & equal(variable(iname, READER), value)
        return without(found, READER)

    def of(self, name: str) -> isl.Set:
        """``{ names of the set, inames·label : the write is seen }``."""
        if name not in self._found:
            relation = self.sources.writes.get(name)
            if relation is None:
                self._found[name] = self.where - self.where
            else:
                marks = _marks(self.model.statement[name].inames, WRITER, self.label)
                self._found[name] = self._tied(_sets.rename(relation, marks))
        return self._found[name]

    def as_seen_by(self, other: _Seen, name: str) -> isl.Set:
        """:meth:`of` with the labels of another read."""
        marks = _marks(self.model.statement[name].inames, self.label, other.label)
        return _sets.rename(self.of(name), marks)


def value_key(model: Model, statement: Statement) -> object:
    """What statements have in common whose values are compared with others' alike."""
    is_plain = all(name not in model.written for name, _ in statement.reads)
    return key_of(statement.rhs) if is_plain else statement.id


def _marks(inames: frozenset[str], one: str, two: str) -> dict[str, str]:
    """Names of an instance, each with that of another one."""
    return {instance(i, one): instance(i, two) for i in inames}


def _alike(names: frozenset[str], one: Computed, two: Computed) -> isl.Set:
    result = _sets.universe()
    for name in sorted(names):
        if name in one.values and name in two.values:
            result = result & equal(one.values[name], two.values[name])
        elif name in one.values or name in two.values:
            return result - result
    return result


def _apart(a: isl.Set, b: isl.Set, where: isl.Set) -> isl.Set:
    return _onto(a - b, where) | _onto(b - a, where)


def _onto(found: isl.Set, like: isl.Set) -> isl.Set:
    """A set without the names that another one lacks."""
    return _sets.project_onto(found, _sets.names_of(like))
