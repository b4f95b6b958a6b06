"""Proof that every statement executes for exactly the instances of its domain.

Private temporaries may be computed for more instances, if the additional results are never used;
:mod:`.extra_instances` checks that.

Along a hardware axis for which a statement has no iname, it executes once for each copy of what it
writes: for private data in every thread of the launch, for shared data in one thread of each
block, and for global data in a single thread. If the text reads a copy only in the first block,
the other blocks need none.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from loopkit import _sets
from loopkit._algebra.polynomials import minus
from loopkit._algebra.terms import ZERO, number
from loopkit._cached import memoised
from loopkit._collectives import combined_axes, scanned_blocks
from loopkit._expression import variable_names
from loopkit._kernel import Statement
from loopkit._relations import grouped
from loopkit._target import CUDA
from loopkit.codegen.c.tree import Let
from loopkit.codegen.proof.forms import Form, variable
from loopkit.codegen.proof.proof_conditions import Condition, conjuncts, split
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.report import Finding, Place
from loopkit.codegen.proof.shown import shown
from loopkit.codegen.proof.spaces import PARAM, equal, unequal
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Leaf
from loopkit.codegen.proof.value_check import ValueCheck


@dataclass(frozen=True)
class Surplus:
    """A leaf that executes for more instances than its statement's domain."""

    leaf: Leaf
    statement: Statement
    instances: isl.Set


