"""Conflicting stores of equal values: their order has no effect.

What a thread computes depends on hardware indices if an expression, a guard, or a bound of an
enclosing loop uses one, or uses a variable that depends on one (uniformity analysis). Threads for
which these indices and the enclosing loops' iterations are equal reach a line with equal private
variables. They also read equal values from shared memory: any thread that changed it meanwhile
would be a race, which :mod:`.conflict_check` reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from itertools import chain

import islpy as isl

from loopkit._algebra.polynomials import minus, scaled
from loopkit._cached import cached_property, memoised
from loopkit._frozen import dataclass
from loopkit._relations import grouped
from loopkit._same import key_of, same
from loopkit.codegen.c import tree as c
from loopkit.codegen.proof.forms import (
    Form,
    coefficient,
    is_affine,
    is_data,
    names_of,
    renamed,
    variable,
)
from loopkit.codegen.proof.initialized import InitializedCheck
from loopkit.codegen.proof.proof_conditions import Condition, is_known, least
from loopkit.codegen.proof.spaces import Space, equal
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Group, Leaf, Touch, and_parts

_UNKNOWN = "?"
_NOTHING: frozenset[str] = frozenset()
Parts = frozenset[c.CExpression]
Writers = tuple[list[tuple[Leaf, c.Assign]], Group | None]
Question = tuple[c.CExpression, "Pair", Parts, frozenset[str]]
Made = tuple[list[tuple[c.CExpression, "Pair"]], frozenset[str], frozenset[str]] | None


@dataclass(frozen=True, eq=False)
class Pair:
    """Two lines, which may be the same."""

    first: Leaf
    second: Leaf

    @cached_property
    def around(self) -> Group:
        """The innermost loop, guard or braces around both lines."""
        around = {id(group) for group in _around(self.second)}
        return next(group for group in _around(self.first) if id(group) in around)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The positions from one line to the other, including all nodes around only one of them."""
        spans = [
            child.span
            for child in self.around.children
            for leaf in (self.first, self.second)
            if child.span[0] <= leaf.position <= child.span[1]
        ]
        return min(low for low, _ in spans), max(high for _, high in spans)


