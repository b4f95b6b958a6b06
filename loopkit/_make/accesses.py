"""Accesses with the conditions under which an expression makes them."""

from __future__ import annotations

import pymbolic.primitives as prim

from loopkit._expression import _Walker, index_tuple, is_constant
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._same import remembered

Guarded = tuple[str, tuple[Expression, ...], tuple[Expression, ...]]


class _Collector(_Walker):
    """Collects ``(name, indices, guards)``: a branch that is not taken accesses nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Guarded] = []
        self.guards: tuple[Expression, ...] = ()

    def map_variable(self, expr: prim.Variable) -> None:
        self.found.append((expr.name, (), self.guards))

    def map_subscript(self, expr: prim.Subscript) -> None:
        indices = index_tuple(expr)
        self.found.append((expr.aggregate.name, indices, self.guards))
        for index in indices:
            self.rec(index)

    def map_if(self, expr: prim.If) -> None:
        self.rec(expr.condition)
        guards = self.guards
        self.guards = (*guards, expr.condition)
        self.rec(expr.then)
        self.guards = (*guards, prim.LogicalNot(expr.condition))
        self.rec(expr.else_)
        self.guards = guards

    def map_logical_and(self, expr: prim.LogicalAnd) -> None:
        guards = self.guards
        for child in expr.children:
            self.rec(child)
            self.guards = (*self.guards, child)
        self.guards = guards

    def map_logical_or(self, expr: prim.LogicalOr) -> None:
        guards = self.guards
        for child in expr.children:
            self.rec(child)
            self.guards = (*self.guards, prim.LogicalNot(child))
        self.guards = guards


@remembered(1 << 14)
def _guarded(expr: Expression) -> tuple[Guarded, ...]:
    collector = _Collector()
    collector(expr)
    return tuple(collector.found)


def guarded_accesses(expr: Expression) -> tuple[Guarded, ...]:
    """Every use of a name in ``expr`` with the conditions that must hold for it."""
    return () if is_constant(expr) else _guarded(expr)


def guarded_reads(statement: Statement) -> list[Guarded]:
    """Everything that a statement reads; the target of an update is not among it."""
    found: list[Guarded] = []
    guards: tuple[Expression, ...] = ()
    for predicate in statement.predicates:
        found += [(n, i, guards + g) for n, i, g in guarded_accesses(predicate)]
        guards = (*guards, predicate)
    reads = [*guarded_accesses(statement.rhs)]
    for index in statement.write[1]:
        reads += guarded_accesses(index)
    found += [(n, i, guards + g) for n, i, g in reads] if guards else reads
    return found
