"""Comparisons, conditions, choices and extrema in CUDA C."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import pymbolic.primitives as prim

from loopkit import _promotion as dt
from loopkit._expression import to_text
from loopkit._nodes import Expression
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

    def late(self, kind: dt.Typed, operands: Sequence[Operand], of: Expression) -> dt.DType:
        """The type in which C computes a number of Python's at run time."""
        if kind != dt.INTEGER:
            return dt.natural(kind)  # type: ignore[arg-type]
        long = any(
            o.dtype.itemsize == 8 if isinstance(o, Value) else not _is_int(o) for o in operands
        )
        most = None if long else self.largest(of)
        return dt.INT64 if most is None or most >= 2**31 else dt.INT32

    def late_value(self, value: Value, weak: dt.RunTime | None, expr: Expression) -> Value:
        """The value of an expression that is a number of Python's, if it is one."""
        value.weak = weak
        is_known = value.most is not None and value.most < 2**63
        if (
            weak == dt.INTEGER
            and value.dtype.itemsize == 8
            and not is_known
            and not self.holds(expr)
        ):
            value.beyond = expr
        return value

    def comparison(self, expr: Any) -> Operand:
        symbol: str = expr.operator
        asked = asked_in(expr)
        a, b = whole(self.rec(expr.left)), whole(self.rec(expr.right))
        dt.check_comparison(typed(a), symbol, typed(b), asked)
        if not isinstance(a, Value) and not isinstance(b, Value):
            return dt.fold(dt.COMPARE[symbol], a, b, asked=asked)  # type: ignore[no-any-return]
        if isinstance(a, Value) and isinstance(b, Value):
            if {a.dtype, b.dtype} & {dt.UINT64} and a.dtype != b.dtype:
                left, right = self.reduced(a), self.reduced(b)
                if all(
                    t.dtype in dt.INTEGERS and t.dtype != dt.BOOL for t in (left, right)
                ) and not (left.dtype in dt.UNSIGNED and right.dtype in dt.UNSIGNED):
                    order = called("lk_compare", (left, right), dt.INT32)
                    return binary(order, symbol, Value(integer(0), dt.INT32), dt.BOOL)
        else:
            known = _known_outcome(a, symbol, b)
            if known is not None:
                return known
        if all(isinstance(x, Value) and x.dtype in dt.INTEGERS for x in (a, b)):
            common = dt.promote(*(x.dtype for x in (a, b)))  # type: ignore[union-attr]
        elif all(is_late(x) for x in (a, b)):
            common = dt.promote(*(x.dtype if isinstance(x, Value) else x for x in (a, b)))
        elif dt.BOOL in (typed(a), typed(b)) and int in (type(a), type(b)):
            common = dt.INT32  # NumPy compares them in int64, with the same outcome
        else:
            common = dt.promote(typed(a), typed(b))
        if common in dt.COMPLEXES:
            left, right = self.exact(a, common), self.exact(b, common)
        else:
            left, right = (self.reduced(x) for x in self.unify(a, b, common))
        return binary(left, symbol, right, dt.BOOL)

    def logical_and(self, expr: prim.LogicalAnd) -> Operand:
        return Value(joined("&&", [self.truth(c) for c in expr.children]), dt.BOOL)

    def logical_or(self, expr: prim.LogicalOr) -> Operand:
        return Value(joined("||", [self.truth(c) for c in expr.children]), dt.BOOL)

    def truth(self, expr: Expression) -> CExpression:
        """``expr`` as a condition of C."""
        return self.condition(self.rec(expr)).node

    def logical_not(self, expr: prim.LogicalNot) -> Operand:
        child = expr.child
        if isinstance(child, prim.Comparison) and child.operator in ("==", "!="):
            opposite = "!=" if child.operator == "==" else "=="
            return self.comparison(prim.Comparison(child.left, opposite, child.right))
        return Value(Unary("!", self.truth(child)), dt.BOOL)

    def conditional(self, expr: prim.If) -> Operand:
        condition = self.truth(expr.condition)
        then, else_ = self.rec(expr.then), self.rec(expr.else_)
        if not isinstance(then, Value) and not isinstance(else_, Value):
            return dt.Choice(condition, then, else_)
        if not (is_late(then) and is_late(else_)):
            return self._chosen(condition, then, else_, dt.promote(typed(then), typed(else_)))
        weak = dt.run_time(dt.Choice(None, typed(then), typed(else_)))  # type: ignore[arg-type]
        common = self.late(weak, (then, else_), expr)
        return self.late_value(self._chosen(condition, then, else_, common), weak, expr)

    def _chosen(
        self, condition: CExpression, then: Operand, else_: Operand, common: dt.DType
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
                result = dt.fold(dt.FOLD[node], operand, result, asked=asked)
                continue
            if is_late(operand) and is_late(result):
                weak = dt.fold(dt.FOLD[node], typed(operand), typed(result), asked=asked)
                common = self.late(weak, (operand, result), expr)
                result = self.extremum(node, whole(operand), whole(result), common)
                result.weak = dt.run_time(weak)
                continue
            common = dt.operation_type(node, typed(operand), typed(result), asked)
            result = self.extremum(node, operand, result, common)
        return result

    def extremum(self, node: type, a: Operand, b: Operand, common: dt.DType) -> Value:
        """The larger or smaller of two operands, in the type ``common``."""
        if common == dt.BOOL:
            symbol = "||" if node is prim.Max else "&&"
            return binary(self.condition(a), symbol, self.condition(b), dt.BOOL)
        name = "max" if node is prim.Max else "min"
        compute = dt.FLOAT32 if common in dt.SMALL_FLOATS else common
        if compute in dt.FLOATS:
            name = "lk_" + name
        sides = [self.reduced(self.exact(self.exact(x, common), compute)) for x in (a, b)]
        return self.exact(called(name, sides, compute), common)


def _is_int(value: Operand) -> bool:
    return type(value) in (bool, int) and dt.fits(int(value), dt.INT32)  # type: ignore[arg-type]


def asked_in(expr: Expression) -> Callable[[], str]:
    """What an error says was asked; the text is made only when it is read."""
    return lambda: f"in '{to_text(expr)}'"


def _known_outcome(a: Operand, symbol: str, b: Operand) -> bool | None:
    """The outcome of comparing an integer with a constant beyond its type, if it is one."""
    if isinstance(b, Value):
        return _known_outcome(b, _MIRRORED[symbol], a)
    if not isinstance(a, Value) or a.dtype not in dt.INTEGERS or type(b) is not int:
        return None
    if dt.fits(b, a.dtype):
        return None
    return dt.COMPARE[symbol](0, 1) if b > 0 else dt.COMPARE[symbol](1, 0)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
