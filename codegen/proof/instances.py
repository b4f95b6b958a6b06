"""Every statement runs for exactly the instances of its domain.

What a statement leaves in a private temporary may be computed more often, on
threads or for cells that nothing uses: :mod:`.extra_instances` looks at those.

Along a hardware axis that a statement has no iname for, it runs once: in every
thread that has a copy of what it writes, which for private data is all threads
of the launch, for shared data one thread of each block, and for global data one
thread in all.  Where the text reads a copy in the first block alone, others need none.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from loopkit import _sets
from loopkit._expression import variable_names
from loopkit._kernel import Statement
from loopkit.codegen.c.tree import Let
from loopkit.codegen.proof.conditions import Compare, Condition, conjuncts
from loopkit.codegen.proof.forms import Form, constant, variable
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.report import Finding, Place
from loopkit.codegen.proof.shown import shown
from loopkit.codegen.proof.spaces import PARAM, equal
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.tree import Leaf, split
from loopkit.codegen.proof.values import ValueCheck


@dataclass(frozen=True)
class Surplus:
    """A leaf that runs for more than its statement's domain."""

    leaf: Leaf
    statement: Statement
    instances: isl.Set


class InstanceCheck(Check):
    """Compares what runs with what should."""

    def __init__(self, subject: Subject, recorder: Recorder, values: ValueCheck) -> None:
        super().__init__(subject, recorder)
        self.values = values
        self.surplus: list[Surplus] = []
        self._first_alone: dict[tuple[str, str], bool] = {}
        self._known: dict[object, bool] = {}
        self._leaves: dict[str, list[Leaf]] = {}
        for leaf in subject.leaves:
            if leaf.statement is not None:
                self._leaves.setdefault(leaf.statement, []).append(leaf)

    def run(self) -> None:
        """Check all statements."""
        for statement in self.subject.kernel.statements:
            leaves = self._leaves.get(statement.id, [])
            what = f"whether '{statement.id}' runs for its domain"
            with self.recorder.question("instances", what, *leaves):
                if not leaves:
                    self.absent(statement)
                elif len(leaves) == 1:
                    self.one(statement, leaves[0])
                else:
                    self.several(statement, leaves)

    def absent(self, statement: Statement) -> None:
        """A statement without a line must have nothing to do."""
        domain, _ = self.subject.domain(statement)
        if not domain.is_empty():
            point = self.point(domain, *sorted(statement.inames))
            values = {i: point[i] for i in self.subject.kernel.all_inames if i in statement.inames}
            self.recorder.found(
                Finding(
                    "instances",
                    f"no line of the text belongs to '{statement.id}'",
                    Place(0, statement.id, values),
                    sizes=self.subject.sizes_at(point),
                )
            )

    def one(self, statement: Statement, leaf: Leaf) -> None:
        """The usual case: one line for a statement."""
        if not self.named(statement, leaf) or not self.same_data(statement, leaf):
            return
        place = self.subject.place_of(statement.written)
        domain, _ = self.subject.domain(statement)
        key = (id(leaf.scope), id(domain), place, statement.inames)
        if self._known.get(key):
            # A sister statement under the same guards, with the same instances.
            if place == "private" and any(s.leaf.scope is leaf.scope for s in self.surplus):
                extra = self._extra(statement, leaf, domain)
                self.surplus.append(Surplus(leaf, statement, extra))
            return
        missing = self.expected(statement, leaf, domain, place)
        if missing is None:
            return
        missing = missing - leaf.scope.set
        self._too_few(statement, leaf, place, missing)
        self._too_many(statement, leaf, place, domain)
        # Its sisters may be looked at in other blocks.
        self._known[key] = bool(missing.is_empty())

    def several(self, statement: Statement, leaves: list[Leaf]) -> None:
        """A statement on several lines, which share out its instances: :mod:`.order` asks, too."""
        space = self.subject.space
        place = self.subject.place_of(statement.written)
        domain, _ = self.subject.domain(statement)
        kept = {*self.subject.shared_names, *statement.inames, *self.subject.words}
        kept = (kept | self.subject.data_names) & space.position.keys()
        done = space.nothing
        for leaf in leaves:
            if not self.named(statement, leaf) or not self.same_data(statement, leaf):
                return
            mine = space.project_onto(leaf.scope.set, kept)
            again = mine & done
            if not again.is_empty():
                self.report(statement, leaf, again, "is executed twice for one instance")
            done = done | mine
            self._too_many(statement, leaf, place, domain)
        expected = self.expected(statement, leaves[0], domain, place, with_lets=False)
        if expected is not None:
            self._too_few(statement, leaves[0], place, expected - done)

    def _too_few(self, statement: Statement, leaf: Leaf, place: str, missing: isl.Set) -> None:
        lost = self._seen(statement, place, missing)
        if not lost.is_empty():
            self.report(statement, leaf, lost, "is not executed for an instance of its domain")

    def _too_many(self, statement: Statement, leaf: Leaf, place: str, domain: isl.Set) -> None:
        extra = self._extra(statement, leaf, domain)
        if extra.is_empty():
            return
        if place == "private":
            self.surplus.append(Surplus(leaf, statement, extra))
        else:
            self.report(statement, leaf, extra, "is executed for what is no instance of it")

    def _seen(self, statement: Statement, place: str, lost: isl.Set) -> isl.Set:
        """Those of the instances that do not run whose results some block reads."""
        if place == "global" or lost.is_empty():
            return lost
        fixed = self.subject.words_of(statement.inames)
        for word in self.subject.block_words:
            if word not in fixed and self._in_first_alone(statement.written, word):
                lost = lost & self.subject.space.where(_first(word))
        return lost

    def _extra(self, statement: Statement, leaf: Leaf, domain: isl.Set) -> isl.Set:
        """What runs beyond a domain."""
        executed = leaf.scope.set
        unseen = statement.inames - {let.name for let in leaf.scope.lets}
        implied = self.subject.coordinate_conditions(unseen)
        if implied:
            # Parallel inames that only say how often the line runs are not printed.
            executed = executed & self.subject.space.all_of(implied)
        return self.subject.space.nothing if executed.is_subset(domain) else executed - domain

    def _in_first_alone(self, array: str, word: str) -> bool:
        """Whether all reads of an array are made by the first block along an axis."""
        key = (array, word)
        if key not in self._first_alone:
            first = self.subject.space.where(_first(word))
            # Each guard, loop and constant that reads has a leaf of its own.  In `a && x[i]`,
            # x[i] is read where `a` holds: it is the access's scope that says where.
            reads = (t for t in self.subject.touches if t.array == array and not t.is_write)
            scopes = {id(t.scope): t.scope for t in reads}
            self._first_alone[key] = all(s.set.is_subset(first) for s in scopes.values())
        return self._first_alone[key]

    def named(self, statement: Statement, leaf: Leaf) -> bool:
        """Whether the line stands in exactly the loops that the statement has inames for."""
        subject = self.subject
        around = {loop.name for loop in leaf.scope.loops}
        known = around | {let.name for let in leaf.scope.lets} | subject.coordinates.keys()
        for iname in sorted(statement.inames - known):
            self.wrong(statement, leaf, f"is in no loop over '{iname}'")
            return False
        for iname in sorted(around - statement.inames):
            self.wrong(statement, leaf, f"is inside the loop over '{iname}', which it does not use")
            return False
        return True

    def wrong(self, statement: Statement, leaf: Leaf, what: str) -> None:
        """A finding without numbers."""
        place = Place(leaf.line, statement.id)
        self.recorder.found(Finding("instances", f"'{statement.id}' {what}", place))

    def same_data(self, statement: Statement, leaf: Leaf) -> bool:
        """Whether the line's guards test the same data as the statement's predicates."""
        _, expected = self.subject.domain(statement)
        tested = frozenset(leaf.scope.unknown)
        if tested == expected:
            return True
        found, due = self.values.alike(leaf, statement)
        tested, expected = tested - found, expected - due
        if tested == expected:
            return True
        less, more = expected - tested, tested - expected
        texts = ["; ".join(sorted(map(shown, some))) for some in (more, less)]
        if less and not more and less <= self._of_names(statement):
            # What inames and sizes decide may be in the bounds of loops.
            self.recorder.open(
                "instances", f"whether '{statement.id}' runs where '{texts[1]}'", [leaf]
            )
        elif more and less:
            self.recorder.open(
                "instances",
                f"whether '{statement.id}' tests what its predicates say: "
                f"{texts[0]} instead of {texts[1]}",
                [leaf],
            )
        elif more:
            self.wrong(statement, leaf, f"is guarded by '{texts[0]}', which it does not ask")
        else:
            self.wrong(statement, leaf, f"runs without its predicate '{texts[1]}'")
        return False

    def _of_names(self, statement: Statement) -> frozenset[Condition]:
        """Predicates that no set can hold, though no data enters them."""
        subject = self.subject
        found: set[Condition] = set()
        for predicate in statement.predicates:
            if not any(map(subject.kernel.is_array, variable_names(predicate))):
                found.update(split(subject.meaning.condition(predicate))[1])
        return frozenset(found)

    def expected(
        self,
        statement: Statement,
        leaf: Leaf,
        domain: isl.Set,
        place: str,
        *,
        with_lets: bool = True,
    ) -> isl.Set | None:
        """The instances that must run, over all names; None where several threads run them."""
        subject = self.subject
        conditions: list[Condition] = subject.coordinate_conditions(statement.inames)
        fixed = subject.words_of(statement.inames)
        for word in subject.words:
            if word in fixed:
                continue
            own_copy = place == "private" or (place == "shared" and word in subject.block_words)
            if own_copy:
                conditions.append(subject.launched(word))
                continue
            chosen = self.chosen(statement, leaf, word)
            if chosen is None:
                return None
            conditions.append(equal(variable(word), constant(chosen)))
        if with_lets:
            conditions += self.definitions(statement, leaf)
        return domain & subject.space.all_of(p for c in conditions for p in conjuncts(c))

    def definitions(self, statement: Statement, leaf: Leaf) -> list[Condition]:
        """The constants around a line that are not inames of its statement."""
        found: list[Condition] = []
        for scope in leaf.scope.chain():
            if isinstance(scope.node, Let) and scope.node.name not in statement.inames:
                found += scope.conditions
        return found

    def chosen(self, statement: Statement, leaf: Leaf, word: str) -> int | None:
        """The one value of a hardware index for which the line runs."""
        executed = leaf.scope.set
        position = self.subject.space.position[word]
        value = executed.plain_get_val_if_fixed(PARAM, position)
        if not value.is_nan():
            return _sets.integer(value)
        if executed.is_empty():
            return 0
        names = sorted(statement.inames)
        point = self.point(executed, *names)
        here: Form = variable(word).minus(constant(point[word]))
        others = executed & self.subject.space.where(Compare("!=", here))
        if others.is_empty():
            return point[word]
        second = self.subject.place(leaf, self.point(others, *names))
        what = f"'{statement.id}' has no iname for {word}, but runs for several of its values"
        self.found("instances", what, leaf, point, second=second)
        return None

    def report(self, statement: Statement, leaf: Leaf, where: isl.Set, what: str) -> None:
        """A finding with the smallest instance in a set."""
        point = self.point(where, *sorted(statement.inames))
        self.found("instances", f"'{statement.id}' {what}", leaf, point)


def _first(word: str) -> Condition:
    return equal(variable(word), constant(0))
