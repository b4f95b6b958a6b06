"""Whether a guard reads data only where the kernel's own predicates are evaluated.

A guard encloses the lines of some statements and evaluates one of their predicates. The kernel
evaluates a predicate for each instance of its statement for which the preceding predicates hold;
in ``a and b``, the second operand where the first holds. A guard that is evaluated for no other
instances is out of bounds only if the kernel's predicate is.
"""

from __future__ import annotations

from collections.abc import Iterator

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._expression import accesses, nodes_of
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit.codegen.proof.proof_conditions import split
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Group, Touch


def is_asked_by_text(subject: Subject, touch: Touch) -> bool:
    """Whether a guard reads an element only where a predicate of an enclosed statement does."""
    return any(
        _covers(subject, touch, statement, before)
        for statement in _below(subject, touch)
        for before in _asking(statement, touch)
    )


def _below(subject: Subject, touch: Touch) -> list[Statement]:
    """The statements whose lines a guard encloses."""
    found: dict[str, Statement] = {}
    for leaf in subject.leaves:
        statement = subject.statement_of(leaf)
        if statement is None or statement.id in found:
            continue
        group: Group | None = leaf.parent
        while group is not None and group.node is not touch.leaf.node:
            group = group.parent
        if group is not None:
            found[statement.id] = statement
    return list(found.values())


def _asking(statement: Statement, touch: Touch) -> Iterator[list[Expression]]:
    """For each read of the element in a statement's predicates, the conditions that precede it."""
    before: list[Expression] = []
    for predicate in statement.predicates:
        yield from _inside(predicate, touch, before)
        before = [*before, predicate]


def _inside(expr: Expression, touch: Touch, before: list[Expression]) -> Iterator[list[Expression]]:
    if isinstance(expr, (prim.LogicalAnd, prim.LogicalOr)):
        for child in expr.children:
            yield from _inside(child, touch, before)
            holds = isinstance(expr, prim.LogicalAnd)
            before = [*before, child if holds else prim.LogicalNot(child)]
    elif isinstance(expr, prim.LogicalNot):
        yield from _inside(expr.child, touch, before)
    elif isinstance(expr, prim.Comparison):
        yield from _inside(expr.left, touch, before)
        yield from _inside(expr.right, touch, before)
    elif isinstance(expr, prim.If):
        yield from _inside(expr.condition, touch, before)
        yield from _inside(expr.then, touch, [*before, expr.condition])
        yield from _inside(expr.else_, touch, [*before, prim.LogicalNot(expr.condition)])
    elif not _holds_choice(expr) and (touch.array, touch.origin) in accesses(expr):
        yield before


def _holds_choice(expr: Expression) -> bool:
    return any(isinstance(node, prim.If) for node in nodes_of(expr))


def _covers(subject: Subject, touch: Touch, statement: Statement, before: list[Expression]) -> bool:
    """Whether a guard is evaluated only where the kernel evaluates the predicate."""
    known, unknown = split(*map(subject.meaning.condition, before))
    if not frozenset(unknown) <= frozenset(touch.scope.unknown):
        return False
    scope, space = touch.scope, subject.space
    asked = space.aligned(subject.kernel.statement_domain(statement))
    asked = asked & subject.admitted & space.all_of(known)
    bound = {loop.name for loop in scope.loops} | {let.name for let in scope.lets}
    bound |= subject.coordinates.keys()
    asked = _sets.project_out(asked, sorted(statement.inames - bound))
    here = scope.set & space.all_of(
        subject.coordinate_conditions(
            frozenset(statement.inames - {let.name for let in scope.lets})
        )
    )
    return bool(here.is_subset(space.aligned(asked)))
