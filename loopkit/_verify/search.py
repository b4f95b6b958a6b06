"""The search for a correspondence between the statements of two kernels.

It starts at the last writers of the outputs and works backwards. Pairing two statements that write
the same cells gives equations between their inames. Their right-hand sides are compared in
parallel, which gives further equations, and leads to the statements that wrote what they read. If
one side reads a value that a statement has only copied, that copy is followed. Several
correspondences may be possible; they are generated one after the other as candidates, each of
which is proven or discarded.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit import _budget
from loopkit._check.compare_statements import couples
from loopkit._check.instance_maps import Lineage
from loopkit._expression import Access, is_constant
from loopkit._hidden import NEW, NEW_SOURCE, OLD, OLD_SOURCE, READER, WRITER
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._poly.dataflow import commute
from loopkit._poly.model import Model
from loopkit._poly.pairs import Undecided, equal, renamed
from loopkit._same import key_of
from loopkit._verify import search_state
from loopkit._verify.canonicalize import commutes, with_swapped
from loopkit._verify.kernel_view import KernelView
from loopkit._verify.search_state import ChooseOrigin, MatchValues, MatchWriters, Reader, State
from loopkit._verify.solve_images import solve_images

_STATES = 16
_DEPTH = 12


class Search(search_state.SearchContext):
    """Finds correspondences: statements of ``new`` with their origins in ``root``.

    Methods that yield states perform one pending task of a state, in all possible ways.
    """

    def lineages(self, root: Kernel) -> Iterator[tuple[Lineage, Model]]:
        """Correspondences as lineages from ``root``, the likeliest first.

        With each comes the new kernel, operands in the order of the root's.
        """
        seen = set()
        for state in itertools.islice(self.states(), _STATES):
            model = self.new.model
            if state.swapped:
                model = Model(with_swapped(model.kernel, state.swapped))
            for found in solve_images(self, state):
                key = (found, frozenset(id(node) for node in state.swapped))
                if key not in seen:
                    seen.add(key)
                    yield Lineage(root, found), model

    def states(self) -> Iterator[State]:
        """All ways to pair statements, depth first, within a budget of steps."""
        arguments = self.new.kernel.arg_by_name
        outputs = [w for a, ws in self.new.kernel.writers.items() if a in arguments for w in ws]
        stack = [iter([State().still_to(*map(self.at_the_end, outputs))])]
        steps = _budget.CORRESPONDENCE
        while stack and steps > 0:
            state = next(stack[-1], None)
            if state is None:
                stack.pop()
                continue
            steps -= 1
            self.depth = len(stack) - 1
            if state.pending is None:
                if not state.later:
                    yield state
                    continue
                state = replace(state, pending=(state.later[0], None), later=state.later[1:])
            assert state.pending is not None
            todo, rest = state.pending
            state = replace(state, pending=rest)
            match todo:
                case ChooseOrigin():
                    stack.append(self.choose(todo, state))
                case MatchWriters():
                    stack.append(self.pair_sources(todo, state))
                case MatchValues():
                    stack.append(self.same(todo, state))

    def at_the_end(self, writer: Statement) -> ChooseOrigin:
        """A statement that writes an output is paired with one that writes the same cells."""
        name, indices = writer.write
        its = [self.new.model.named(i, NEW) for i in indices]
        found = []
        for other in self.ranked(self.root.model.writers(name), writer):
            mine = [self.root.model.named(i, OLD) for i in other.write[1]]
            where = self.both(other.id, writer.id)
            for a, b in zip(mine, its, strict=True):
                if self.is_integer(self.root, a, OLD) and self.is_integer(self.new, b, NEW):
                    where = where & equal(a, b)
            if not where.is_empty():
                found.append((other.id, where))
        return ChooseOrigin(writer.id, tuple(found), self.new.is_copy(writer))

    def choose(self, todo: ChooseOrigin, state: State) -> Iterator[State]:
        """The origins that a statement may have, or that it has none and only copies."""
        origins = [old for old, _ in todo.candidates]
        if todo.new in state.origin:
            if state.origin[todo.new] in origins:
                yield state
            return
        if todo.new in state.copies:
            if todo.optional:
                yield state
            return
        ways = [self.passed_on(todo, state), self.pair(todo, state)]
        is_update = self.new.model.statement[todo.new].operation is not None
        if is_update or all(self.root.is_copy(self.root.model.statement[o]) for o in origins):
            ways.reverse()
        for way in ways:
            yield from way
        if todo.optional:
            yield replace(state, copies=state.copies | {todo.new})
        elif not origins:
            self.note(f"'{todo.new}' writes cells that nothing writes there")

    def pair(self, todo: ChooseOrigin, state: State) -> Iterator[State]:
        """Pair a statement with one of its candidates."""
        root, new = self.root.model, self.new.model
        its = new.statement[todo.new]
        for origin, where in todo.candidates:
            mine = root.statement[origin]
            if mine.operation != its.operation:
                self.note(f"'{mine.id}' and '{its.id}' are different reductions")
                continue
            conditions = root.conditions_on_data(mine), new.conditions_on_data(its)
            if len(conditions[0]) != len(conditions[1]):
                continue
            values = [(mine.rhs, its.rhs), *zip(*conditions, strict=True)]
            for a, b in zip(mine.write[1], its.write[1], strict=False):
                is_same = mine.written == its.written or todo.is_partial
                if root.is_beyond_sets(a) and is_same:
                    values.append((a, b))
            readers = Reader(mine, OLD), Reader(its, NEW)
            todos = [MatchValues(its.id, *readers, a, b) for a, b in values]
            for name in root.bounds_from_data(origin):
                if name in new.bounds_from_data(its.id):
                    scalar = prim.Variable(name)
                    todos.append(MatchValues(its.id, *readers, scalar, scalar, is_bound=True))
            yield state.paired(its.id, origin, where).still_to(*todos)

    def passed_on(self, todo: ChooseOrigin, state: State) -> Iterator[State]:
        """The statement only copies values of others: these have the origins.

        Or it flushes partial sums: their updates have the origins.
        """
        statement = self.new.model.statement[todo.new]
        is_flush = statement.operation is not None
        access = self.new.access(statement.rhs) if todo.optional or is_flush else None
        if access is None or not self.new.is_temporary(access[0]):
            return
        todos = []
        for source in self.new.sources(statement.id, access):
            if is_flush and not commute(source.writer, statement):
                continue
            if self.new.is_copy(source.writer):
                inner = self.new.access(source.writer.rhs)
                if inner is not None and not self.new.is_temporary(inner[0]):
                    continue
            candidates = []
            for origin, where in todo.candidates:
                relation = renamed(source.relation, {WRITER: NEW_SOURCE, READER: NEW})
                onto = self.composed(where & relation, OLD, NEW_SOURCE)
                if not onto.is_empty():
                    candidates.append((origin, onto))
            is_copy = self.new.is_copy(source.writer)
            todos.append(ChooseOrigin(source.writer.id, tuple(candidates), is_copy, is_flush))
        if todos:
            yield replace(state, copies=state.copies | {todo.new}).still_to(*todos)

    def same(self, todo: MatchValues, state: State) -> Iterator[State]:
        """Two expressions have equal values: their operands do, or the values that they read."""
        mine, its = self.root.access(todo.old_expr), self.new.access(todo.new_expr)
        if mine is not None and its is not None:
            yield from self.same_access(todo, mine, its, state)
        elif its is not None:
            yield from self.follow_new(todo, its, state)
        elif mine is not None:
            yield from self.follow_old(todo, mine, state)
        else:
            yield from self.same_parts(todo, state)

    def same_parts(self, todo: MatchValues, state: State) -> Iterator[State]:
        """Two expressions other than accesses have equal values."""
        old, new = todo.old_expr, todo.new_expr
        if is_constant(old) and is_constant(new):
            # What a reduction starts from, the proof looks at.
            if key_of(old) == key_of(new) or todo.old_reader.statement.kind == "init":
                yield state
                return
        elif self.is_integer(self.root, old, "") and self.is_integer(self.new, new, ""):
            related = self.same_integers(todo, state)
            if related is not None:
                yield related
                return
        elif (found := couples(old, new)) is not None:
            yield self.all_same(todo, found, state)
            if commutes(old, self.root.types) and commutes(new, self.new.types):
                crossed = zip(old.children[::-1], new.children, strict=True)
                swapped = replace(state, swapped=(*state.swapped, new))
                yield self.all_same(todo, crossed, swapped)
            return
        self.unlike(todo)

    def all_same(
        self, todo: MatchValues, pairs: Iterable[tuple[Expression, Expression]], state: State
    ) -> State:
        """Still to do: each two expressions have one value, the first ones first."""
        todos = [replace(todo, old_expr=a, new_expr=b) for a, b in pairs]
        return state.still_to(*reversed(todos))

    def same_integers(self, todo: MatchValues, state: State) -> State | None:
        """Two affine expressions are equal; None where they are so for some instances at most."""
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
        statement = self.new.model.statement[todo.new]
        if self.on_its_own(where, statement).is_subset(self.on_its_own(narrowed, statement)):
            return replace(state, where={**state.where, todo.new: narrowed})
        return None

    def same_access(
        self, todo: MatchValues, mine: Access, its: Access, state: State
    ) -> Iterator[State]:
        """Two accesses have equal values: they are the same, or their writers correspond."""
        root, new = self.root, self.new
        if not root.is_temporary(mine[0]) and not new.is_temporary(its[0]):
            if mine[0] != its[0] or len(mine[1]) != len(its[1]):
                self.note(f"'{its[0]}' is read where '{mine[0]}' was")
                return
            yield self.all_same(todo, zip(mine[1], its[1], strict=True), state)
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
            yield paired
        if new.is_temporary(its[0]):
            yield from self.follow_new(todo, its, state)
        if root.is_temporary(mine[0]):
            yield from self.follow_old(todo, mine, state)
        if written and carried:
            yield paired

    def follow_new(self, todo: MatchValues, access: Access, state: State) -> Iterator[State]:
        """Continue with what the new kernel stored in the temporary that it reads."""
        for behind in _writers(self.new, todo.new_reader, access):
            writer = behind.statement
            if writer.id not in state.origin:
                further = replace(todo, new_reader=behind, new_expr=writer.rhs)
                number = self.numbers.setdefault(further.key(), len(self.numbers))
                known = replace(state, copies=state.copies | {writer.id})
                if number in state.followed:
                    yield known
                else:
                    followed = state.followed | {number}
                    yield replace(known, followed=followed).still_to(further)

    def follow_old(self, todo: MatchValues, access: Access, state: State) -> Iterator[State]:
        """Continue with what the root stored in the temporary that it reads."""
        for behind in _writers(self.root, todo.old_reader, access):
            yield state.still_to(replace(todo, old_reader=behind, old_expr=behind.statement.rhs))

    def pair_sources(self, pair: MatchWriters, state: State) -> Iterator[State]:
        """Pair the statements that wrote what the two sides read."""
        todo = pair.todo
        olds = {s.writer.id: s for s in self.root.sources(todo.old_reader.statement.id, pair.mine)}
        news = self.new.sources(todo.new_reader.statement.id, pair.its)
        if not olds or not news:
            return
        todos = []
        for source in reversed(news):
            writer = source.writer
            if state.origin.get(writer.id) in olds:
                continue
            where = state.where[todo.new] & search_state.placed(source, todo.new_reader, NEW_SOURCE)
            candidates = []
            for origin in self.ranked(tuple(s.writer for s in olds.values()), writer):
                if origin.operation == writer.operation:
                    placed = search_state.placed(olds[origin.id], todo.old_reader, OLD_SOURCE)
                    onto = self.composed(where & placed, OLD_SOURCE, NEW_SOURCE)
                    if not onto.is_empty():
                        candidates.append((origin.id, onto))
            todos.append(ChooseOrigin(writer.id, tuple(candidates), self.new.is_copy(writer)))
        yield state.still_to(*todos)


def _writers(view: KernelView, reader: Reader, access: Access) -> Iterator[Reader]:
    """The statements whose values a reader finds in a temporary, as readers behind it.

    None where an update is among them, or where the chain gets long.
    """
    sources = view.sources(reader.statement.id, access)
    if any(s.writer.operation is not None for s in sources) or reader.depth >= _DEPTH:
        return
    for source in sources:
        solver = view.solver(reader.statement.id, access, source)
        yield Reader(source.writer, reader.label, behind=reader, solver=solver)
