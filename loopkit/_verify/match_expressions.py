"""Laying two expressions side by side, and following what they read to where it was written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._check.constants import parts, same_constant
from loopkit._expression import is_constant
from loopkit._hidden import NEW_SOURCE, OLD_SOURCE
from loopkit._nodes import Expression
from loopkit._poly.pairs import Undecided, equal
from loopkit._verify.canonicalize import commutes
from loopkit._verify.kernel_view import Access
from loopkit._verify.search_context import SearchContext, composed, placed
from loopkit._verify.search_state import (
    ChooseOrigin,
    MatchValues,
    MatchWriters,
    Options,
    Pending,
    Reader,
    State,
)

_DEPTH = 12


def same(context: SearchContext, todo: MatchValues, rest: Pending, state: State) -> Options:
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


def _same_parts(context: SearchContext, todo: MatchValues, rest: Pending, state: State) -> Options:
    old, new = todo.old_expr, todo.new_expr
    if is_constant(old) and is_constant(new):
        # What a reduction starts from, the proof looks at.
        if same_constant(old, new) or todo.old_reader.statement.kind == "init":
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
    todo: MatchValues, couples: Iterable[tuple[Expression, Expression]], rest: Pending
) -> Pending:
    """Still to do: each couple of expressions has one value, the first couple first."""
    for a, b in reversed(list(couples)):
        rest = (replace(todo, old_expr=a, new_expr=b), rest)
    return rest


def _same_integers(context: SearchContext, todo: MatchValues, state: State) -> State | None:
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
    context: SearchContext,
    todo: MatchValues,
    mine: Access,
    its: Access,
    rest: Pending,
    state: State,
) -> Options:
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
    paired = replace(state, later=(*state.later, MatchWriters(todo, mine, its)))
    if written and not carried:
        yield paired, rest
    if new.is_temporary(its[0]):
        yield from _follow(context, todo, its, rest, state, new=True)
    if root.is_temporary(mine[0]):
        yield from _follow(context, todo, mine, rest, state, new=False)
    if written and carried:
        yield paired, rest


def _follow(
    context: SearchContext,
    todo: MatchValues,
    access: Access,
    rest: Pending,
    state: State,
    *,
    new: bool,
) -> Options:
    """Go on with what the new kernel, or the old one, stored in the temporary that it reads."""
    view, reader = (context.new, todo.new_reader) if new else (context.root, todo.old_reader)
    sources = view.sources(reader.statement.id, access)
    if any(s.writer.operation is not None for s in sources) or reader.depth >= _DEPTH:
        return
    for source in sources:
        writer = source.writer
        solver = view.solver(reader.statement.id, access, source)
        behind = Reader(writer, reader.label, behind=reader, solver=solver)
        if not new:
            yield state, (replace(todo, old_reader=behind, old_expr=writer.rhs), rest)
        elif writer.id not in state.origin:
            further = replace(todo, new_reader=behind, new_expr=writer.rhs)
            yield replace(state, copies=state.copies | {writer.id}), (further, rest)


def pair_sources(
    context: SearchContext, pair: MatchWriters, rest: Pending, state: State
) -> Options:
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
        where = state.where[todo.new] & placed(source, todo.new_reader, NEW_SOURCE)
        candidates = []
        for origin in context.ranked(tuple(s.writer for s in olds.values()), writer):
            if origin.operation == writer.operation:
                both = where & placed(olds[origin.id], todo.old_reader, OLD_SOURCE)
                onto = composed(context, both, OLD_SOURCE, NEW_SOURCE)
                if not onto.is_empty():
                    candidates.append((origin.id, onto))
        is_copy = context.new.is_copy(writer)
        pending = ChooseOrigin(writer.id, tuple(candidates), is_copy), pending
    yield state, pending
