"""Laying two expressions side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._check.constants import parts, same_constant
from loopkit._expression import is_constant
from loopkit._poly.pairs import Undecided, equal
from loopkit._verify.canonicalize import commutes
from loopkit._verify.kernel_view import Access
from loopkit._verify.match_sources import SourceMatcher
from loopkit._verify.search_context import SearchContext
from loopkit._verify.search_state import MatchValues, MatchWriters, Pending, State


class ExpressionMatcher:
    """Compares expressions of two kernels, which tells how inames relate and who wrote what."""

    def __init__(self, context: SearchContext, sources: SourceMatcher) -> None:
        self.context = context
        self.sources = sources
        self.root = context.root
        self.new = context.new

    def same(
        self, todo: MatchValues, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        """Two expressions have one value: as what they are made of has, or what they read."""
        old, new = todo.old_expr, todo.new_expr
        mine, its = self.root.access(old), self.new.access(new)
        if mine is None and its is None:
            yield from self.same_parts(todo, rest, state)
        elif mine is not None and its is not None:
            yield from self.same_access(todo, mine, its, rest, state)
        elif its is not None:
            yield from self.sources.follow_new(todo, its, rest, state)
        elif mine is not None:
            yield from self.sources.follow_old(todo, mine, rest, state)

    def same_parts(
        self, todo: MatchValues, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        old, new = todo.old_expr, todo.new_expr
        if is_constant(old) and is_constant(new):
            if same_constant(old, new) or self.starts(todo):
                yield state, rest
            else:
                self.context.unlike(todo)
            return
        if self.context.is_integer(self.root, old, "") and self.context.is_integer(
            self.new, new, ""
        ):
            yield from self.same_integers(todo, rest, state)
            return
        if type(old) is not type(new) or is_constant(old):
            self.context.unlike(todo)
            return
        one, two = list(parts(old)), list(parts(new))
        if len(one) != len(two):
            self.context.unlike(todo)
            return
        pending = rest
        for a, b in zip(reversed(one), reversed(two), strict=True):
            if isinstance(a, prim.ExpressionNode) or is_constant(a):
                pending = (replace(todo, old_expr=a, new_expr=b), pending)
            elif a != b:
                self.context.unlike(todo)
                return
        yield state, pending
        if commutes(old) and commutes(new):
            pending = rest
            for a, b in zip(old.children, new.children[::-1], strict=True):
                pending = (replace(todo, old_expr=a, new_expr=b), pending)
            yield replace(state, swapped=(*state.swapped, new)), pending

    def starts(self, todo: MatchValues) -> bool:
        """Whether the expressions are what a reduction starts from; the proof looks at them."""
        return todo.old_reader.statement.kind == "init"

    def same_integers(
        self, todo: MatchValues, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        mine, its = todo.old_reader.over(todo.old_expr), todo.new_reader.over(todo.new_expr)
        if mine is None or its is None:
            yield state, rest
            return
        where = state.where[todo.new]
        try:
            agree = equal(mine, its)
        except Undecided:
            yield state, rest
            return
        narrowed = where & agree
        if narrowed.is_empty():
            self.context.unlike(todo)
            return
        if where.is_subset(agree):
            yield state, rest
            return
        statement = self.new.model.statement[todo.new]
        if self.context.on_its_own(where, statement).is_subset(
            self.context.on_its_own(narrowed, statement)
        ):
            yield state.related(todo.new, narrowed), rest
            return
        self.context.narrowed.setdefault(todo.new, {}).setdefault(state.origin[todo.new], narrowed)
        self.context.unlike(todo)

    def same_access(
        self, todo: MatchValues, mine: Access, its: Access, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        root, new = self.root, self.new
        if not root.is_temporary(mine[0]) and not new.is_temporary(its[0]):
            if mine[0] != its[0] or len(mine[1]) != len(its[1]):
                self.context.note(f"'{its[0]}' is read where '{mine[0]}' was")
                return
            pending = rest
            for a, b in zip(reversed(mine[1]), reversed(its[1]), strict=True):
                pending = (replace(todo, old_expr=a, new_expr=b), pending)
            yield state, pending
            return
        written = mine[0] in root.model.written and its[0] in new.model.written
        news = [s.writer for s in self.sources.new_sources(todo, its)]
        olds = [s.writer for s in self.sources.old_sources(todo, mine)]
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
            yield from self.sources.follow_new(todo, its, rest, state)
        if root.is_temporary(mine[0]):
            yield from self.sources.follow_old(todo, mine, rest, state)
        if written and carried:
            yield paired, rest
