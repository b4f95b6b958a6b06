"""The search for a correspondence between the statements of two kernels.

Work begins at what is left in the output arrays.  Two statements that write
the same cells are paired, which gives equations between their inames; their
right-hand sides are laid side by side, which gives more, and leads to the
statements that wrote what they read.  Where one side reads what another
statement has only passed on, that statement is followed.  Several
correspondences may be possible; they come one after the other, and are only
guesses: each is proven afterwards or thrown away.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._check.lineage import Image, Lineage
from loopkit._check.literals import holds_floats, parts, same_constant
from loopkit._check.model import Instance, Model, equal
from loopkit._check.sources import READER, WRITER
from loopkit._expression import is_constant, to_text, variable_names
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._verify.forms import commutes, with_swapped
from loopkit._verify.guesses import NEW, OLD, by_digits, by_name, by_time, counted, in_time
from loopkit._verify.solve import Solver
from loopkit._verify.tasks import Choose, Meet, Obligation, Pending, Reader, Same, State
from loopkit._verify.views import Access, Source, View

_OLD_SOURCE, _NEW_SOURCE = "__p", "__q"
_DEPTH = 12
_STATES = 16

Pairs = Mapping[str, str]


class Search:
    """Finds correspondences: statements of ``new`` with their origins in ``root``."""

    def __init__(self, root: View, new: View, context: isl.Set, steps: int = 20_000) -> None:
        self.root = root
        self.new = new
        self.context = context
        self.steps = steps
        self.farthest = (0, "")
        self._parts: dict[str, dict[str, isl.Set]] = {}
        self._narrowed: dict[str, dict[str, isl.Set]] = {}
        self._done = 0

    def lineages(self, root: Kernel) -> Iterator[tuple[Lineage, Model]]:
        """Correspondences as lineages from ``root``, the likeliest first.

        With each comes the new kernel, operands in the order of the root's.
        """
        seen = set()
        for state in itertools.islice(self.states(), _STATES):
            model = self.new.model
            if state.swapped:
                model = Model(with_swapped(model.kernel, state.swapped))
            for images in self.images(state):
                key = (images, frozenset(id(node) for node in state.swapped))
                if key not in seen:
                    seen.add(key)
                    yield Lineage(root, images), model

    # {{{ the search

    def states(self) -> Iterator[State]:
        """All ways to pair statements, depth first, until the steps are used up."""
        pending: Pending = None
        arguments = self.new.kernel.arg_by_name
        for array in self.new.kernel.writers:
            if array in arguments:
                for writer in self.new.model.writers(array):
                    pending = (self.at_the_end(writer), pending)
        stack: list[tuple[Iterator[tuple[State, Pending]], int]] = [(iter([(State(), pending)]), 0)]
        while stack and self.steps > 0:
            options, depth = stack[-1]
            found = next(options, None)
            if found is None:
                stack.pop()
                continue
            self.steps -= 1
            state, pending = found
            if pending is None and state.later:
                state, pending = replace(state, later=state.later[1:]), (state.later[0], None)
            if pending is None:
                yield state
                continue
            first, rest = pending
            self._done = depth
            stack.append((self.expand(first, rest, state), depth + 1))

    def at_the_end(self, writer: Statement) -> Choose:
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
        return Choose(writer.id, tuple(found), self.new.is_move(writer))

    def both(self, old: str, new: str) -> isl.Set:
        """All pairs of instances of two statements."""
        one = self.root.model.domain(Instance(old, OLD))
        return one & self.new.model.domain(Instance(new, NEW)) & self.context

    def ranked(self, candidates: tuple[Statement, ...], like: Statement) -> list[Statement]:
        """Statements of the root, those that look like ``like`` first."""
        position = {s.id: n for n, s in enumerate(self.new.model.writers(like.written))}
        place = position[like.id] / max(1, len(position) - 1)

        def rank(item: tuple[int, Statement]) -> tuple[bool, bool, bool, float]:
            number, other = item
            return (
                other.operation != like.operation,
                other.id != like.id,
                type(other.rhs) is not type(like.rhs),
                abs(number / max(1, len(candidates) - 1) - place),
            )

        return [s for _, s in sorted(enumerate(candidates), key=rank)]

    def expand(
        self, todo: Obligation, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        """The ways to do one thing."""
        if isinstance(todo, Choose):
            yield from self.choose(todo, rest, state)
        elif isinstance(todo, Meet):
            yield from self.pair_sources(todo.todo, todo.mine, todo.its, rest, state)
        else:
            yield from self.same(todo, rest, state)

    def choose(self, todo: Choose, rest: Pending, state: State) -> Iterator[tuple[State, Pending]]:
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
        if all(self.root.is_move(self.root.model.statement[o]) for o in origins):
            yield from direct
            yield from passed
        else:
            yield from passed
            yield from direct
        if todo.optional:
            yield replace(state, copies=state.copies | {todo.new}), rest
        elif not origins:
            self.note(f"'{statement.id}' writes cells that nothing writes there")

    def pair(self, todo: Choose, rest: Pending, state: State) -> Iterator[tuple[State, Pending]]:
        """Pair a statement with one of its candidates."""
        its = self.new.model.statement[todo.new]
        for origin, where in todo.candidates:
            mine = self.root.model.statement[origin]
            if mine.operation != its.operation:
                self.note(f"'{mine.id}' and '{its.id}' are different reductions")
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
                pending = (Same(its.id, *readers, a, b), pending)
            for name in self.root.model.bounds_from_data(origin):
                if name in self.new.model.bounds_from_data(its.id):
                    scalar = prim.Variable(name)
                    pending = (Same(its.id, *readers, scalar, scalar, True), pending)
            self._parts.setdefault(its.id, {}).setdefault(origin, where)
            yield state.paired(its.id, origin, where), pending

    def passed_on(
        self, todo: Choose, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        """The statement only stores what others have computed: these have the origins."""
        statement = self.new.model.statement[todo.new]
        access = self.new.access(statement.rhs)
        if access is None or not self.new.is_temporary(access[0]):
            return
        pending = rest
        found = False
        for source in self.new.sources(statement.id, access):
            if self.new.is_move(source.writer) and source.writer.operation is None:
                inner = self.new.access(source.writer.rhs)
                if inner is not None and not self.new.is_temporary(inner[0]):
                    continue
            candidates = []
            for origin, where in todo.candidates:
                relation = self.renamed(source.relation, {WRITER: _NEW_SOURCE, READER: NEW})
                onto = self.composed(where & relation, OLD, _NEW_SOURCE)
                if not onto.is_empty():
                    candidates.append((origin, onto))
            found = True
            pending = (
                Choose(source.writer.id, tuple(candidates), self.new.is_move(source.writer)),
                pending,
            )
        if found:
            yield replace(state, copies=state.copies | {todo.new}), pending

    # }}}

    # {{{ expressions

    def same(self, todo: Same, rest: Pending, state: State) -> Iterator[tuple[State, Pending]]:
        old, new = todo.old_expr, todo.new_expr
        mine, its = self.root.access(old), self.new.access(new)
        if mine is None and its is None:
            yield from self.same_parts(todo, rest, state)
        elif mine is not None and its is not None:
            yield from self.same_access(todo, mine, its, rest, state)
        elif its is not None:
            yield from self.follow_new(todo, its, rest, state)
        elif mine is not None:
            yield from self.follow_old(todo, mine, rest, state)

    def same_parts(
        self, todo: Same, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        old, new = todo.old_expr, todo.new_expr
        if is_constant(old) and is_constant(new):
            if same_constant(old, new) or self.starts(todo):
                yield state, rest
            else:
                self.unlike(todo)
            return
        if self.is_integer(self.root, old, "") and self.is_integer(self.new, new, ""):
            yield from self.same_integers(todo, rest, state)
            return
        if type(old) is not type(new) or is_constant(old):
            self.unlike(todo)
            return
        one, two = list(parts(old)), list(parts(new))
        if len(one) != len(two):
            self.unlike(todo)
            return
        pending = rest
        for a, b in zip(reversed(one), reversed(two), strict=True):
            if isinstance(a, prim.ExpressionNode) or is_constant(a):
                pending = (replace(todo, old_expr=a, new_expr=b), pending)
            elif a != b:
                self.unlike(todo)
                return
        yield state, pending
        if commutes(old) and commutes(new):
            pending = rest
            for a, b in zip(old.children, new.children[::-1], strict=True):
                pending = (replace(todo, old_expr=a, new_expr=b), pending)
            yield replace(state, swapped=(*state.swapped, new)), pending

    def starts(self, todo: Same) -> bool:
        """Whether the expressions are what a reduction starts from; the proof looks at them."""
        return todo.old_reader.statement.kind == "init"

    def is_integer(self, view: View, expr: Expression, suffix: str) -> bool:
        """Whether an expression is made of inames and sizes alone, and affine."""
        if holds_floats(expr) or isinstance(expr, bool):
            return False
        names = variable_names(expr)
        if suffix:
            names = frozenset(n.removesuffix(suffix) for n in names)
        if not names <= view.model.integers:
            return False
        try:
            _sets.pw_affine(expr)
        except _sets.NotAffineError:
            return False
        return True

    def same_integers(
        self, todo: Same, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        mine, its = todo.old_reader.over(todo.old_expr), todo.new_reader.over(todo.new_expr)
        if mine is None or its is None:
            yield state, rest
            return
        where = state.where[todo.new]
        try:
            agree = equal(mine, its)
        except _sets.NotAffineError:
            yield state, rest
            return
        narrowed = where & agree
        if narrowed.is_empty():
            self.unlike(todo)
            return
        if where.is_subset(agree):
            yield state, rest
            return
        statement = self.new.model.statement[todo.new]
        if self.on_its_own(where, statement).is_subset(self.on_its_own(narrowed, statement)):
            yield state.related(todo.new, narrowed), rest
            return
        self._narrowed.setdefault(todo.new, {}).setdefault(state.origin[todo.new], narrowed)
        self.unlike(todo)

    @property
    def parts(self) -> dict[str, list[isl.Set]]:
        """For each statement the sets of instances that have counterparts of their own."""
        result = {}
        for name, found in self._parts.items():
            sets = {**found, **self._narrowed.get(name, {})}
            statement = self.new.model.statement[name]
            if len(sets) > 1:
                result[name] = [self.on_its_own(where, statement) for where in sets.values()]
        return result

    def same_access(
        self, todo: Same, mine: Access, its: Access, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        root, new = self.root, self.new
        if not root.is_temporary(mine[0]) and not new.is_temporary(its[0]):
            if mine[0] != its[0] or len(mine[1]) != len(its[1]):
                self.note(f"'{its[0]}' is read where '{mine[0]}' was")
                return
            pending = rest
            for a, b in zip(reversed(mine[1]), reversed(its[1]), strict=True):
                pending = (replace(todo, old_expr=a, new_expr=b), pending)
            yield state, pending
            return
        written = mine[0] in root.model.written and its[0] in new.model.written
        sources = [(new, s.writer) for s in self.new_sources(todo, its)]
        sources += [(root, s.writer) for s in self.old_sources(todo, mine)]
        carried = not todo.is_bound and any(view.is_move(w) for view, w in sources)
        if not todo.is_bound and any(view.is_fetch(w) for view, w in sources):
            written = False
        paired = replace(state, later=(*state.later, Meet(todo, mine, its)))
        if written and not carried:
            yield paired, rest
        if new.is_temporary(its[0]):
            yield from self.follow_new(todo, its, rest, state)
        if root.is_temporary(mine[0]):
            yield from self.follow_old(todo, mine, rest, state)
        if written and carried:
            yield paired, rest

    # }}}

    # {{{ through arrays

    def new_sources(self, todo: Same, its: Access) -> tuple[Source, ...]:
        return self.new.sources(todo.new_reader.statement.id, its)

    def old_sources(self, todo: Same, mine: Access) -> tuple[Source, ...]:
        return self.root.sources(todo.old_reader.statement.id, mine)

    def follow_new(
        self, todo: Same, its: Access, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        """Go on with what the new kernel stored in the temporary that it reads."""
        sources = self.new_sources(todo, its)
        if any(s.writer.operation is not None for s in sources):
            return
        for source in sources:
            writer = source.writer
            if writer.id in state.origin:
                continue
            reader = self.source_reader(self.new, todo.new_reader, its, source)
            if reader is not None:
                further = replace(todo, new_reader=reader, new_expr=writer.rhs)
                yield replace(state, copies=state.copies | {writer.id}), (further, rest)

    def follow_old(
        self, todo: Same, mine: Access, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        """Go on with what the old kernel stored in the temporary that it reads."""
        sources = self.old_sources(todo, mine)
        if any(s.writer.operation is not None for s in sources):
            return
        for source in sources:
            reader = self.source_reader(self.root, todo.old_reader, mine, source)
            if reader is not None:
                further = replace(todo, old_reader=reader, old_expr=source.writer.rhs)
                yield state, (further, rest)

    def source_reader(
        self, view: View, reader: Reader, access: Access, source: Source
    ) -> Reader | None:
        """A writer as the next reader, its inames over those of the pair."""
        if reader.depth >= _DEPTH:
            return None
        solver = view.solver(reader.statement.id, access, source)
        return Reader(source.writer, reader.suffix, behind=reader, solver=solver)

    def pair_sources(
        self, todo: Same, mine: Access, its: Access, rest: Pending, state: State
    ) -> Iterator[tuple[State, Pending]]:
        """Pair the statements that wrote what the two sides read."""
        where = state.where[todo.new]
        olds = self.old_sources(todo, mine)
        news = self.new_sources(todo, its)
        if not olds or not news:
            return
        pending = rest
        for source in reversed(news):
            known = state.origin.get(source.writer.id)
            if known is not None and any(s.writer.id == known for s in olds):
                continue
            relation = self.placed(source, todo.new_reader, _NEW_SOURCE)
            candidates = []
            order = {
                s.id: n
                for n, s in enumerate(self.ranked(tuple(s.writer for s in olds), source.writer))
            }
            for old in sorted(olds, key=lambda s: order[s.writer.id]):
                if old.writer.operation != source.writer.operation:
                    continue
                both = where & relation & self.placed(old, todo.old_reader, _OLD_SOURCE)
                onto = self.composed(both, _OLD_SOURCE, _NEW_SOURCE)
                if not onto.is_empty():
                    candidates.append((old.writer.id, onto))
            pending = (
                Choose(source.writer.id, tuple(candidates), self.new.is_move(source.writer)),
                pending,
            )
        yield state, pending

    def on_its_own(self, where: isl.Set, its: Statement) -> isl.Set:
        """The instances of a statement that a relation is about."""
        names = {i + NEW: i for i in its.inames}
        onto = _sets.project_onto(where, [*names, *self.sizes])
        return _sets.rename(onto, names)

    def placed(self, source: Source, reader: Reader, suffix: str) -> isl.Set:
        """A source's relation, its writer with ``suffix``, its reader's inames over the pair's."""
        result = self.renamed(source.relation, {WRITER: suffix})
        for iname in reader.statement.inames:
            value = reader.value(iname)
            if value is not None:
                result = result & equal(prim.Variable(iname + READER), value)
        return _sets.project_out(result, [n for n in _sets.names_of(result) if n.endswith(READER)])

    def renamed(self, relation: isl.Set, suffixes: Mapping[str, str]) -> isl.Set:
        names = {}
        for name in _sets.names_of(relation):
            for old, new in suffixes.items():
                if name.endswith(old):
                    names[name] = name.removesuffix(old) + new
        return _sets.rename(relation, names)

    def composed(self, relation: isl.Set, old: str, new: str) -> isl.Set:
        """A relation onto the names with the two suffixes, which become the pair's."""
        keep = [n for n in _sets.names_of(relation) if n in self.sizes or n.endswith((old, new))]
        onto = _sets.project_onto(relation, keep)
        return self.renamed(onto, {old: OLD, new: NEW})

    # }}}

    # {{{ instances

    def images(self, state: State) -> Iterator[tuple[Image, ...]]:
        """The pairs with the inames of each origin as expressions, in some ways."""
        for guess in (by_name, by_digits, by_time):
            images = []
            guessed = False
            for statement in self.new.kernel.statements:
                origin = state.origin.get(statement.id)
                if origin is None:
                    continue
                where = state.where[statement.id] & self.both(origin, statement.id)
                image, free = self.image(statement, origin, where)
                if free:
                    guessed = True
                    where = guess(self, statement, origin, where, free)
                    image, _ = self.image(statement, origin, where)
                if image is None:
                    return
                images.append(image)
            yield tuple(images)
            if not guessed:
                return

    def image(
        self, statement: Statement, origin: str, where: isl.Set
    ) -> tuple[Image | None, list[str]]:
        """The inames of an origin as expressions of a statement's; and those that are open."""
        inames = sorted(self.root.model.statement[origin].inames)
        solver = Solver(
            where,
            [i + OLD for i in inames],
            {i + NEW: i for i in statement.inames},
            self.sizes,
        )
        values, free = {}, []
        for iname in inames:
            value = solver.value(iname + OLD)
            if value is None:
                self.note(f"no '{iname}' of '{origin}' was found for '{statement.id}'")
                return None, []
            if solver.is_open(iname + OLD):
                free.append(iname)
            values[iname] = value
        return Image(statement.id, origin, tuple(values.items())), free

    @property
    def sizes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.root.kernel.sizes, *self.new.kernel.sizes)))

    def alone(
        self, model: Model, statement: str, suffix: str, names: Sequence[str]
    ) -> isl.PwAff | None:
        """Names as the digits of one number, whatever the others are."""
        domain = model.domain(Instance(statement, suffix))
        return counted(_sets.project_onto(domain, [*names, *self.sizes]), names)

    def open_inames(self, statement: Statement, origin: str, where: isl.Set) -> list[str]:
        """The inames of a new statement that those of its origin leave open, outermost first."""
        mine = self.root.model.statement[origin].inames
        wanted = [i + NEW for i in statement.inames]
        solver = Solver(where, wanted, {i + OLD: i + OLD for i in mine}, self.sizes)
        found = [i for i in statement.inames if solver.is_open(i + NEW)]
        return in_time(self.new.model, statement.id, found)

    # }}}

    def unlike(self, todo: Same) -> None:
        """Remember two expressions that do not match."""
        old, new = to_text(todo.old_expr), to_text(todo.new_expr)
        if old == new:
            old = f"one of another type ({type(todo.old_expr).__name__})"
        mine, its = todo.old_reader.statement.id, todo.new_reader.statement.id
        if mine == its:
            self.note(f"in '{mine}', {new} stands where {old} was")
        else:
            self.note(f"{new} stands in '{its}' where {old} stands in '{mine}'")

    def note(self, why: str) -> None:
        """Remember what stopped the attempt that came farthest."""
        if self._done >= self.farthest[0]:
            self.farthest = (self._done, why)
