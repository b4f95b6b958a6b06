"""Lowering of expressions to CUDA C with NumPy's semantics.

One pass over an expression builds the C tree, determines types and folds constants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _promotion as dt
from loopkit._device_functions import OwnFunction
from loopkit._errors import TypeInferenceError
from loopkit._expression import to_text
from loopkit._functions import call_type
from loopkit._nodes import Component, Expression, Record, TypeCast
from loopkit._types import asked_of
from loopkit.codegen import operands as op
from loopkit.codegen import wrapping
from loopkit.codegen.c.tree import Braces, Call, CExpression, Choice, Member, Unary
from loopkit.codegen.c.types import C_TYPES
from loopkit.codegen.math_calls import lower_call
from loopkit.codegen.operands import Operand, Value
from loopkit.codegen.operations import BITWISE, OperationLowering, typed_as_computed


class ExpressionLowering(OperationLowering):
    """Lowers expressions; subclasses define the names in them."""

    def __call__(self, expr: Expression, dtype: dt.DType | None = None) -> CExpression:
        """``expr`` as the right side of an assignment to a variable of type ``dtype``.

        Without ``dtype`` it keeps its own type.
        """
        if isinstance(expr, Record) and dtype is not None:
            return self.record(expr, dtype)
        operand = self.rec(expr)
        if dtype is not None:
            return op.stored(operand, dtype).node
        return op.reduced(op.exact(operand, concrete_type(operand))).node

    def update(
        self, target: CExpression, dtype: dt.DType, operation: str, expr: Expression
    ) -> tuple[str, CExpression]:
        """The assignment operator and right-hand side that combine ``expr`` into ``target``.

        The operation is that of a reduction.
        """
        value = self.rec(expr)
        connectives = _OF_TRUTH if dtype == dt.BOOL else _CONNECTIVES
        if operation in connectives:
            old = op.truth_of(Value(target, dtype))
            found = op.binary(old, connectives[operation], op.truth_of(value), dt.BOOL)
            return "=", op.stored(found, dtype).node
        if operation in ("sum", "product"):
            symbol = "+" if operation == "sum" else "*"
            term = op.stored(value, dtype)
            if dtype in dt.INTEGERS and not (isinstance(value, Value) and value.dtype in dt.FLOATS):
                term = wrapping.addend(symbol, dtype, term, value)
            return f"{symbol}=", term.node
        if operation in ("max", "min"):
            node = prim.Max if operation == "max" else prim.Min
            op.stored(value, dtype)  # whether it may be stored at all
            return "=", self.extremum(node, Value(target, dtype), value, dtype).node
        if operation in _OF_BITS:
            return f"{_OF_BITS[operation]}=", op.stored(value, dtype).node
        raise TypeInferenceError(f"there is no update for the reduction '{operation}'")

    def record(self, expr: Record, dtype: dt.DType) -> CExpression:
        """A record of a type; components are converted explicitly, since braces must not narrow."""
        kinds = dt.components_of(dtype).values()
        parts = (op.of_type(self.rec(p), kind) for p, kind in zip(expr.parts, kinds, strict=True))
        return Braces(C_TYPES[dtype], tuple(parts))

    def component(self, expr: Component) -> Operand:
        operand = self.rec(expr.operand)
        assert isinstance(operand, Value)
        kind = dt.components_of(operand.dtype)[expr.name]
        return Value(Member(operand.node, expr.name), kind)

    def truth(self, expr: Expression) -> CExpression:
        """``expr`` as a condition of C."""
        return op.truth_of(self.rec(expr)).node

    def rec(self, expr: Expression) -> Operand:
        """``expr`` as a value with its type, or as the constant that it is."""
        rule = _RULES.get(type(expr))
        if rule is not None:
            return rule(self, expr)
        if isinstance(expr, np.generic):
            value, dtype = op.scalar_value(expr)
            return op.literal(value, dtype)
        raise TypeInferenceError(f"'{to_text(expr)}' cannot be printed as C")

    def constant(self, expr: dt.Constant) -> Operand:
        return expr

    def variable(self, expr: prim.Variable) -> Operand:
        dtype = self.dtype_of(expr.name)
        most = self.largest(expr) if dtype in dt.INTEGERS else None
        weak = dt.INTEGER if self.is_weak(expr.name) else None
        return Value(self.named(expr.name), dtype, most=most, weak=weak)

    def subscript(self, expr: Any) -> Operand:
        name = expr.aggregate.name
        return Value(self.named(name, expr.index), self.dtype_of(name))

    def comparison(self, expr: Any) -> Operand:
        symbol: str = expr.operator
        asked = asked_of(expr)
        a, b = op.whole(self.rec(expr.left)), op.whole(self.rec(expr.right))
        dt.check_comparison(op.typed(a), symbol, op.typed(b), asked)
        if not isinstance(a, Value) and not isinstance(b, Value):
            return op.exact(dt.fold(dt.COMPARE[symbol], a, b, asked=asked), dt.BOOL)
        known = _known_outcome(a, symbol, b)
        if known is not None:
            return known
        common = _compared_in(a, b)
        if common is None:
            assert isinstance(a, Value) and isinstance(b, Value)
            order = op.called("lk_compare", (op.reduced(a), op.reduced(b)), dt.INT32)
            return op.binary(order, symbol, Value(op.integer(0), dt.INT32), dt.BOOL)
        if common in dt.COMPLEXES:
            return op.binary(op.exact(a, common), symbol, op.exact(b, common), dt.BOOL)
        left, right = op.unify(a, b, common)
        return op.binary(op.reduced(left), symbol, op.reduced(right), dt.BOOL)

    def connective(self, expr: prim.LogicalAnd | prim.LogicalOr) -> Operand:
        symbol = "&&" if isinstance(expr, prim.LogicalAnd) else "||"
        return Value(op.joined(symbol, map(self.truth, expr.children)), dt.BOOL)

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
        weak = None
        if op.is_late(then) and op.is_late(else_):
            weak = dt.run_time(dt.Choice(None, op.typed(then), op.typed(else_)))  # type: ignore[arg-type]
            common = self.late(weak, (then, else_), expr)
        else:
            common = dt.promote(op.typed(then), op.typed(else_))
        branches = (op.reduced(op.exact(branch, common)).node for branch in (then, else_))
        chosen = Value(Choice(condition, *branches), common)
        return chosen if weak is None else self.late_value(chosen, weak, expr)

    def power(self, expr: Any) -> Operand:
        return self._called("pow", [self.rec(expr.base), self.rec(expr.exponent)], expr)

    def call(self, expr: Any) -> Operand:
        if isinstance(expr.function, OwnFunction):
            return self.own_call(expr)
        return self._called(expr.function.name, list(map(self.rec, expr.parameters)), expr)

    def own_call(self, expr: Any) -> Value:
        """A call of a user's function, its arguments cast to exactly the overload's types."""
        operands = [op.whole(self.rec(p)) for p in expr.parameters]
        own = expr.function.overload([op.typed(o) for o in operands], asked_of(expr))
        return Value(Call(own.c_name, tuple(map(op.of_type, operands, own.types))), own.result)

    def _called(self, name: str, operands: list[Operand], expr: Any) -> Operand:
        """A call; of what has no type it is computed in the types that C computes with."""
        asked = asked_of(expr)
        for operand in operands[1:] if name == "pow" else operands:
            op.whole(operand)
        if any(isinstance(o, Value) for o in operands) and all(op.is_late(o) for o in operands):
            kind = call_type(name, [op.typed(o) for o in operands], asked)
            is_wide = name in _OF_INTEGERS
            strong = [
                typed_as_computed(o, is_wide=is_wide) if isinstance(o, Value) else o
                for o in operands
            ]
            result = lower_call(name, strong, asked)
            if isinstance(result, Value) and not isinstance(kind, np.dtype):
                result = self.late_value(result, dt.run_time(kind), expr)
            return result
        return lower_call(name, operands, asked)

    def type_cast(self, expr: TypeCast) -> Operand:
        operand = self.rec(expr.operand)
        dtype = expr.dtype
        if not isinstance(operand, Value):
            return op.of_constant(operand, dtype, lambda v, d: op.literal(op.wrapped(v, d), d))
        if operand.dtype == dtype and operand.weak is None:
            return operand
        strong = op.reduced(op.cast(operand, dtype))
        return Value(strong.node, dtype, most=strong.most)


_CONNECTIVES = {"any": "||", "all": "&&"}
_OF_BITS = {"bit_and": "&", "bit_or": "|", "bit_xor": "^"}
_OF_TRUTH = {**_CONNECTIVES, "sum": "||", "product": "&&"}

_OF_INTEGERS = frozenset(("pow", "abs", "sign", "fmin", "fmax"))
"""Functions whose results are integers where their arguments are."""


def concrete_type(value: Operand) -> dt.DType:
    """The type of a constant without other operands: ``int32`` if it fits, else NumPy's default."""
    if isinstance(value, Value):
        return value.dtype
    if isinstance(value, dt.Choice):
        return dt.promote(concrete_type(value.then), value.else_)
    if isinstance(value, int) and not isinstance(value, bool):
        return dt.INT32 if dt.fits(value, dt.INT32) else dt.INT64
    return np.dtype(type(value))


