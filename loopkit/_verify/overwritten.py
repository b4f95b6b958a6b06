"""Stores that a later one replaces under a condition, and the opposites of comparisons.

``y = a`` and then ``y = b`` where ``c`` holds is ``y = a`` where it does not: nothing in between
looks at ``y``, and nothing changes what ``c`` reads.  ``not a > b`` is ``a <= b`` for whole
numbers; of floating-point numbers one may be none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pymbolic.primitives as prim

from loopkit._check.value_types import ValueTypes
from loopkit._expression import ExpressionMapper, is_constant, to_text, variable_names
from loopkit._guarded import conjuncts
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._places import shared_storage
from loopkit._poly.model import Model
from loopkit._promotion import INTEGER, INTEGERS
from loopkit._same import same, unique
from loopkit._tree import Path, build, entries_of


def without_overwritten(kernel: Kernel) -> Kernel:
    """A kernel whose stores run where no later one of the same iteration replaces them."""
    if shared_storage(kernel):
        return kernel
    by_id = kernel.statement_by_id
    mapper = _Opposites(ValueTypes(Model(kernel)))
    found: dict[str, Statement] = {}
    # The last ones first: of three stores the second is known when the first one is looked at.
    for run in runs_of(kernel):
        for at in reversed(range(len(run))):
            statement = by_id[run[at]]
            behind = [found.get(name, by_id[name]) for name in run[at + 1 :]]
            found[statement.id] = _unless_replaced(statement, behind, mapper)
    return kernel.with_(statements=tuple(found.get(s.id, s) for s in kernel.statements))


def runs_of(kernel: Kernel) -> list[list[str]]:
    """Statements that follow one another in one loop, with nothing else between them."""
    runs: list[list[str]] = []
    last: Path | None = None
    for leaf, path in entries_of(kernel.tree):
        if not isinstance(leaf, str):
            last = None
        elif path == last:
            runs[-1].append(leaf)
        else:
            runs.append([leaf])
            last = path
    return runs


def _unless_replaced(
    statement: Statement, behind: Sequence[Statement], mapper: _Opposites
) -> Statement:
    """A statement where none of those ``behind`` it writes its cell anew."""
    if not _only_stores(statement):
        return statement
    changed = frozenset({statement.written})
    replacing: list[Statement] = []
    for other in behind:
        if _writes_the_same_cell(statement, other) and not changed & (
            _asked(other) | _index(other)
        ):
            replacing.append(other)
        is_update = other.operation is not None and other.written == statement.written
        if is_update or statement.written in {name for name, _ in other.reads}:
            break
        changed |= {other.written}
    # A choice asks for what decides first, which is what replaces last.
    for other in reversed(replacing):
        common = common_guards(statement.predicates, other.predicates)
        own, rest = statement.predicates[:common], statement.predicates[common:]
        more = other.predicates[common:]
        if more and not _exclude_each_other(rest, more, mapper):
            condition = more[0] if len(more) == 1 else prim.LogicalAnd(more)
            opposite = conjuncts(prim.LogicalNot(condition))
            statement = replace(statement, predicates=(*own, *opposite, *rest))
    return statement


def _exclude_each_other(
    some: Sequence[Expression], others: Sequence[Expression], mapper: _Opposites
) -> bool:
    """Whether one of some conditions is the opposite of one of the others."""
    opposites = [mapper(prim.LogicalNot(condition)) for condition in some]
    return any(same(mapper(c), opposite) for c in others for opposite in opposites)


def common_guards(one: Sequence[Expression], two: Sequence[Expression]) -> int:
    """How many of the conditions of two statements are the same, from the first one."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((n for n, (a, b) in pairs if not same(a, b)), min(len(one), len(two)))


def _asked(statement: Statement) -> frozenset[str]:
    """The names that the conditions of a statement hold."""
    return frozenset[str]().union(*map(variable_names, statement.predicates))


def _index(statement: Statement) -> frozenset[str]:
    """The names that the subscripts of the cell hold which a statement writes."""
    return frozenset[str]().union(*map(variable_names, statement.write[1]))


def _only_stores(statement: Statement) -> bool:
    is_plain = statement.operation is None and statement.kind == "user"
    return is_plain and not statement.is_atomic and not is_constant(statement.lhs)


