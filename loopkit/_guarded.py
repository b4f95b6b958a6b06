"""Accesses with the conditions under which an expression makes them.

Of ``if(c, a, b)`` one branch is evaluated, of ``and`` and ``or`` what follows
where the parts before leave the answer open.  A branch that is not taken
accesses nothing, and what it would have accessed need not be there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._expression import Walker, index_tuple, is_constant, variable_names
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._same import remembered

Guards = tuple[Expression, ...]
Guarded = tuple[str, tuple[Expression, ...], Guards]


def conjuncts(condition: Expression) -> Guards:
    """The conditions that hold together where ``condition`` does, taken apart at ``and``."""
    if isinstance(condition, prim.LogicalAnd):
        return tuple(part for child in condition.children for part in conjuncts(child))
    if isinstance(condition, prim.LogicalNot):
        inner = condition.child
        if isinstance(inner, prim.LogicalOr):
            return tuple(part for c in inner.children for part in conjuncts(prim.LogicalNot(c)))
        if isinstance(inner, prim.LogicalNot):
            return conjuncts(inner.child)
    return (condition,)


class GuardedWalker(Walker):
    """Visits every child; ``guards`` are the conditions under which it is evaluated.

    Of these only those that ``says`` wants are kept: what a thousand others guard is as quick.
    """

    def __init__(
        self, guards: Guards = (), says: Callable[[Expression], bool] | None = None
    ) -> None:
        super().__init__()
        self.guards = guards
        self._says = says

    def _add(self, condition: Expression) -> None:
        parts = conjuncts(condition)
        if self._says is not None:
            parts = tuple(filter(self._says, parts))
        if parts:
            self.guards = (*self.guards, *parts)

    def map_if(self, expr: prim.If) -> None:
        self.rec(expr.condition)
        guards = self.guards
        self._add(expr.condition)
        self.rec(expr.then)
        self.guards = guards
        self._add(prim.LogicalNot(expr.condition))
        self.rec(expr.else_)
        self.guards = guards

    def map_logical_and(self, expr: prim.LogicalAnd) -> None:
        guards = self.guards
        for child in expr.children:
            self.rec(child)
            self._add(child)
        self.guards = guards

    def map_logical_or(self, expr: prim.LogicalOr) -> None:
        guards = self.guards
        for child in expr.children:
            self.rec(child)
            self._add(prim.LogicalNot(child))
        self.guards = guards


class _Collector(GuardedWalker):
    """Collects ``(name, indices, guards)``."""

    def __init__(self, says: Callable[[Expression], bool] | None = None) -> None:
        super().__init__(says=says)
        self.found: list[Guarded] = []

    def map_variable(self, expr: prim.Variable) -> None:
        self.found.append((expr.name, (), self.guards))

    def map_subscript(self, expr: prim.Subscript) -> None:
        indices = index_tuple(expr)
        self.found.append((expr.aggregate.name, indices, self.guards))
        for index in indices:
            self.rec(index)


@remembered(1 << 14)
def _guarded(expr: Expression) -> tuple[Guarded, ...]:
    collector = _Collector()
    collector(expr)
    return tuple(collector.found)


def guarded_accesses(expr: Expression) -> tuple[Guarded, ...]:
    """Every use of a name in ``expr`` with the conditions that must hold for it."""
    return () if is_constant(expr) else _guarded(expr)


def _affinely_guarded(expr: Expression) -> list[Guarded]:
    collector = _Collector(_sets.is_condition)
    collector(expr)
    return collector.found


def guarded_reads(statement: Statement, *, affinely: bool = False) -> list[Guarded]:
    """Everything that a statement reads; the target of an update is not among it.

    ``affinely``: with the affine ones of the conditions alone.
    """
    of = _affinely_guarded if affinely else guarded_accesses
    found: list[Guarded] = []
    guards: Guards = ()
    for predicate in statement.predicates:
        found += [(n, i, guards + g) for n, i, g in of(predicate)]
        guards = (*guards, predicate)
    reads = [*of(statement.rhs)]
    for index in statement.write[1]:
        reads += of(index)
    found += [(n, i, guards + g) for n, i, g in reads] if guards else reads
    return found


def where_all_hold(guards: Iterable[Expression], integers: Collection[str]) -> isl.Set:
    """Where all guards hold, or may: those that data decide are left out.

    ``integers`` are the inames and sizes.  ``{ names of the guards }``, a superset.
    """
    result = _sets.universe()
    for guard in guards:
        for part in conjuncts(guard):
            condition = decided(part, integers)
            if condition is not None:
                result = result & condition
    return result


def decided(guard: Expression, integers: Collection[str]) -> isl.Set | None:
    """Exactly where a guard holds; None where data decide, or it is not affine."""
    if not variable_names(guard) <= frozenset(integers):
        return None
    try:
        return _sets.condition_set(guard)
    except _sets.NotAffineError:
        return None
