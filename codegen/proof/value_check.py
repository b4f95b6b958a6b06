"""Proof that each line performs its statement's operations, in the same types and order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit._algebra.terms import number
from loopkit._errors import LoopkitError
from loopkit._expression import to_text
from loopkit._kernel import Statement
from loopkit._promotion import INT32, components_of
from loopkit.codegen.c.errors import UnreadableError
from loopkit.codegen.c.tree import Assign, CExpression, Element, For, If, Name, walk
from loopkit.codegen.proof.forms import Form, variable
from loopkit.codegen.proof.proof_conditions import Condition, split
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.spaces import at_most
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Leaf, and_parts
from loopkit.codegen.proof.typed_computations import Term
from loopkit.codegen.proof.value_compare import Comparison
from loopkit.codegen.proof.value_functions import as_term
from loopkit.codegen.proof.value_sample import SEEDS, TIED, Sample, differ, numbers_of

_GUARD = "the guard"


class ValueCheck(Check):
    """Compares right sides, and guards that test data, as typed computations."""

    def __init__(
        self, subject: Subject, recorder: Recorder, is_zero: Callable[[Scope, Form], bool]
    ) -> None:
        super().__init__(subject, recorder)
        self.is_zero = is_zero

    def statement(self, leaf: Leaf, statement: Statement) -> bool:
        """Whether a line is its statement's computation; what is not is reported."""
        node = leaf.node
        assert isinstance(node, Assign)
        self.predicates(leaf, statement)
        self.guards(leaf, statement)
        return self.same(
            leaf,
            statement,
            lambda: self.subject.text.values(leaf.scope).assigned(node),
            lambda: self.subject.meaning.values.assigned(statement),
            f"the line gives {statement.written}",
        )

    def same(
        self,
        leaf: Leaf,
        statement: Statement,
        text: Callable[[], Term],
        kernel: Callable[[], Term],
        what: str,
    ) -> bool:
        """Whether two computations are one; if not, values for which they differ."""
        try:
            found, due = text(), kernel()
        except UnreadableError as error:
            self.recorder.open("value", f"{what} a value that is not understood: {error}", [leaf])
            return False
        except (LoopkitError, NotImplementedError, KeyError) as error:
            what = f"what '{statement.id}' computes is not understood: {error}"
            self.recorder.open("value", what, [leaf])
            return False
        comparison = Comparison(self.subject, leaf.scope, self.is_zero)
        pair = comparison.difference(found, due)
        if pair is None:
            return True
        is_read = pair[0].op == pair[1].op == "read"
        if self.refuted(leaf, statement, found, due, what, "access" if is_read else "value"):
            return False
        self.recorder.open(
            "value",
            f"whether {what} the value of '{statement.id}', {to_text(statement.rhs)}",
            [leaf],
        )
        return False

    def refuted(
        self,
        leaf: Leaf,
        statement: Statement,
        found: Term,
        due: Term,
        what: str,
        kind: str,
    ) -> bool:
        """Report values for which two computations differ; False where none were found."""
        subject, scope = self.subject, leaf.scope
        names = (*subject.kernel.all_inames, *subject.space.names)
        text = subject.text.values(scope)
        numbers = [*numbers_of(found), *numbers_of(due)]
        guards = [] if what == _GUARD else [expr for expr, _ in self._tested(leaf)]

        def translate(expr: Any, of_text: bool) -> Term:
            if of_text:
                return text.value(expr)
            return as_term(self.subject.meaning.values.value(expr), INT32)

        has_ties = bool(components_of(found.dtype))
        for seed in (*SEEDS, *TIED) if has_ties else SEEDS:
            where = _spread_out(scope, (*subject.sizes, *names), seed // 2)
            if where.is_empty():
                return False
            point = self.point(where, *names)
            sample = Sample(subject, point, translate, seed, numbers, has_ties=has_ties)
            try:
                with np.errstate(all="ignore"):
                    if not all(sample.value(text.condition(g)) for g in guards):
                        continue
                    one, two = sample.value(found), sample.value(due)
            except (
                ArithmeticError,
                ValueError,
                KeyError,
                TypeError,
                LoopkitError,
                UnreadableError,
            ):
                continue
            if differ(one, two):
                given = ", ".join(
                    f"{name}{f'[{at}]' if subject.kernel.is_array(name) else ''} = {_shown(value)}"
                    for (name, at), value in sample.cells.items()
                )
                told = f"{what} = {_shown(one)}, '{statement.id}' {_shown(two)}"
                if given:
                    told += f" where {given}"
                self.found(kind, told, leaf, point, array=statement.written)
                return True
        return False

    def predicates(self, leaf: Leaf, statement: Statement) -> None:
        """Guards that test data test what the predicates say."""
        wanted = _wanted(self.subject, statement)
        if not wanted:
            return
        tested = self._tested(leaf)
        for predicate in wanted:
            if not any(self._is_same(scope, expr, predicate) for expr, scope in tested):
                self._unlike(leaf, statement, predicate, tested)

    def guards(self, leaf: Leaf, statement: Statement) -> None:
        """What guards test still holds where the line runs, or is tested again."""
        fresh: list[CExpression] = []
        for scope in leaf.scope.chain():
            if not isinstance(scope.node, If) or scope.node.condition in fresh:
                continue
            if self._is_stale(leaf, scope.node.condition, scope):
                what = f"whether a guard still holds where '{statement.id}' runs"
                self.recorder.open("value", f"{what}: a line behind it changes it", [leaf])
                return
            fresh.append(scope.node.condition)

    def _is_stale(self, leaf: Leaf, expr: CExpression, scope: Scope) -> bool:
        """Whether something may be written that a guard reads, behind it and before a line."""
        read = {part.array for part in walk(expr) if isinstance(part, Element)}
        read |= {part.name for part in walk(expr) if isinstance(part, Name)}
        group, last = leaf.parent, leaf.position - 1
        while group.node is not scope.node and group.parent is not None:
            if isinstance(group.node, For):
                last = max(last, group.span[1])
            group = group.parent
        lines = self.subject.leaves[group.span[0] : last + 1]
        return any(t.is_write and t.array in read for line in lines for t in line.touches)

    def alike(self, leaf: Leaf, statement: Statement) -> tuple[set[Condition], set[Condition]]:
        """What guards and predicates ask of data that are one computation."""
        found: set[Condition] = set()
        due: set[Condition] = set()
        tested = self._tested(leaf)
        for predicate in _wanted(self.subject, statement):
            for expr, scope in tested:
                if self._is_same(scope, expr, predicate):
                    condition = self.subject.text.condition(expr, scope)
                    found.update(split(condition)[1])
                    due.update(split(self.subject.meaning.condition(predicate))[1])
        return found, due

    def _tested(self, leaf: Leaf) -> list[tuple[CExpression, Scope]]:
        """The guards around a line that only data decides, and where each is looked at."""
        found = []
        for scope in leaf.scope.chain():
            if not isinstance(scope.node, If) or scope.parent is None:
                continue
            if scope.parent.node is scope.node:
                continue  # a later part of the same guard
            for part in and_parts(scope.node.condition):
                condition = self.subject.text.condition(part, scope)
                if split(condition)[1]:
                    found.append((part, scope))
        return found

    def _is_same(self, scope: Scope, expr: CExpression, predicate: Any) -> bool:
        try:
            text = self.subject.text.values(scope).condition(expr)
            due = self.subject.meaning.values.condition(predicate)
        except (UnreadableError, LoopkitError, NotImplementedError, KeyError):
            return False
        return Comparison(self.subject, scope, self.is_zero).difference(text, due) is None

    def _unlike(
        self,
        leaf: Leaf,
        statement: Statement,
        predicate: Any,
        tested: list[tuple[CExpression, Scope]],
    ) -> None:
        """No guard is the predicate: the one that is left over is wrong, if there is one."""
        if len(tested) == 1:
            ((expr, scope),) = tested
            self.same(
                leaf,
                statement,
                lambda: self.subject.text.values(scope).condition(expr),
                lambda: self.subject.meaning.values.condition(predicate),
                _GUARD,
            )
            return
        what = f"whether the guards test what '{statement.id}' asks, {to_text(predicate)}"
        self.recorder.open("value", what, [leaf])


def _wanted(subject: Subject, statement: Statement) -> list[Any]:
    """The parts of a statement's predicates that only data decides."""
    parts = [part for predicate in statement.predicates for part in _conjuncts(predicate)]
    return [part for part in parts if split(subject.meaning.condition(part))[1]]


def _conjuncts(predicate: Any) -> list[Any]:
    if isinstance(predicate, prim.LogicalAnd):
        return [p for c in predicate.children for p in _conjuncts(c)]
    return [predicate]


def _spread_out(scope: Scope, names: Iterable[str], least: int) -> isl.Set:
    """Part of where a point is reached: sizes and loop variables away from zero and each other."""
    where = scope.set
    if not least:
        return where
    for position, name in enumerate(dict.fromkeys(names)):
        if name not in scope.space.position:
            continue
        for bound in (least + position, least):
            there = where & scope.space.where(at_most(number(bound), variable(name)))
            if not there.is_empty():
                where = there
                break
    return where


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    return str(value)
