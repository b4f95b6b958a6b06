"""The operations of a statement: how many of which kind, in which type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymbolic.primitives as prim

from loopkit._expression import is_constant
from loopkit._frozen import dataclass
from loopkit._guarded import GuardedWalker, Guards
from loopkit._kernel import Statement
from loopkit._nodes import Expression, TypeCast
from loopkit._promotion import Typed
from loopkit._types import concrete, dtype_of


@dataclass(frozen=True)
class Operation:
    """So many operations of a kind (``"add"``, ``"mul"``, ``"sqrt"``, ...) in a type."""

    kind: str
    dtype: str
    times: int
    guards: Guards = ()


_BINARY = {
    prim.Quotient: "div",
    prim.FloorDiv: "floordiv",
    prim.Remainder: "mod",
    prim.Power: "pow",
    prim.LeftShift: "shift",
    prim.RightShift: "shift",
    prim.If: "select",
    prim.BitwiseNot: "bitwise",
    prim.LogicalNot: "logical",
    TypeCast: "cast",
}
_UPDATES = {"sum": "add", "product": "mul"}
_OF_CHILDREN = {
    prim.Min: "min",
    prim.Max: "max",
    prim.BitwiseAnd: "bitwise",
    prim.BitwiseOr: "bitwise",
    prim.BitwiseXor: "bitwise",
    prim.LogicalAnd: "logical",
    prim.LogicalOr: "logical",
}


def operations_of(statement: Statement, type_of: Callable[[str], Typed]) -> list[Operation]:
    """What a statement computes in each instance; arithmetic of subscripts is not counted.

    A difference is an addition: ``a - b`` is one ``add``. ``type_of`` gives the type of a name.
    """
    walker = _Operations(type_of)
    for predicate in statement.predicates:
        walker(predicate)
    walker(statement.rhs)
    if statement.operation is not None:
        kind = _UPDATES.get(statement.operation, statement.operation)
        walker.found.append(Operation(kind, concrete(dtype_of(statement.lhs, type_of)).name, 1))
    return walker.found


class _Operations(GuardedWalker):
    def __init__(self, type_of: Callable[[str], Typed]) -> None:
        super().__init__()
        self.type_of = type_of
        self.found: list[Operation] = []

    def __call__(self, expr: Expression, *args: Any, **kwargs: Any) -> Any:
        self._count(expr)
        return super().__call__(expr, *args, **kwargs)

    rec = __call__

    def map_subscript(self, expr: prim.Subscript) -> None:
        """What computes an address is not counted."""

    def _count(self, expr: Expression) -> None:
        kind, times = _kind_of(expr)
        if times:
            typed = expr.left if isinstance(expr, prim.Comparison) else expr
            name = concrete(dtype_of(typed, self.type_of)).name
            self.found.append(Operation(kind, name, times, self.guards))


def _kind_of(expr: Expression) -> tuple[str, int]:
    """The kind of an operation, and how many of it an expression is."""
    if isinstance(expr, prim.Sum):
        return "add", len(expr.children) - 1
    if isinstance(expr, prim.Product):
        factors = [c for c in expr.children if not (is_constant(c) and c == -1)]
        return "mul", len(factors) - 1
    if isinstance(expr, prim.Comparison):
        return "compare", 1
    if isinstance(expr, prim.Call):
        return expr.function.name, 1
    if type(expr) in _OF_CHILDREN:
        return _OF_CHILDREN[type(expr)], len(expr.children) - 1
    return _BINARY.get(type(expr), ""), int(type(expr) in _BINARY)