def _writes_the_same_cell(one: Statement, two: Statement) -> bool:
    return _only_stores(two) and one.inames == two.inames and same(one.lhs, two.lhs)


class _Opposites(ExpressionMapper):
    """Comparisons of whole numbers in the place of their negations, none with ``>``."""

    def __init__(self, types: ValueTypes) -> None:
        super().__init__()
        self.types = types

    def map_logical_not(self, expr: Any) -> Expression:
        child = expr.child
        if isinstance(child, prim.LogicalNot):
            return self.rec(child.child)
        if not isinstance(child, prim.Comparison):
            return super().map_logical_not(expr)
        is_order = child.operator not in ("==", "!=")
        kinds = [self.types.of(side) for side in (child.left, child.right)]
        if is_order and not all(k in INTEGERS or k == INTEGER for k in kinds):
            return super().map_logical_not(expr)
        return self.rec(prim.Comparison(child.left, _OPPOSITE[child.operator], child.right))

    def map_comparison(self, expr: Any) -> Expression:
        left, right = self.rec(expr.left), self.rec(expr.right)
        if expr.operator in (">", ">="):
            return prim.Comparison(right, expr.operator.replace(">", "<"), left)
        return prim.Comparison(left, expr.operator, right)


_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def with_opposites(kernel: Kernel) -> Kernel:
    """A kernel whose conditions on data are written in one way."""
    model = Model(kernel)
    mapper = _Opposites(ValueTypes(model))

    def changed(statement: Statement) -> Statement:
        rhs = statement.rhs if is_constant(statement.rhs) else mapper(statement.rhs)
        predicates = tuple(
            p if model.condition(p) is not None or is_constant(p) else mapper(p)
            for p in statement.predicates
        )
        return replace(statement, rhs=rhs, predicates=predicates)

    return kernel.with_(statements=tuple(map(changed, kernel.statements)))


def with_sorted_conditions(kernel: Kernel) -> Kernel:
    """A kernel that asks what data decide in one order, and once.

    Where conditions ask for temporaries, whose names say nothing, they stay in theirs.
    """
    model = Model(kernel)
    arguments = kernel.arg_by_name

    def place(condition: Expression) -> tuple[list[str], str]:
        names = variable_names(condition) & model.data
        return sorted(names), to_text(condition)

    def changed(statement: Statement) -> Statement:
        found = unique(statement.predicates)
        data = [p for p in found if model.condition(p) is None]
        if all(name in arguments for p in data for name in variable_names(p) & model.data):
            data.sort(key=place)
        known = [p for p in found if model.condition(p) is not None]
        return replace(statement, predicates=(*known, *data))

    return kernel.with_(statements=tuple(map(changed, kernel.statements)))


def in_one_order(kernel: Kernel) -> Kernel:
    """A kernel in which a store comes in front of the next, which runs where it does not."""
    mapper = _Opposites(ValueTypes(Model(kernel)))
    by_id = kernel.statement_by_id
    entries = entries_of(kernel.tree)
    for _ in entries:
        before = list(entries)
        for at, (one, two) in enumerate(pairwise(before)):
            names = one[0], two[0]
            if entries[at] == one and one[1] == two[1] and all(isinstance(n, str) for n in names):
                mine, its = (by_id[str(name)] for name in names)
                if _comes_after(mine, its, mapper):
                    entries[at : at + 2] = [two, one]
        if entries == before:
            break
    return kernel.with_(tree=build(entries))


def _comes_after(one: Statement, two: Statement, mapper: _Opposites) -> bool:
    """Whether of two stores to one cell never both run, and the second is to be the first one."""
    if not (_only_stores(one) and _writes_the_same_cell(one, two)):
        return False
    common = common_guards(one.predicates, two.predicates)
    if common in (len(one.predicates), len(two.predicates)):
        return False
    if one.written in _asked(one) | _asked(two):
        return False
    mine, its = one.predicates[common], two.predicates[common]
    return _exclude_each_other([mine], [its], mapper) and _rank(mine) > _rank(its)


def _rank(condition: Expression) -> int:
    if isinstance(condition, prim.Comparison):
        return int(condition.operator in ("<=", "!="))
    return 2 * isinstance(condition, prim.LogicalNot)