def _compared_in(a: Operand, b: Operand) -> dt.DType | None:
    """The type in which C compares two operands; None where it has none that holds both."""
    types = [x.dtype if isinstance(x, Value) else x for x in (a, b)]
    if all(isinstance(x, Value) and x.dtype in dt.INTEGERS for x in (a, b)):
        has_sign = [t not in dt.UNSIGNED for t in types]
        if dt.UINT64 in types and any(has_sign):
            return None
        return dt.promote(*types)
    if all(op.is_late(x) for x in (a, b)):
        return dt.promote(*types)
    if dt.BOOL in (op.typed(a), op.typed(b)) and int in (type(a), type(b)):
        return dt.INT32  # NumPy compares them in int64, with the same outcome
    return dt.promote(op.typed(a), op.typed(b))


def _known_outcome(a: Operand, symbol: str, b: Operand) -> bool | None:
    """The outcome of comparing an integer with a constant beyond its type, if it is one."""
    if isinstance(b, Value):
        return None if isinstance(a, Value) else _known_outcome(b, _MIRRORED[symbol], a)
    if not isinstance(a, Value) or a.dtype not in dt.INTEGERS or type(b) is not int:
        return None
    if dt.fits(b, a.dtype):
        return None
    return dt.COMPARE[symbol](0, 1) if b > 0 else dt.COMPARE[symbol](1, 0)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}

