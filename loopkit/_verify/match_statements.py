"""Choosing the origin of a statement among the statements of the other kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._expression import variable_names
from loopkit._hidden import NEW, NEW_SOURCE, OLD, READER, WRITER
from loopkit._kernel import Statement
from loopkit._poly.pairs import equal
from loopkit._verify.match_sources import SourceMatcher
from loopkit._verify.search_context import SearchContext
from loopkit._verify.search_state import ChooseOrigin, MatchValues, Pending, Reader, State


class StatementMatcher:
    """Pairs statements of two kernels, or follows those that only pass values on."""

    def __init__(self, context: SearchContext, sources: SourceMatcher) -> None:
        self.context = context
        self.sources = sources
        self.root = context.root
        self.new = context.new

    def at_the_end(self, writer: Statement) -> ChooseOrigin:
        """A statement that writes an output is paired with one that writes the same cells."""
        name, indices = writer.write
        its = [self.new.model.named(i, NEW) for i in indices]
        found = []
        for other in self.context.ranked(self.root.model.writers(name), writer):
            mine = [self.root.model.named(i, OLD) for i in other.write[1]]
            where = self.context.both(other.id, writer.id)
            for a, b in zip(mine, its, strict=True):
                if self.context.is_integer(self.root, a, OLD) and self.context.is_integer(
                    self.new, b, NEW
                ):
                    where = where & equal(a, b)
            if not where.is_empty():
                found.append((other.id, where))
        return ChooseOrigin(writer.id, tuple(found), self.new.is_copy(writer))

    def choose(
        self, todo: ChooseOrigin, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        """The origins that a statement may have, or that it has none and only carries values."""
        origins = [old for old, _ in todo.candidates]
        if todo.new in state.origin:
            if state.origin[todo.new] in origins:
                yield state, rest
            return
        if todo.new in state.copies:
            if todo.optional:
                yield state, rest
            return
        statement = self.new.model.statement[todo.new]
        passed = self.passed_on(todo, rest, state) if todo.optional else iter(())
        direct = self.pair(todo, rest, state)
        if all(self.root.is_copy(self.root.model.statement[o]) for o in origins):
            yield from direct
            yield from passed
        else:
            yield from passed
            yield from direct
        if todo.optional:
            yield replace(state, copies=state.copies | {todo.new}), rest
        elif not origins:
            self.context.note(f"'{statement.id}' writes cells that nothing writes there")

    def pair(
        self, todo: ChooseOrigin, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        """Pair a statement with one of its candidates."""
        its = self.new.model.statement[todo.new]
        for origin, where in todo.candidates:
            mine = self.root.model.statement[origin]
            if mine.operation != its.operation:
                self.context.note(f"'{mine.id}' and '{its.id}' are different reductions")
                continue
            readers = Reader(mine, OLD), Reader(its, NEW)
            pending = rest
            conditions = (
                [p for p in mine.predicates if self.root.model.condition(p) is None],
                [p for p in its.predicates if self.new.model.condition(p) is None],
            )
            if len(conditions[0]) != len(conditions[1]):
                continue
            couples = list(zip(*conditions, strict=True))
            for a, b in zip(mine.write[1], its.write[1], strict=False):
                if variable_names(a) & self.root.model.data and mine.written == its.written:
                    couples.append((a, b))
            for a, b in [(mine.rhs, its.rhs), *couples]:
                pending = (MatchValues(its.id, *readers, a, b), pending)
            for name in self.root.model.bounds_from_data(origin):
                if name in self.new.model.bounds_from_data(its.id):
                    scalar = prim.Variable(name)
                    pending = (MatchValues(its.id, *readers, scalar, scalar, True), pending)
            self.context.paired.setdefault(its.id, {}).setdefault(origin, where)
            yield state.paired(its.id, origin, where), pending

    def passed_on(
        self, todo: ChooseOrigin, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        """The statement only stores what others have computed: these have the origins."""
        statement = self.new.model.statement[todo.new]
        access = self.new.access(statement.rhs)
        if access is None or not self.new.is_temporary(access[0]):
            return
        pending = rest
        found = False
        for source in self.new.sources(statement.id, access):
            if self.new.is_copy(source.writer) and source.writer.operation is None:
                inner = self.new.access(source.writer.rhs)
                if inner is not None and not self.new.is_temporary(inner[0]):
                    continue
            candidates = []
            for origin, where in todo.candidates:
                relation = self.sources.renamed(source.relation, {WRITER: NEW_SOURCE, READER: NEW})
                onto = self.sources.composed(where & relation, OLD, NEW_SOURCE)
                if not onto.is_empty():
                    candidates.append((origin, onto))
            found = True
            pending = (
                ChooseOrigin(source.writer.id, tuple(candidates), self.new.is_copy(source.writer)),
                pending,
            )
        if found:
            yield replace(state, copies=state.copies | {todo.new}), pending
