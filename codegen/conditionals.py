"""Comparisons, conditions, choices and extrema in CUDA C."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import pymbolic.primitives as prim

from loopkit._expression import to_text
from loopkit._nodes import Expression
from loopkit._promotion import (
    BOOL,
    COMPARE,
    COMPLEXES,
    FLOAT32,
    FLOATS,
    FOLD,
    INT32,
    INT64,
    INTEGER,
    INTEGERS,
    SMALL_FLOATS,
    UINT64,
    UNSIGNED,
    Choice,
    DType,
    RunTime,
    Typed,
    check_comparison,
    fits,
    fold,
    natural,
    operation_type,
    promote,
    run_time,
)
from loopkit.codegen.c import tree
from loopkit.codegen.c.tree import CExpression, Unary
from loopkit.codegen.conversions import Converter, Operand, is_late, typed, whole
from loopkit.codegen.operands import Value, binary, called, integer, joined


class ConditionalLowering(Converter):
    """Lowers what decides between values, and what decides truth."""

    largest: Callable[[Expression], int | None]
    holds: Callable[[Expression], bool]

    @abstractmethod
    def rec(self, expr: Expression) -> Operand:
        """``expr`` as a value with its type, or as the constant that it is."""

    def late(self, kind: Typed, operands: Sequence[Operand], of: Expression) -> DType:
        """The type in which C computes a number of Python's at run time."""
        if kind != INTEGER:
            return natural(kind)  # type: ignore[arg-type]
        long = any(
            o.dtype.itemsize == 8 if isinstance(o, Value) else not _is_int(o) for o in operands
        )
        most = None if long else self.largest(of)
        return INT64 if most is None or most >= 2**31 else INT32

    def late_value(self, value: Value, weak: RunTime | None, expr: Expression) -> Value:
        """The value of an expression that is a number of Python's, if it is one."""
        value.weak = weak
        is_known = value.most is not None and value.most < 2**63
        if weak == INTEGER and value.dtype.itemsize == 8 and not is_known and not self.holds(expr):
            value.beyond = expr
        return value

    def comparison(self, expr: Any) -> Operand:
        symbol: str = expr.operator
        asked = asked_in(expr)
        a, b = whole(self.rec(expr.left)), whole(self.rec(expr.right))
        check_comparison(typed(a), symbol, typed(b), asked)
        if not isinstance(a, Value) and not isinstance(b, Value):
            return fold(COMPARE[symbol], a, b, asked=asked)  # type: ignore[no-any-return]
        if isinstance(a, Value) and isinstance(b, Value):
            if {a.dtype, b.dtype} & {UINT64} and a.dtype != b.dtype:
                left, right = self.reduced(a), self.reduced(b)
                if all(t.dtype in INTEGERS and t.dtype != BOOL for t in (left, right)) and not (
                    left.dtype in UNSIGNED and right.dtype in UNSIGNED
                ):
                    order = called("lk_compare", (left, right), INT32)
                    return binary(order, symbol, Value(integer(0), INT32), BOOL)
        else:
            known = _known_outcome(a, symbol, b)
            if known is not None:
                return known
        if all(isinstance(x, Value) and x.dtype in INTEGERS for x in (a, b)):
            common = promote(*(x.dtype for x in (a, b)))  # type: ignore[union-attr]
        elif all(is_late(x) for x in (a, b)):
            common = promote(*(x.dtype if isinstance(x, Value) else x for x in (a, b)))
        elif BOOL in (typed(a), typed(b)) and int in (type(a), type(b)):
            common = INT32  # NumPy compares them in int64, with the same outcome
        else:
            common = promote(typed(a), typed(b))
        if common in COMPLEXES:
            left, right = self.exact(a, common), self.exact(b, common)
        else:
            left, right = (self.reduced(x) for x in self.unify(a, b, common))
        return binary(left, symbol, right, BOOL)

    def logical_and(self, expr: prim.LogicalAnd) -> Operand:
        return Value(joined("&&", [self.truth(c) for c in expr.children]), BOOL)

    def logical_or(self, expr: prim.LogicalOr) -> Operand:
        return Value(joined("||", [self.truth(c) for c in expr.children]), BOOL)

    def truth(self, expr: Expression) -> CExpression:
        """``expr`` as a condition of C."""
        return self.condition(self.rec(expr)).node

    def logical_not(self, expr: prim.LogicalNot) -> Operand:
        child = expr.child
        if isinstance(child, prim.Comparison) and child.operator in ("==", "!="):
            opposite = "!=" if child.operator == "==" else "=="
            return self.comparison(prim.Comparison(child.left, opposite, child.right))
        return Value(Unary("!", self.truth(child)), BOOL)

    def conditional(self, expr: prim.If) -> Operand:
        condition = self.truth(expr.condition)
        then, else_ = self.rec(expr.then), self.rec(expr.else_)
        if not isinstance(then, Value) and not isinstance(else_, Value):
            return Choice(condition, then, else_)
        if not (is_late(then) and is_late(else_)):
            return self._chosen(condition, then, else_, promote(typed(then), typed(else_)))
        weak = run_time(Choice(None, typed(then), typed(else_)))  # type: ignore[arg-type]
        common = self.late(weak, (then, else_), expr)
        return self.late_value(self._chosen(condition, then, else_, common), weak, expr)

    def _chosen(
        self, condition: CExpression, then: Operand, else_: Operand, common: DType
    ) -> Value:
        nodes = [self.reduced(self.exact(branch, common)).node for branch in (then, else_)]
        return Value(tree.Choice(condition, *nodes), common)

    def extrema(self, expr: Any) -> Operand:
        node = type(expr)
        asked = asked_in(expr)
        # Nested to the right, as min(a, min(b, c)).
        result = self.rec(expr.children[-1])
        for child in reversed(expr.children[:-1]):
            operand = self.rec(child)
            if not isinstance(result, Value) and not isinstance(operand, Value):
                result = fold(FOLD[node], operand, result, asked=asked)
                continue
            if is_late(operand) and is_late(result):
                weak = fold(FOLD[node], typed(operand), typed(result), asked=asked)
                common = self.late(weak, (operand, result), expr)
                result = self.extremum(node, whole(operand), whole(result), common)
                result.weak = run_time(weak)
                continue
            common = operation_type(node, typed(operand), typed(result), asked)
            result = self.extremum(node, operand, result, common)
        return result

    def extremum(self, node: type, a: Operand, b: Operand, common: DType) -> Value:
        """The larger or smaller of two operands, in the type ``common``."""
        if common == BOOL:
            symbol = "||" if node is prim.Max else "&&"
            return binary(self.condition(a), symbol, self.condition(b), BOOL)
        name = "max" if node is prim.Max else "min"
        compute = FLOAT32 if common in SMALL_FLOATS else common
        if compute in FLOATS:
            name = "lk_" + name
        sides = [self.reduced(self.exact(self.exact(x, common), compute)) for x in (a, b)]
        return self.exact(called(name, sides, compute), common)


def _is_int(value: Operand) -> bool:
    return type(value) in (bool, int) and fits(int(value), INT32)  # type: ignore[arg-type]


def asked_in(expr: Expression) -> Callable[[], str]:
    """What an error says was asked; the text is made only when it is read."""
    return lambda: f"in '{to_text(expr)}'"


def _known_outcome(a: Operand, symbol: str, b: Operand) -> bool | None:
    """The outcome of comparing an integer with a constant beyond its type, if it is one."""
    if isinstance(b, Value):
        return _known_outcome(b, _MIRRORED[symbol], a)
    if not isinstance(a, Value) or a.dtype not in INTEGERS or type(b) is not int:
        return None
    if fits(b, a.dtype):
        return None
    return COMPARE[symbol](0, 1) if b > 0 else COMPARE[symbol](1, 0)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