_RULES: dict[type, Callable[[ExpressionLowering, Any], Operand]] = {
    **dict.fromkeys((bool, int, float, complex), ExpressionLowering.constant),
    prim.Variable: ExpressionLowering.variable,
    prim.Subscript: ExpressionLowering.subscript,
    prim.Sum: ExpressionLowering.sum,
    prim.Product: ExpressionLowering.product,
    **dict.fromkeys((prim.Quotient, prim.FloorDiv, prim.Remainder), ExpressionLowering.pair),
    prim.Power: ExpressionLowering.power,
    **dict.fromkeys(BITWISE, ExpressionLowering.from_left),
    prim.BitwiseNot: ExpressionLowering.bitwise_not,
    **dict.fromkeys((prim.LeftShift, prim.RightShift), ExpressionLowering.pair),
    prim.Comparison: ExpressionLowering.comparison,
    **dict.fromkeys((prim.LogicalAnd, prim.LogicalOr), ExpressionLowering.connective),
    prim.LogicalNot: ExpressionLowering.logical_not,
    prim.If: ExpressionLowering.conditional,
    **dict.fromkeys((prim.Min, prim.Max), ExpressionLowering.extrema),
    prim.Call: ExpressionLowering.call,
    TypeCast: ExpressionLowering.type_cast,
    Component: ExpressionLowering.component,
}
