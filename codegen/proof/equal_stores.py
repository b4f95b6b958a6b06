"""Stores of one value: it does not show which of them came last.

What a thread computes depends on hardware indices where an expression, a guard, or the bounds of
a loop around a line mention one, or a variable that does (uniformity analysis).  Threads that
agree in these, and in the loops around a line, come to it with equal variables of their own.
What they share they see alike there: no thread changes it meanwhile, since that is looked for
(:mod:`.conflicts`).
"""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from loopkit._cached import cached_property, memoised
from loopkit._frozen import dataclass
from loopkit._relations import grouped
from loopkit._same import key_of, same
from loopkit.codegen.c import tree as c
from loopkit.codegen.proof.conditions import Condition
from loopkit.codegen.proof.forms import Form, variable
from loopkit.codegen.proof.spaces import Space, equal
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.tree import Group, Leaf, Touch

_UNKNOWN = "?"
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Pair:
    """Two lines, or one and itself."""

    first: Leaf
    second: Leaf

    @cached_property
    def around(self) -> Group:
        """The innermost loop, guard or braces that both are in."""
        around = {id(group) for group in _around(self.second)}
        return next(group for group in _around(self.first) if id(group) in around)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The positions from the one to the other, with all that only one of them is in."""
        spans = [
            child.span
            for child in self.around.children
            for leaf in (self.first, self.second)
            if child.span[0] <= leaf.position <= child.span[1]
        ]
        return min(low for low, _ in spans), max(high for _, high in spans)


class EqualStores:
    """Which stores of a text are of one value."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.names = subject.names

    def without(self, space: Space, first: Touch, second: Touch, meeting: isl.Set) -> isl.Set:
        """The pairs of executions in ``meeting`` that are not known to store one value."""
        value = self.stored_by_both(first, second)
        if value is None:
            return meeting
        both = Pair(first.leaf, second.leaf)
        due = [*self.due(value, both)]
        if self.changes_between(value, both):
            return meeting
        conditions: list[Condition] = []
        for form in due:
            if form is None or not form.names <= space.position.keys():
                return meeting
            forms = [form] if form.is_affine else [variable(n) for n in sorted(form.names)]
            conditions += [equal(f, f.renamed(space.renaming(1))) for f in forms]
        return meeting - space.all_of(conditions)

    def stored_by_both(self, first: Touch, second: Touch) -> c.CExpression | None:
        """The expression that two lines store; None where they do something else."""
        one, two = first.leaf.node, second.leaf.node
        if not (isinstance(one, c.Assign) and isinstance(two, c.Assign)):
            return None
        plain = first.is_write and second.is_write and one.operator == two.operator == "="
        atomic = first.atomic or second.atomic
        is_one = same(one.value, two.value) and first.array == second.array
        return one.value if plain and is_one and not atomic else None

    def is_open(self, first: Touch, second: Touch) -> bool:
        """Whether what a line stores is made in a way of which is not known what it depends on."""
        value = self.stored_by_both(first, second)
        return value is not None and any(
            form is None for form in self.due(value, Pair(first.leaf, second.leaf))
        )

    def due(
        self, expr: c.CExpression, both: Pair, held: frozenset[c.CExpression] = frozenset()
    ) -> Iterator[Form | None]:
        """What must be equal for an expression to have one value; None for what is not known.

        Conditions that are ``held`` are true wherever it matters.
        """
        waiting = [expr]
        while waiting:  # sums may be long
            expr = waiting.pop()
            reads = self.names.reads_memory(expr)
            if not reads and self.names.is_integer(expr):
                yield self.subject.text.form(expr, both.first.scope)
                continue
            read = self.read_by(expr)
            held = held | frozenset(self.held(both.first)).intersection(self.held(both.second))
            made = read and self.made_by(expr, both)
            if made:
                yield from self.due(*made, held)
                continue
            if read is not None and reads:
                words = self.depends(held)[read]
                yield from (None if word == _UNKNOWN else variable(word) for word in sorted(words))
                if read in self.written:
                    yield from (variable(loop.name) for loop in both.around.scope.loops)
            waiting += reversed([*c.children(expr)])

    def made_by(self, expr: c.CExpression, both: Pair) -> tuple[c.CExpression, Pair] | None:
        """What two lines last stored where each then reads ``expr``, in the same iterations.

        None where that is not known to be one expression.
        """
        first, second = (self.last_stored(expr, leaf) for leaf in (both.first, both.second))
        if first is None or second is None or first[1] != second[1]:
            return None
        made = Pair(first[0], second[0])
        return None if self.changes_between(first[1], made) else (first[1], made)

    def last_stored(self, expr: c.CExpression, leaf: Leaf) -> tuple[Leaf, c.CExpression] | None:
        """The line that has written a variable whenever another one reads it, and its value."""
        if not isinstance(expr, c.Name) or self.subject.place_of(expr.name) != "private":
            return None
        at, writers = leaf.position, self.written.get(expr.name, ())
        last = next((w for w in reversed(writers) if w.position < at), None)
        children = () if last is None else last.parent.children
        # It stands under no more guards, and in no other loops.
        inside = next((x for x in children if x.span[0] <= at <= x.span[1]), None)
        if last is None or inside is None or not isinstance(last.node, c.Assign):
            return None
        again = inside is not leaf and any(at <= w.position <= inside.span[1] for w in writers)
        is_plain = last.node.operator == "=" and not last.node.atomic
        return (last, last.node.value) if is_plain and not again else None

    def read_by(self, expr: c.CExpression) -> str | None:
        """The variable or array that an expression is a use of."""
        if isinstance(expr, c.Element):
            return expr.array
        return expr.name if isinstance(expr, c.Name) else None

    def changes_between(self, expr: c.CExpression, both: Pair) -> bool:
        """Whether what an expression reads is written between two lines, or in loops of one."""
        if both.first is both.second:
            return False
        low, high = both.span
        writers = (leaf for name in self.names.used(expr) for leaf in self.written.get(name, ()))
        return any(low <= leaf.position <= high for leaf in writers)

    def reads_what_changes(self, expr: c.CExpression) -> bool:
        """Whether an expression reads memory that lines of the text write."""
        return not self.names.used(expr).isdisjoint(self.written)

    def kind(self, touch: Touch) -> object:
        """What lines have in common whose stores are compared with others' alike."""
        node = touch.leaf.node
        if not touch.is_write or touch.atomic:
            return None
        if not isinstance(node, c.Assign) or self.reads_what_changes(node.value):
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

    def held(self, leaf: Leaf) -> Iterator[c.CExpression]:
        """The conditions around a line that hold at all times where they hold once."""
        for group in _around(leaf):
            if isinstance(group.node, c.If) and self.is_lasting(group.node.condition):
                yield group.node.condition

    def is_lasting(self, expr: c.CExpression) -> bool:
        """Whether an expression has one value at all times, on one thread."""
        lets, loops = self.values
        return not self.names.reads_memory(expr) and all(
            name not in loops
            and len(lets.get(name, ())) < 2
            and all(map(self.is_lasting, lets.get(name, ())))
            for name in self.names.used(expr)
        )

    @cached_property
    def values(self) -> tuple[dict[str, list[c.CExpression]], set[str]]:
        """What constants of the text stand for, by name, and the names of loops."""
        nodes = [*c.statements(self.subject.function.body)]
        lets = grouped((n.name, n.value) for n in nodes if isinstance(n, c.Let))
        return {n: list(v) for n, v in lets.items()}, {
            node.name for node in nodes if isinstance(node, c.For)
        }

    @memoised
    def depends(self, held: frozenset[c.CExpression]) -> dict[str, frozenset[str]]:
        """The hardware indices on which the value of a name, or what an array holds, depends.

        What a block shares is the same for all of its threads; what is global, for all.  Some
        conditions are ``held``: they are true on all threads that matter.
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
            made += [(name, frozenset(self.behind(leaf, held))) for leaf in leaves]
        seen = {"private": frozenset((*subject.words, _UNKNOWN))}
        seen["shared"] = frozenset((*subject.block_words, _UNKNOWN))
        seen["value"] = seen["private"]
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

    def behind(self, leaf: Leaf, held: frozenset[c.CExpression]) -> Iterator[str]:
        """The names that decide what a line writes, and whether it does."""
        node = leaf.node
        if not isinstance(node, c.Assign):
            yield _UNKNOWN
            return
        yield from self.names.used(node.value)
        if isinstance(node.target, c.Element):
            for index in node.target.indices:
                yield from self.names.used(index)
        for group in _around(leaf):
            if isinstance(group.node, c.If) and group.node.condition not in held:
                yield from self.names.used(group.node.condition)
            elif isinstance(group.node, c.For):
                yield group.node.name

    # }}}


def _around(leaf: Leaf) -> Iterator[Group]:
    """The loops and guards around a line, innermost first."""
    group: Group | None = leaf.parent
    while group is not None:
        yield group
        group = group.parent