class InstanceCheck(Check):
    """Compares the instances that execute with the statements' domains."""

    def __init__(self, subject: Subject, recorder: Recorder, values: ValueCheck) -> None:
        super().__init__(subject, recorder)
        self.values = values
        self.surplus: list[Surplus] = []
        self._known: dict[object, bool] = {}

    def run(self) -> None:
        """Check all statements."""
        lines = grouped((leaf.statement, leaf) for leaf in self.subject.leaves)
        for statement in self.subject.kernel.statements:
            leaves = lines.get(statement.id, ())
            what = f"whether '{statement.id}' runs for its domain"
            with self.recorder.question("instances", what, *leaves):
                if leaves:
                    self.executed(statement, leaves)
                else:
                    self.absent(statement)

    def absent(self, statement: Statement) -> None:
        """Check that a statement without a line has no instances, or writes what nothing reads."""
        domain, _ = self.subject.domain(statement)
        if not domain.is_empty() and self._is_read(statement.written):
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

    def _is_read(self, array: str) -> bool:
        """Whether an array is an argument, or some instance, or a loop's bound, reads it."""
        kernel = self.subject.kernel
        done = [self.subject.domain(s)[0] for s in kernel.readers.get(array, ())]
        bounds = {name for domain in kernel.domains for name in domain.parameters}
        return array in bounds or array in kernel.arg_by_name or not all(d.is_empty() for d in done)

    def executed(self, statement: Statement, leaves: tuple[Leaf, ...]) -> None:
        """The instances that execute, on one line or on several that partition them."""
        if not all(self.named(statement, x) and self.same_data(statement, x) for x in leaves):
            return
        space, alone, first = self.subject.space, len(leaves) == 1, leaves[0]
        place = self.subject.place_of(statement.written)
        domain, _ = self.subject.domain(statement)
        key = (leaves[1:], first.scope, id(domain), place, statement.inames)
        if self._known.get(key):
            # A sister statement under the same guards, with the same instances.
            if place == "private" and any(s.leaf.scope is first.scope for s in self.surplus):
                extra = self._extra(statement, first, domain)
                self.surplus.append(Surplus(first, statement, extra))
            return
        expected = self.expected(statement, first, domain, place, with_lets=alone)
        if expected is None:
            return
        kept = {*self.subject.shared_names, *statement.inames, *self.subject.words}
        kept = (kept | self.subject.data_names) & space.position.keys()
        done = space.nothing
        for leaf in leaves:
            mine = leaf.scope.set if alone else space.project_onto(leaf.scope.set, kept)
            again = mine & done
            if not again.is_empty():
                self.report(statement, leaf, again, "is executed twice for one instance")
            done = done | mine
            self._too_many(statement, leaf, place, domain)
        missing = expected - done
        lost = self._seen(statement, place, missing)
        if not lost.is_empty():
            self.report(statement, first, lost, "is not executed for an instance of its domain")
        # Its sisters may be looked at in other blocks.
        self._known[key] = bool(missing.is_empty())

    def _too_many(self, statement: Statement, leaf: Leaf, place: str, domain: isl.Set) -> None:
        extra = self._extra(statement, leaf, domain)
        if extra.is_empty():
            return
        if place == "private":
            self.surplus.append(Surplus(leaf, statement, extra))
        else:
            self.report(statement, leaf, extra, "is executed for what is no instance of it")

    def _seen(self, statement: Statement, place: str, lost: isl.Set) -> isl.Set:
        """The missing instances whose results some block reads."""
        if place == "global" or lost.is_empty():
            return lost
        fixed = self.subject.words_of(statement.inames)
        for word in self.subject.block_words:
            if word not in fixed and self._in_first_alone(statement.written, word):
                lost = lost & self.subject.space.where(_first(word))
        return lost

    def _extra(self, statement: Statement, leaf: Leaf, domain: isl.Set) -> isl.Set:
        """The executed instances that are outside a domain."""
        executed = leaf.scope.set
        unseen = statement.inames - {let.name for let in leaf.scope.lets}
        implied = self.subject.coordinate_conditions(unseen)
        if implied:
            # Parallel inames that only say how often the line runs are not printed.
            executed = executed & self.subject.space.all_of(implied)
        return self.subject.space.nothing if executed.is_subset(domain) else executed - domain

    def _combined(self, array: str) -> tuple[str, ...]:
        """The indices along which threads, and blocks, have partial results of an accumulator."""
        kernel = self.subject.kernel
        axes = combined_axes(kernel).get(array)
        blocks = scanned_blocks(kernel, array) if axes is not None else ()
        threads = (CUDA.thread_index[axis] for axis in axes or ())
        return (*threads, *(CUDA.block_index[axis] for axis in blocks))

    @memoised
    def _in_first_alone(self, array: str, word: str) -> bool:
        """Whether all reads of an array are executed by the first block along an axis."""
        first = self.subject.space.where(_first(word))
        # Each guard, loop and constant that reads has a leaf of its own.  In `a && x[i]`,
        # x[i] is read where `a` holds: it is the access's scope that says where.
        reads = (t for t in self.subject.touches if t.array == array and not t.is_write)
        return all(scope.set.is_subset(first) for scope in {t.scope for t in reads})

    def named(self, statement: Statement, leaf: Leaf) -> bool:
        """Check that the loops around the line are exactly those of the statement's inames."""
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
        """Record a finding without a concrete instance."""
        self.recorder.wrong("instances", f"'{statement.id}' {what}", leaf.line, statement.id)

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
        """Predicates without data that sets cannot represent."""
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
        """The instances that must execute, over all names; None if several threads share them."""
        subject = self.subject
        conditions: list[Condition] = subject.coordinate_conditions(statement.inames)
        fixed = subject.words_of(statement.inames)
        for word in subject.words:
            if word in fixed:
                continue
            own_copy = place == "private" or (place == "shared" and word in subject.block_words)
            if statement.operation is not None and word in self._combined(statement.written):
                own_copy = False  # one thread alone adds to its partial result
            if own_copy:
                conditions.append(subject.launched(word))
                continue
            chosen = self.chosen(statement, leaf, word)
            if chosen is None:
                return None
            conditions.append(equal(variable(word), number(chosen)))
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
        """The only value of a hardware index for which the line executes."""
        executed = leaf.scope.set
        position = self.subject.space.position[word]
        value = executed.plain_get_val_if_fixed(PARAM, position)
        if not value.is_nan():
            return _sets.integer(value)
        if executed.is_empty():
            return 0
        names = sorted(statement.inames)
        point = self.point(executed, *names)
        here: Form = minus(variable(word), number(point[word]))
        others = executed & self.subject.space.where(unequal(here, ZERO))
        if others.is_empty():
            return point[word]
        second = self.subject.place(leaf, self.point(others, *names))
        what = f"'{statement.id}' has no iname for {word}, but runs for several of its values"
        self.found("instances", what, leaf, point, second=second)
        return None

    def report(self, statement: Statement, leaf: Leaf, where: isl.Set, what: str) -> None:
        """Report the smallest instance in a set."""
        point = self.point(where, *sorted(statement.inames))
        self.found("instances", f"'{statement.id}' {what}", leaf, point)


def _first(word: str) -> Condition:
    return equal(variable(word), number(0))
