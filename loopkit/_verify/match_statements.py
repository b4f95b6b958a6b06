"""Choosing the origin of a statement among the statements of the other kernel."""

from __future__ import annotations

from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._expression import variable_names
from loopkit._hidden import NEW, NEW_SOURCE, OLD, READER, WRITER
from loopkit._kernel import Statement
from loopkit._poly.pairs import equal
from loopkit._verify.search_context import SearchContext, composed, renamed
from loopkit._verify.search_state import (
    ChooseOrigin,
    MatchValues,
    Options,
    Pending,
    Reader,
    State,
)


def at_the_end(context: SearchContext, writer: Statement) -> ChooseOrigin:
    """A statement that writes an output is paired with one that writes the same cells."""
    name, indices = writer.write
    its = [context.new.model.named(i, NEW) for i in indices]
    found = []
    for other in context.ranked(context.root.model.writers(name), writer):
        mine = [context.root.model.named(i, OLD) for i in other.write[1]]
        where = context.both(other.id, writer.id)
        for a, b in zip(mine, its, strict=True):
            if context.is_integer(context.root, a, OLD) and context.is_integer(context.new, b, NEW):
                where = where & equal(a, b)
        if not where.is_empty():
            found.append((other.id, where))
    return ChooseOrigin(writer.id, tuple(found), context.new.is_copy(writer))


def choose(context: SearchContext, todo: ChooseOrigin, rest: Pending, state: State) -> Options:
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
    statement = context.new.model.statement[todo.new]
    passed = passed_on(context, todo, rest, state) if todo.optional else iter(())
    direct = pair(context, todo, rest, state)
    if all(context.root.is_copy(context.root.model.statement[o]) for o in origins):
        yield from direct
        yield from passed
    else:
        yield from passed
        yield from direct
    if todo.optional:
        yield replace(state, copies=state.copies | {todo.new}), rest
    elif not origins:
        context.note(f"'{statement.id}' writes cells that nothing writes there")


def pair(context: SearchContext, todo: ChooseOrigin, rest: Pending, state: State) -> Options:
    """Pair a statement with one of its candidates."""
    its = context.new.model.statement[todo.new]
    for origin, where in todo.candidates:
        mine = context.root.model.statement[origin]
        if mine.operation != its.operation:
            context.note(f"'{mine.id}' and '{its.id}' are different reductions")
            continue
        readers = Reader(mine, OLD), Reader(its, NEW)
        pending = rest
        conditions = (
            [p for p in mine.predicates if context.root.model.condition(p) is None],
            [p for p in its.predicates if context.new.model.condition(p) is None],
        )
        if len(conditions[0]) != len(conditions[1]):
            continue
        couples = list(zip(*conditions, strict=True))
        for a, b in zip(mine.write[1], its.write[1], strict=False):
            if variable_names(a) & context.root.model.data and mine.written == its.written:
                couples.append((a, b))
        for a, b in [(mine.rhs, its.rhs), *couples]:
            pending = (MatchValues(its.id, *readers, a, b), pending)
        for name in context.root.model.bounds_from_data(origin):
            if name in context.new.model.bounds_from_data(its.id):
                scalar = prim.Variable(name)
                pending = (MatchValues(its.id, *readers, scalar, scalar, True), pending)
        context.paired.setdefault(its.id, {}).setdefault(origin, where)
        yield state.paired(its.id, origin, where), pending


def passed_on(context: SearchContext, todo: ChooseOrigin, rest: Pending, state: State) -> Options:
    """The statement only stores what others have computed: these have the origins."""
    statement = context.new.model.statement[todo.new]
    access = context.new.access(statement.rhs)
    if access is None or not context.new.is_temporary(access[0]):
        return
    pending = rest
    found = False
    for source in context.new.sources(statement.id, access):
        if context.new.is_copy(source.writer) and source.writer.operation is None:
            inner = context.new.access(source.writer.rhs)
            if inner is not None and not context.new.is_temporary(inner[0]):
                continue
        candidates = []
        for origin, where in todo.candidates:
            relation = renamed(source.relation, {WRITER: NEW_SOURCE, READER: NEW})
            onto = composed(context, where & relation, OLD, NEW_SOURCE)
            if not onto.is_empty():
                candidates.append((origin, onto))
        found = True
        pending = (
            ChooseOrigin(source.writer.id, tuple(candidates), context.new.is_copy(source.writer)),
            pending,
        )
    if found:
        yield replace(state, copies=state.copies | {todo.new}), pending