class EqualStores:
    """Determines which stores of a text write equal values."""

    def __init__(self, subject: Subject, initialized: InitializedCheck) -> None:
        self.subject = subject
        self.names = subject.names
        self.initialized = initialized

    def without(self, space: Space, first: Touch, second: Touch, meeting: isl.Set) -> isl.Set:
        """The pairs of executions in ``meeting`` that are not known to store equal values."""
        value = self.stored_by_both(first, second)
        if value is None:
            return meeting
        both = Pair(first.leaf, second.leaf)
        if self.changes_between(value, both):
            return meeting
        conditions: list[Condition] = []
        for form in self.due(value, both):
            if form is None or not names_of(form) <= space.position.keys():
                return meeting
            forms = [form] if is_affine(form) else [variable(n) for n in sorted(names_of(form))]
            conditions += [equal(f, renamed(f, space.renaming(1))) for f in forms]
        return meeting - space.all_of(conditions)

    def stored_by_both(self, first: Touch, second: Touch) -> c.CExpression | None:
        """The expression that two lines store; None if they differ, or one does something else."""
        one, two = first.leaf.node, second.leaf.node
        if not (isinstance(one, c.Assign) and isinstance(two, c.Assign)):
            return None
        plain = all(t.is_write and not t.atomic for t in (first, second))
        is_one = one.operator == two.operator == "=" and first.array == second.array
        return one.value if plain and is_one and same(one.value, two.value) else None

    def is_open(self, first: Touch, second: Touch) -> bool:
        """Whether it is unknown on what the value of a store depends."""
        value = self.stored_by_both(first, second)
        return value is not None and any(
            form is None for form in self.due(value, Pair(first.leaf, second.leaf))
        )

    def due(self, expr: c.CExpression, both: Pair) -> Iterator[Form | None]:
        """The forms that must be equal for an expression to have equal values in both executions.

        Yields None if that is unknown. Conditions ``held`` are true wherever it matters. Both
        executions iterate the ``inner`` loops in lockstep: a question that recurs may be assumed
        to hold for earlier iterations (induction over iterations).
        """
        (lets, _), threads = self.values, {*self.subject.thread_words}
        around = {let.name for let in both.first.scope.lets if len(lets[let.name]) == 1}
        waiting: list[Question] = [(expr, both, frozenset(), _NOTHING)]
        seen = set()
        while waiting:  # sums may be long
            expr, both, held, inner = waiting.pop()
            question = (id(expr), both.first.position, both.second.position, held, inner)
            if question in seen or expr in held:
                continue
            seen.add(question)
            reads = self.names.reads_memory(expr)
            is_form = not reads and self.names.is_integer(expr)
            form = self.subject.text.form(expr, both.first.scope) if is_form else None
            if form is not None and not is_data(form):
                known = _NOTHING if inner & threads else around
                if names_of(form).isdisjoint(inner | (lets.keys() - known)):
                    yield form
                    continue
                for name in names_of(form) - inner:
                    if name not in lets:
                        yield variable(name)
                    waiting += ((value, both, held, inner) for value in lets.get(name, ()))
                continue
            read = self.read_by(expr)
            held = held | (self.held(both.first) & self.held(both.second))
            made = self.made_by(expr, both, held)
            if made is not None:
                parts, own, others = made
                held = self.held_by(held, read or "")
                # A later iteration of a loop around the line may read what it has written.
                yield from map(variable, own - inner)
                waiting += ((part, pair, held, inner | own | others) for part, pair in parts)
            elif read is not None and reads:
                words = self.depends(held)[read]
                yield from (None if word == _UNKNOWN else variable(word) for word in sorted(words))
                # All iterations of a loop in which nothing writes it read the same.
                changing = {g.node for g in _around(both.first) if self.changes({read}, g.span)}
                yield from (variable(x.name) for x in both.around.scope.loops if x in changing)
            waiting += ((child, both, held, inner) for child in c.children(expr))

    def made_by(self, expr: c.CExpression, both: Pair, held: Parts, own: bool = True) -> Made:
        """The expressions that determine a variable read by two lines; None if that is unknown.

        Also returns the loops around the reading line that may change it, and the loops around its
        writers. A shared variable is computed by all threads of a block: by each completely, as
        its ``own`` and of equal values, or by all together. Conditions ``held`` are true where it
        matters.
        """
        leaves = (both.first, both.second)
        (mine, around), (its, _) = (self.writers_behind(expr, x, held) for x in leaves)
        is_scalar = isinstance(expr, c.Name)
        is_shared = self.subject.place_of(self.read_by(expr) or "") == "shared"
        if len(mine) == len(its) == 1 and is_scalar:
            made, value = Pair(mine[0][0], its[0][0]), mine[0][1].value
            is_one = value == its[0][1].value and not self.changes_between(value, made)
            is_one = is_one and (not is_shared or self.is_one_for_all(value, made))
            return ([(value, made)], _NOTHING, _NOTHING) if is_one else None
        if not mine or both.first is not both.second or (is_scalar and not own):
            return None
        parts: list[tuple[c.CExpression, Pair]] = []
        # Each thread of a block has made what the same one of another block has.
        others = set[str](() if own else self.subject.thread_words)
        for line, node in mine:
            used = [node.value, *c.children(node.target)]
            used += [node.target] if node.operator != "=" else ()
            # What its thread asks of a line that reads holds of those before, in no more loops.
            known = self.asked_around(both.first) | held if own else frozenset()
            again, is_outermost = line is mine[0][0], not is_shared  # executed at least once
            for group in reversed([*_around(line, around)]):
                ends = c.expressions(group.node) if group.node else ()
                if isinstance(group.node, c.For):
                    at, loop = both.first, group.node
                    known = frozenset(e for e in known if self.held_before(e, at, loop))
                    if is_outermost and at.scope.is_inside(loop):
                        ends = (loop.lower,)  # what is read was made in those before
                    is_outermost = False
                    if again := again and self.repeats(used, line, group):
                        continue
                    others.add(group.node.name)
                holds, asked = self.meanings(known, both.first), self.asked(group)
                used += (p for p in asked if not self.meanings([p], line) <= holds)
                used += () if asked else ends
            parts += ((part, Pair(line, line)) for part in used)
        if is_shared and own and not all(self.is_one_for_all(*part) for part in parts):
            return self.made_by(expr, both, held, own=False)
        names = self.names.used(expr)
        inner = (g for g in _around(both.first, around) if self.changes(names, g.span))
        loops = (group.node.name for group in inner if isinstance(group.node, c.For))
        return parts, frozenset(loops), frozenset(others)

    def writers_behind(self, expr: c.CExpression, leaf: Leaf, held: Parts) -> Writers:
        """The reaching definitions of a variable that a line reads, and a group that contains
        them.

        The first one certainly reaches the read: it is under no other guards than the read, and in
        no other loops of the group; or it writes all cells of an array that the line reads.
        """
        name = self.read_by(expr)
        if name is None or self.subject.place_of(name) not in ("private", "shared"):
            return [], None
        at, lines, asked = leaf.position, self.stores(name), self.asked_around(leaf) | held
        for first, node in reversed(lines):
            if first.position >= at or node.operator != "=":
                continue
            group = first.parent
            if isinstance(expr, c.Element):
                if not self.initialized.writes_all(first, leaf, name):
                    continue
                group = Pair(first, leaf).around
            while group.parent and not group.span[0] <= at <= group.span[1]:
                mine = self.meanings(self.asked(group), first)
                if not mine or not mine <= self.meanings(asked, leaf):
                    break
                group = group.parent
            inside = next((x for x in group.children if x.span[0] <= at <= x.span[1]), None)
            if inside is not None:
                end = at if inside is leaf else inside.span[1] + 1
                loops = [g.span[0] for g in _around(first, group) if isinstance(g.node, c.For)]
                start = min((first.position, *loops))
                others = (x for x in lines if start <= x[0].position < end and x[0] is not first)
                return [(first, node), *others], group
        return [], None

    def is_one_for_all(self, expr: c.CExpression, both: Pair) -> bool:
        """Whether all threads of a block that execute two lines compute equal values there."""
        depends = self.depends(self.held(both.first) & self.held(both.second))
        words = frozenset((*self.subject.thread_words, _UNKNOWN))
        return all(words.isdisjoint(depends.get(n, words)) for n in self.names.used(expr))

    def repeats(self, parts: list[c.CExpression], line: Leaf, loop: Group) -> bool:
        """Whether a line with these operands does the same in every iteration of a loop."""
        nodes = [group.node for group in _around(line, loop) if group.node]
        names = {n for e in chain(parts, *map(c.expressions, nodes)) for n in self.names.used(e)}
        assert isinstance(loop.node, c.For)
        made = {x.name for x in c.statements(loop.node.body) if isinstance(x, c.Let)}
        return names.isdisjoint({loop.node.name, *made}) and not self.changes(names, loop.span)

    def held_before(self, part: c.CExpression, line: Leaf, loop: c.For) -> bool:
        """Whether a condition around a line has held in all earlier iterations of a loop."""
        found = self.subject.text.condition(part, line.scope)
        form = least(found) if is_known(found) else None
        if not line.scope.is_inside(loop) or form is None:
            return False
        times = coefficient(form, loop.name)
        rest = minus(form, scaled(variable(loop.name), times))
        made = {x.name for x in c.statements((loop,)) if isinstance(x, (c.Let, c.For))}
        return times <= 0 and names_of(rest).isdisjoint(made)

    def stores(self, name: str) -> list[tuple[Leaf, c.Assign]]:
        """The lines that write a variable; none if one of them is not a plain store."""
        lines = self.written.get(name, ())
        found = [(x, x.node) for x in lines if isinstance(x.node, c.Assign) and not x.node.atomic]
        return found if len(found) == len(lines) else []

    def asked(self, group: Group, *, whole: bool = True) -> list[c.CExpression]:
        """The conjuncts of a guard that have one value within an iteration of the enclosing loops.

        For a ``whole`` guard, all conjuncts or none.
        """
        lets, used, reads = self.values[0], self.names.used, self.names.reads_memory
        parts = and_parts(group.node.condition) if isinstance(group.node, c.If) else []
        own = [p for p in parts if not reads(p) and all(len(lets.get(n, ())) < 2 for n in used(p))]
        return own if not whole or len(own) == len(parts) else []

    @memoised
    def asked_around(self, leaf: Leaf) -> Parts:
        """The conjuncts of all guards around a line."""
        return frozenset(p for group in _around(leaf) for p in self.asked(group, whole=False))

    def meanings(self, parts: Iterable[c.CExpression], line: Leaf) -> frozenset[Condition]:
        """Conjuncts of guards around a line as normalised conditions."""
        found = (self.subject.text.condition(part, line.scope) for part in parts)
        return frozenset(renamed(each, lambda n: self.one_name.get(n, n)) for each in found)

    @cached_property
    def one_name(self) -> dict[str, str]:
        """Maps constants that equal a hardware index to the first such constant."""
        firsts: dict[c.CExpression, str] = {}
        every = ((name, found[0]) for name, found in self.values[0].items() if len(found) == 1)
        return {n: firsts.setdefault(v, n) for n, v in every if self.names.used(v) <= {*c.HARDWARE}}

    def read_by(self, expr: c.CExpression) -> str | None:
        """The variable or array that an expression is a use of."""
        if isinstance(expr, c.Element):
            return expr.array
        return expr.name if isinstance(expr, c.Name) else None

    def changes_between(self, expr: c.CExpression, both: Pair) -> bool:
        """Whether what an expression reads is written between two lines, or in loops of one."""
        used = self.names.used(expr)
        return both.first is not both.second and self.changes(used, both.span)

    def changes(self, names: Set[str], span: tuple[int, int]) -> bool:
        """Whether a line at these positions writes one of the named variables."""
        lines = (leaf for name in names for leaf in self.written.get(name, ()))
        return any(span[0] <= leaf.position <= span[1] for leaf in lines)

    def kind(self, touch: Touch) -> object:
        """The key by which stores are compared with others in the same way."""
        node = touch.leaf.node
        if not touch.is_write or touch.atomic:
            return None
        if not isinstance(node, c.Assign) or self.names.used(node.value) & self.written.keys():
            return touch.leaf.position
        return node.operator, key_of(node.value)

    # {{{ what depends on hardware indices

    @cached_property
    def written(self) -> dict[str, list[Leaf]]:
        """The lines that write an array or a variable in memory, by name."""
        found = (
            (t.array, leaf) for leaf in self.subject.leaves for t in leaf.touches if t.is_write
        )
        return {name: list(leaves) for name, leaves in grouped(found).items()}

    @memoised
    def held(self, leaf: Leaf) -> Parts:
        """The conditions around a line that never change."""
        guards = (group.node for group in _around(leaf) if isinstance(group.node, c.If))
        return frozenset(p for n in guards for p in and_parts(n.condition) if self.is_lasting(p))

    def held_by(self, held: Parts, name: str) -> Parts:
        """Those conditions that are true on all threads that write a given array."""
        if self.subject.place_of(name) != "shared":
            return held
        varying, used = self.initialized.varying, self.names.used
        return frozenset(e for e in held if varying.isdisjoint(used(e)))

    def is_lasting(self, expr: c.CExpression) -> bool:
        """Whether an expression never changes its value on a thread."""
        lets, loops = self.values
        return not self.names.reads_memory(expr) and all(
            name not in loops
            and len(lets.get(name, ())) < 2
            and all(map(self.is_lasting, lets.get(name, ())))
            for name in self.names.used(expr)
        )

    @cached_property
    def values(self) -> tuple[dict[str, list[c.CExpression]], set[str]]:
        """The definitions of the text's constants, by name, and the names of loops."""
        nodes = [*c.statements(self.subject.function.body)]
        lets = grouped((n.name, n.value) for n in nodes if isinstance(n, c.Let))
        return {n: list(v) for n, v in lets.items()}, {
            node.name for node in nodes if isinstance(node, c.For)
        }

    @memoised
    def depends(self, held: Parts) -> dict[str, frozenset[str]]:
        """For each name, the hardware indices on which its value, or its elements, may depend.

        Shared memory is the same for all threads of a block, and global memory for all threads.
        The conditions ``held`` are true on all threads that matter.
        """
        subject, used = self.subject, self.names.used
        found = dict.fromkeys(self.names.places, _NOTHING)
        for word in c.HARDWARE:
            found[word] = frozenset((word,)) & frozenset(subject.words)
        made: list[tuple[str, frozenset[str]]] = []
        for node in c.statements(subject.function.body):
            if isinstance(node, c.Let):
                made.append((node.name, used(node.value)))
            elif isinstance(node, c.For):
                made.append((node.name, used(node.lower) | used(node.upper)))
        for name, leaves in self.written.items():
            if (known := self.held_by(held, name)) != held:
                found[name] = self.depends(known)[name]
                continue
            made += [(name, frozenset(self.behind(leaf, held))) for leaf in leaves]
        seen = dict.fromkeys(("private", "value"), frozenset((*subject.words, _UNKNOWN)))
        seen["shared"] = frozenset((*subject.block_words, _UNKNOWN))
        changed = True
        while changed:
            changed = False
            for name, sources in made:
                words = frozenset().union(*(found.get(s, _NOTHING) for s in sources))
                words |= sources & {_UNKNOWN}
                words &= seen.get(subject.place_of(name), _NOTHING)
                changed = changed or not words <= found[name]
                found[name] |= words
        return found

    def behind(self, leaf: Leaf, held: Parts) -> Iterator[str]:
        """The names that determine what a line writes, and whether it executes."""
        node = leaf.node
        if not isinstance(node, c.Assign):
            yield _UNKNOWN
            return
        yield from self.names.used(node.value)
        if isinstance(node.target, c.Element):
            for index in node.target.indices:
                yield from self.names.used(index)
        for group in _around(leaf):
            if isinstance(group.node, c.If):
                for part in and_parts(group.node.condition):
                    yield from self.names.used(part) if part not in held else ()
            elif isinstance(group.node, c.For):
                yield group.node.name

    # }}}


def _around(leaf: Leaf, end: Group | None = None) -> Iterator[Group]:
    """The loops and guards around a line, innermost first, within a group if one is given."""
    group: Group | None = leaf.parent
    while group is not end and group is not None:
        yield group
        group = group.parent
