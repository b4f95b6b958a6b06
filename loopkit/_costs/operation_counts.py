"""The operations of a statement, counted by kind and type."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pymbolic.primitives as prim

from loopkit._expression import is_constant, is_no_access
from loopkit._frozen import dataclass
from loopkit._guarded import Guards, guarded_nodes
from loopkit._kernel import Statement
from loopkit._nodes import Expression, TypeCast
from loopkit._promotion import Typed, dtype_name
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


def operations_of(
    statement: Statement, predicates: Iterable[Expression], type_of: Callable[[str], Typed]
) -> list[Operation]:
    """What a statement computes in each instance; arithmetic of subscripts is not counted.

    Of its conditions, those in ``predicates`` are: the others say which instances there are.
    A difference is an addition: ``a - b`` is one ``add``. ``type_of`` gives the type of a name.
    """
    found: list[Operation] = []
    for expr in (*predicates, statement.rhs):
        for node, guards in guarded_nodes(expr, into=is_no_access):
            kind, times = _kind_of(node)
            if times:
                typed = node.left if isinstance(node, prim.Comparison) else node
                found.append(
                    Operation(kind, dtype_name(concrete(dtype_of(typed, type_of))), times, guards)
                )
    if statement.operation is not None:
        kind = _UPDATES.get(statement.operation, statement.operation)
        found.append(Operation(kind, dtype_name(concrete(dtype_of(statement.lhs, type_of))), 1))
    return found


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
