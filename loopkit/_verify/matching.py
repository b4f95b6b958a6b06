"""Pairing statements of two kernels, by the values of their expressions and who wrote these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._check.compare_statements import parts
from loopkit._expression import Access, is_constant, variable_names
from loopkit._hidden import NEW, NEW_SOURCE, OLD, OLD_SOURCE, READER, WRITER
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._poly.pairs import Undecided, equal
from loopkit._same import key_of
from loopkit._verify import search_state
from loopkit._verify.canonicalize import commutes

_DEPTH = 12


def at_the_end(context: search_state.SearchContext, writer: Statement) -> search_state.ChooseOrigin:
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
    return search_state.ChooseOrigin(writer.id, tuple(found), context.new.is_copy(writer))


def choose(
    context: search_state.SearchContext,
    todo: search_state.ChooseOrigin,
    rest: search_state.Pending,
    state: search_state.State,
) -> search_state.Options:
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
    passed = _passed_on(context, todo, rest, state) if todo.optional else iter(())
    direct = _pair(context, todo, rest, state)
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


def _pair(
    context: search_state.SearchContext,
    todo: search_state.ChooseOrigin,
    rest: search_state.Pending,
    state: search_state.State,
) -> search_state.Options:
    """Pair a statement with one of its candidates."""
    its = context.new.model.statement[todo.new]
    for origin, where in todo.candidates:
        mine = context.root.model.statement[origin]
        if mine.operation != its.operation:
            context.note(f"'{mine.id}' and '{its.id}' are different reductions")
            continue
        readers = search_state.Reader(mine, OLD), search_state.Reader(its, NEW)
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
            pending = (search_state.MatchValues(its.id, *readers, a, b), pending)
        for name in context.root.model.bounds_from_data(origin):
            if name in context.new.model.bounds_from_data(its.id):
                scalar = prim.Variable(name)
                pending = (
                    search_state.MatchValues(its.id, *readers, scalar, scalar, True),
                    pending,
                )
        context.paired.setdefault(its.id, {}).setdefault(origin, where)
        yield state.paired(its.id, origin, where), pending


def _passed_on(
    context: search_state.SearchContext,
    todo: search_state.ChooseOrigin,
    rest: search_state.Pending,
    state: search_state.State,
) -> search_state.Options:
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
            relation = search_state.renamed(source.relation, {WRITER: NEW_SOURCE, READER: NEW})
            onto = search_state.composed(context, where & relation, OLD, NEW_SOURCE)
            if not onto.is_empty():
                candidates.append((origin, onto))
        found = True
        pending = (
            search_state.ChooseOrigin(
                source.writer.id, tuple(candidates), context.new.is_copy(source.writer)
            ),
            pending,
        )
    if found:
        yield replace(state, copies=state.copies | {todo.new}), pending


def same(
    context: search_state.SearchContext,
    todo: search_state.MatchValues,
    rest: search_state.Pending,
    state: search_state.State,
) -> search_state.Options:
    """Two expressions have one value: as what they are made of has, or what they read."""
    mine, its = context.root.access(todo.old_expr), context.new.access(todo.new_expr)
    if mine is not None and its is not None:
        yield from _same_access(context, todo, mine, its, rest, state)
    elif its is not None:
        yield from _follow(context, todo, its, rest, state, new=True)
    elif mine is not None:
        yield from _follow(context, todo, mine, rest, state, new=False)
    else:
        yield from _same_parts(context, todo, rest, state)


def _same_parts(
    context: search_state.SearchContext,
    todo: search_state.MatchValues,
    rest: search_state.Pending,
    state: search_state.State,
) -> search_state.Options:
    old, new = todo.old_expr, todo.new_expr
    if is_constant(old) and is_constant(new):
        # What a reduction starts from, the proof looks at.
        if key_of(old) == key_of(new) or todo.old_reader.statement.kind == "init":
            yield state, rest
            return
    elif context.is_integer(context.root, old, "") and context.is_integer(context.new, new, ""):
        related = _same_integers(context, todo, state)
        if related is not None:
            yield related, rest
            return
    elif type(old) is type(new):
        one, two = list(parts(old)), list(parts(new))
        couples = [(a, b) for a, b in zip(one, two, strict=False) if _is_part(a)]
        others = [(a, b) for a, b in zip(one, two, strict=False) if not _is_part(a)]
        if len(one) == len(two) and all(a == b for a, b in others):
            yield state, _all_same(todo, couples, rest)
            if commutes(old) and commutes(new):
                crossed = zip(old.children[::-1], new.children, strict=True)
                swapped = replace(state, swapped=(*state.swapped, new))
                yield swapped, _all_same(todo, crossed, rest)
            return
    context.unlike(todo)


def _is_part(value: object) -> bool:
    return isinstance(value, prim.ExpressionNode) or is_constant(value)


def _all_same(
    todo: search_state.MatchValues,
    couples: Iterable[tuple[Expression, Expression]],
    rest: search_state.Pending,
) -> search_state.Pending:
    """Still to do: each couple of expressions has one value, the first couple first."""
    for a, b in reversed(list(couples)):
        rest = (replace(todo, old_expr=a, new_expr=b), rest)
    return rest


def _same_integers(
    context: search_state.SearchContext, todo: search_state.MatchValues, state: search_state.State
) -> search_state.State | None:
    """Two affine expressions are equal; None where they are so for no instances, or for some."""
    mine, its = todo.old_reader.over(todo.old_expr), todo.new_reader.over(todo.new_expr)
    if mine is None or its is None:
        return state
    where = state.where[todo.new]
    try:
        agree = equal(mine, its)
    except Undecided:
        return state
    narrowed = where & agree
    if narrowed.is_empty():
        return None
    if where.is_subset(agree):
        return state
    statement = context.new.model.statement[todo.new]
    if context.on_its_own(where, statement).is_subset(context.on_its_own(narrowed, statement)):
        return state.related(todo.new, narrowed)
    context.narrowed.setdefault(todo.new, {}).setdefault(state.origin[todo.new], narrowed)
    return None


def _same_access(
    context: search_state.SearchContext,
    todo: search_state.MatchValues,
    mine: Access,
    its: Access,
    rest: search_state.Pending,
    state: search_state.State,
) -> search_state.Options:
    root, new = context.root, context.new
    if not root.is_temporary(mine[0]) and not new.is_temporary(its[0]):
        if mine[0] != its[0] or len(mine[1]) != len(its[1]):
            context.note(f"'{its[0]}' is read where '{mine[0]}' was")
            return
        yield state, _all_same(todo, zip(mine[1], its[1], strict=True), rest)
        return
    written = mine[0] in root.model.written and its[0] in new.model.written
    news = [s.writer for s in new.sources(todo.new_reader.statement.id, its)]
    olds = [s.writer for s in root.sources(todo.old_reader.statement.id, mine)]
    moves = [new.is_copy(w) for w in news], [root.is_copy(w) for w in olds]
    fetches = [new.is_input_copy(w) for w in news], [root.is_input_copy(w) for w in olds]
    # What is carried into a cell and computed further there cannot be followed to one source.
    mixed = any(any(side) and not all(side) for side in moves)
    followed = not todo.is_bound and not mixed
    carried = followed and any(map(any, moves))
    if followed and any(map(any, fetches)):
        written = False
    paired = replace(state, later=(*state.later, search_state.MatchWriters(todo, mine, its)))
    if written and not carried:
        yield paired, rest
    if new.is_temporary(its[0]):
        yield from _follow(context, todo, its, rest, state, new=True)
    if root.is_temporary(mine[0]):
        yield from _follow(context, todo, mine, rest, state, new=False)
    if written and carried:
        yield paired, rest


def _follow(
    context: search_state.SearchContext,
    todo: search_state.MatchValues,
    access: Access,
    rest: search_state.Pending,
    state: search_state.State,
    *,
    new: bool,
) -> search_state.Options:
    """Go on with what the new kernel, or the old one, stored in the temporary that it reads."""
    view, reader = (context.new, todo.new_reader) if new else (context.root, todo.old_reader)
    sources = view.sources(reader.statement.id, access)
    if any(s.writer.operation is not None for s in sources) or reader.depth >= _DEPTH:
        return
    for source in sources:
        writer = source.writer
        solver = view.solver(reader.statement.id, access, source)
        behind = search_state.Reader(writer, reader.label, behind=reader, solver=solver)
        if not new:
            yield state, (replace(todo, old_reader=behind, old_expr=writer.rhs), rest)
        elif writer.id not in state.origin:
            further = replace(todo, new_reader=behind, new_expr=writer.rhs)
            yield replace(state, copies=state.copies | {writer.id}), (further, rest)


def pair_sources(
    context: search_state.SearchContext,
    pair: search_state.MatchWriters,
    rest: search_state.Pending,
    state: search_state.State,
) -> search_state.Options:
    """Pair the statements that wrote what the two sides read."""
    todo = pair.todo
    olds = {s.writer.id: s for s in context.root.sources(todo.old_reader.statement.id, pair.mine)}
    news = context.new.sources(todo.new_reader.statement.id, pair.its)
    if not olds or not news:
        return
    pending = rest
    for source in reversed(news):
        writer = source.writer
        if state.origin.get(writer.id) in olds:
            continue
        where = state.where[todo.new] & search_state.placed(source, todo.new_reader, NEW_SOURCE)
        candidates = []
        for origin in context.ranked(tuple(s.writer for s in olds.values()), writer):
            if origin.operation == writer.operation:
                both = where & search_state.placed(olds[origin.id], todo.old_reader, OLD_SOURCE)
                onto = search_state.composed(context, both, OLD_SOURCE, NEW_SOURCE)
                if not onto.is_empty():
                    candidates.append((origin.id, onto))
        is_copy = context.new.is_copy(writer)
        pending = search_state.ChooseOrigin(writer.id, tuple(candidates), is_copy), pending
    yield state, pending
