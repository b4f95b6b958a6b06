"""Expressions in CUDA C with NumPy's meaning.

One pass over an expression makes a tree of C, finds types and folds constants at once.  What C
and NumPy do differently is made explicit: integers narrower than ``int`` are
reduced, operands are cast where C would compute in another type, division and
remainder of possibly negative integers go through helper functions, and so do
``min`` and ``max`` of floating-point numbers, which give NaN if an operand is
one.  Arithmetic of a complex with a real number leaves the imaginary part of
the real one out instead of computing with a zero.  Integers that may overflow
are computed with unsigned ones (:mod:`.wrapping`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _promotion as dt
from loopkit._errors import TypeInferenceError
from loopkit._expression import to_text
from loopkit._nodes import Expression, TypeCast
from loopkit.codegen import wrapping
from loopkit.codegen.c.tree import Binary, Call, CExpression, Unary
from loopkit.codegen.calls import lower_call, lower_power
from loopkit.codegen.conditionals import ConditionalLowering, asked_in
from loopkit.codegen.conversions import Operand, is_late, typed, whole
from loopkit.codegen.operands import (
    NARROW,
    SIGNED,
    Value,
    binary,
    called,
    integer,
    literal,
    scalar_value,
    wrapped,
)


class ExpressionLowering(ConditionalLowering):
    """Lowers expressions over names that the caller knows.

    Parameters
    ----------
    dtype_of_name
        The type of a variable, or of an array's elements.
    variable_of, element_of
        A variable in C, and an array's element at index expressions.
    is_weak
        Whether a name is an iname's or a size's: a number without a type of its own.
    is_nonnegative
        Whether an integer expression is proven never to be negative: then C's own
        ``/`` and ``%`` serve.
    largest
        The largest magnitude that an integer expression is proven to have, if any:
        what does not overflow needs no care.
    holds
        Whether 64 bits hold a number that is made of inames and sizes.
    """

    def __init__(
        self,
        dtype_of_name: Callable[[str], dt.DType],
        variable_of: Callable[[str], CExpression],
        element_of: Callable[[str, tuple[Expression, ...]], CExpression],
        *,
        is_weak: Callable[[str], bool] = lambda name: False,
        is_nonnegative: Callable[[Expression], bool] = lambda expr: False,
        largest: Callable[[Expression], int | None] = lambda expr: None,
        holds: Callable[[Expression], bool] = lambda expr: True,
    ) -> None:
        self.dtype_of_name = dtype_of_name
        self.variable_of = variable_of
        self.element_of = element_of
        self.is_weak = is_weak
        self.is_nonnegative = is_nonnegative
        self.largest = largest
        self.holds = holds

    # {{{ what callers use

    def __call__(self, expr: Expression, dtype: dt.DType | None = None) -> CExpression:
        """``expr`` as the right side of an assignment to a variable of type ``dtype``.

        Without ``dtype`` it keeps its own type.
        """
        operand = self.rec(expr)
        if dtype is not None:
            return self.stored(operand, dtype).node
        if not isinstance(operand, Value):
            operand = self.exact(operand, concrete_type(operand))
        return self.reduced(operand).node

    def update(
        self, target: CExpression, dtype: dt.DType, operation: str, expr: Expression
    ) -> tuple[str, CExpression]:
        """What combines ``target`` with ``expr`` by a reduction's operation.

        An assignment's operator, and its right side.
        """
        if operation in ("any", "all"):
            symbol = "||" if operation == "any" else "&&"
            return "=", Binary(symbol, target, self.truth(expr))
        old = Value(target, dtype)
        value = self.rec(expr)
        if operation in ("sum", "product"):
            if dtype == dt.BOOL:
                symbol = "||" if operation == "sum" else "&&"
                return "=", Binary(symbol, target, self.condition(value).node)
            symbol = "+" if operation == "sum" else "*"
            stored = self.stored(value, dtype)
            if dtype in dt.INTEGERS and not (isinstance(value, Value) and value.dtype in dt.FLOATS):
                stored = wrapping.addend(symbol, dtype, stored, value)
            return f"{symbol}=", stored.node
        if operation in ("max", "min"):
            node = prim.Max if operation == "max" else prim.Min
            self.stored(value, dtype)  # whether it may be stored at all
            return "=", self.extremum(node, old, value, dtype).node
        raise TypeInferenceError(f"there is no update for the reduction '{operation}'")

    # }}}

    def rec(self, expr: Expression) -> Operand:
        """``expr`` as a value with its type, or as the constant that it is."""
        rule = _RULES.get(type(expr))
        if rule is not None:
            return rule(self, expr)
        if isinstance(expr, np.generic):
            value, dtype = scalar_value(expr)
            return literal(value, dtype)
        raise TypeInferenceError(f"'{to_text(expr)}' cannot be printed as C")

    def constant(self, expr: dt.Constant) -> Operand:
        return expr

    def variable(self, expr: prim.Variable) -> Operand:
        dtype = self.dtype_of_name(expr.name)
        most = self.largest(expr) if dtype in dt.INTEGERS else None
        weak = dt.INTEGER if self.is_weak(expr.name) else None
        return Value(self.variable_of(expr.name), dtype, most=most, weak=weak)

    def subscript(self, expr: Any) -> Operand:
        name = expr.aggregate.name
        return Value(self.element_of(name, expr.index), self.dtype_of_name(name))

    def meeting(
        self, node: type, a: Operand, b: Operand, asked: Callable[[], str], of: Expression
    ) -> tuple[dt.DType, dt.RunTime | None]:
        """The type of an operation, and what it is where both operands are without one."""
        if not (is_late(a) and is_late(b)):
            return dt.operation_type(node, typed(a), typed(b), asked), None
        weak = dt.run_time(dt.fold(dt.FOLD[node], typed(a), typed(b), asked=asked))
        return self.late(weak, (a, b), of), weak

    # {{{ sums and products

    def sum(self, expr: prim.Sum) -> Operand:
        asked = asked_in(expr)
        total = self.rec(expr.children[0])
        for number, child in enumerate(expr.children[1:], 2):
            node: type = prim.Sum
            subtracted = dt.subtrahend(child)
            if subtracted is None:
                subtracted = _without_minus(child)
            if subtracted is not None:
                child, node = subtracted, dt.Subtraction
            term = self.rec(child)
            if not isinstance(total, Value) and not isinstance(term, Value):
                total = dt.fold(dt.FOLD[node], total, term, asked=asked)
                continue
            part = prim.Sum(expr.children[:number])
            common, weak = self.meeting(node, total, term, asked, part)
            if node is prim.Sum and type(term) in (int, float) and term < 0:  # type: ignore[operator]
                term, node = -term, dt.Subtraction  # type: ignore[operator]
            if common == dt.BOOL:
                total = binary(self.condition(total), "||", self.condition(term), dt.BOOL)
                continue
            symbol = "+" if node is prim.Sum else "-"
            total = self.arithmetic(symbol, total, term, common, part)
            total = self.late_value(total, weak, part)
        return total

    def arithmetic(
        self, symbol: str, a: Operand, b: Operand, common: dt.DType, of: Expression
    ) -> Value:
        """``a symbol b`` in the type ``common``; ``of`` is the expression that this is."""
        left, right = self.unify(a, b, common)
        if common in dt.INTEGERS:
            return wrapping.combined(
                symbol, (left, right), (a, b), common, lambda: self.largest(of)
            )
        return binary(left, symbol, right, common)

    def product(self, expr: prim.Product) -> Operand:
        asked = asked_in(expr)
        children = expr.children
        first = children[0]
        if type(first) is int and first == -1 and len(children) > 1:
            result = self.negated(self.rec(children[1]), asked)
            children = children[1:]
        else:
            result = self.rec(first)
        for number, child in enumerate(children[1:], len(expr.children) - len(children) + 2):
            factor = self.rec(child)
            if not isinstance(result, Value) and not isinstance(factor, Value):
                result = dt.fold(dt.FOLD[prim.Product], result, factor, asked=asked)
                continue
            part = prim.Product(expr.children[:number])
            common, weak = self.meeting(prim.Product, result, factor, asked, part)
            if common == dt.BOOL:
                result = binary(self.condition(result), "&&", self.condition(factor), dt.BOOL)
                continue
            result = self.arithmetic("*", result, factor, common, part)
            result = self.late_value(result, weak, part)
        return result

    def negated(self, operand: Operand, asked: Callable[[], str]) -> Operand:
        if not isinstance(operand, Value):
            return dt.fold(lambda x: -1 * x, operand, asked=asked)  # type: ignore[no-any-return]
        if operand.dtype == dt.BOOL:  # -1 is an integer, and so is the result
            operand = self.cast(operand, dt.INT64)
        dtype, most, weak = operand.dtype, None, operand.weak
        if dtype in dt.INTEGERS:
            most = wrapping.magnitude(operand, dtype)
            operand = wrapping.guarded(operand, most, dtype)
        wide = dtype in NARROW or operand.unsigned
        known = most if dtype in SIGNED else None
        return Value(
            Unary("-", operand.node),
            dtype,
            wide,
            unsigned=operand.unsigned,
            most=known,
            weak=weak,
            beyond=operand.beyond,
        )

    # }}}

    # {{{ division

    def quotient(self, expr: Any) -> Operand:
        asked = asked_in(expr)
        a, b = self.rec(expr.numerator), self.rec(expr.denominator)
        if not isinstance(a, Value) and not isinstance(b, Value):
            return dt.fold(dt.FOLD[prim.Quotient], a, b, asked=asked)  # type: ignore[no-any-return]
        common, weak = self.meeting(prim.Quotient, a, b, asked, expr)
        left, right = self.unify(a, b, common)
        return Value(Binary("/", left.node, right.node), common, weak=weak)

    def division(self, expr: Any) -> Operand:
        node = type(expr)
        asked = asked_in(expr)
        a, b = self.rec(expr.numerator), self.rec(expr.denominator)
        if not isinstance(a, Value) and not isinstance(b, Value):
            return dt.fold(dt.FOLD[node], a, b, asked=asked)  # type: ignore[no-any-return]
        common, weak = self.meeting(node, a, b, asked, expr)
        if weak is not None:
            whole(a), whole(b)
        return self.late_value(self._divided(expr, a, b, common), weak, expr)

    def _divided(self, expr: Any, a: Operand, b: Operand, common: dt.DType) -> Value:
        node = type(expr)
        is_floor = node is prim.FloorDiv
        name = "lk_floordiv" if is_floor else "lk_mod"
        if common in dt.FLOATS:
            compute = dt.FLOAT32 if common in dt.SMALL_FLOATS else common
            sides = [self.exact(self.exact(x, common), compute) for x in (a, b)]
            return self.exact(called(name, sides, compute), common)
        before = (a, b)
        a, b = self.narrowed(a, common), self.narrowed(b, common)
        is_whole = before == (a, b)  # else signs are no longer those of the expressions
        left, right = (self.reduced(x) for x in self.unify(a, b, common))
        most = None
        if type(b) is int and b > 0:
            most = wrapping.magnitude(left, common) // b + 1 if is_floor else b - 1
        if is_whole and self._divides_like_c(expr, common, b):
            symbol = "/" if is_floor else "%"
            return Value(Binary(symbol, left.node, right.node), common, most=most)
        if type(b) is int and b > 0 and b & (b - 1) == 0:
            # Shifting and masking round down for negative numbers, too.
            symbol, by = (">>", b.bit_length() - 1) if is_floor else ("&", b - 1)
            return Value(Binary(symbol, left.node, integer(by)), common, most=most)
        wide = common in NARROW and common not in dt.UNSIGNED
        return Value(Call(name, (left.node, right.node)), common, wide, most=most)

    def _divides_like_c(self, expr: Any, common: dt.DType, divisor: Operand) -> bool:
        if isinstance(divisor, Value):
            positive = self.is_nonnegative(prim.Sum((expr.denominator, -1)))
        else:
            positive = type(divisor) is int and divisor > 0
        return positive and (common in dt.UNSIGNED or self.is_nonnegative(expr.numerator))

    def power(self, expr: Any) -> Operand:
        base, exponent = self.rec(expr.base), self.rec(expr.exponent)
        return self._called("pow", [base, exponent], expr)

    def _called(self, name: str, operands: list[Operand], expr: Any) -> Operand:
        """A call; of what has no type it is computed in the types that C computes with."""
        asked = asked_in(expr)
        for operand in operands[1:] if name == "pow" else operands:
            whole(operand)
        if any(isinstance(o, Value) for o in operands) and all(is_late(o) for o in operands):
            kind = dt.call_type(name, [typed(o) for o in operands], asked)
            is_wide = name in _OF_INTEGERS
            strong = [
                self._typed_as_computed(o, is_wide=is_wide) if isinstance(o, Value) else o
                for o in operands
            ]
            result = self._called(name, strong, expr)
            if isinstance(result, Value) and not isinstance(kind, np.dtype):
                result = self.late_value(result, dt.run_time(kind), expr)
            return result
        if name == "pow":
            return lower_power(self, operands[0], operands[1], asked)
        return lower_call(self, name, operands, asked)

    def _typed_as_computed(self, operand: Value, *, is_wide: bool) -> Value:
        """A number without a type in that which C computes it in, or in the widest of its kind."""
        assert operand.weak is not None
        value = self.exact(operand, dt.natural(operand.weak)) if is_wide else operand
        unsigned, most = value.unsigned, operand.most
        return Value(value.node, value.dtype, value.wide, unsigned=unsigned, most=most)

    # }}}

    # {{{ bits

    def bitwise(self, expr: Any) -> Operand:
        node = type(expr)
        asked = asked_in(expr)
        symbol = _BITWISE[node]
        result = self.rec(expr.children[0])
        for child in expr.children[1:]:
            operand = self.rec(child)
            if not isinstance(result, Value) and not isinstance(operand, Value):
                result = dt.fold(dt.FOLD[node], result, operand, asked=asked)
                continue
            common, weak = self.meeting(node, result, operand, asked, expr)
            one, two = self.narrowed(result, common), self.narrowed(operand, common)
            left, right = self.unify(one, two, common)
            wide, unsigned = left.wide or right.wide, left.unsigned or right.unsigned
            bits = Binary(symbol, left.node, right.node)
            result = Value(bits, common, wide, unsigned=unsigned)
            result = self.late_value(result, weak, expr)
        return result

    def bitwise_not(self, expr: prim.BitwiseNot) -> Operand:
        operand = self.rec(expr.child)
        if not isinstance(operand, Value):
            return dt.fold(lambda x: ~x, operand, asked=asked_in(expr))  # type: ignore[no-any-return]
        if operand.dtype == dt.BOOL:
            return Value(Unary("!", operand.node), dt.BOOL)
        if operand.dtype not in dt.INTEGERS:
            raise dt.refuse("'~'", operand.dtype, asked_in(expr)())
        weak = operand.weak
        if weak is not None:
            operand = self._typed_as_computed(operand, is_wide=True)
        wide = operand.wide or operand.dtype in NARROW
        node, unsigned = Unary("~", operand.node), operand.unsigned
        return self.late_value(Value(node, operand.dtype, wide, unsigned=unsigned), weak, expr)

    def shift(self, expr: Any) -> Operand:
        node = type(expr)
        asked = asked_in(expr)
        a, n = self.rec(expr.shiftee), self.rec(expr.shift)
        if not isinstance(a, Value) and not isinstance(n, Value):
            return dt.fold(dt.FOLD[node], a, n, asked=asked)  # type: ignore[no-any-return]
        common, weak = self.meeting(node, a, n, asked, expr)
        common = common if weak is None else dt.INT64
        left = self.reduced(self.exact(a, common))
        is_left = node is prim.LeftShift
        if weak is not None:
            whole(n if is_left else a), whole(n)
        if type(n) is int and 0 <= n < 8 * common.itemsize:
            symbol = "<<" if is_left else ">>"
            wide = is_left and common in NARROW
            shifted = Value(Binary(symbol, left.node, integer(int(n))), common, wide)
            return self.late_value(shifted, weak, expr)
        name = "lk_shl" if is_left else "lk_shr"
        right = self.reduced(self.operand(self.narrowed(n, common), common))
        return self.late_value(called(name, (left, right), common), weak, expr)

    # }}}

    def call(self, expr: Any) -> Operand:
        operands = [self.rec(parameter) for parameter in expr.parameters]
        return self._called(expr.function.name, operands, expr)

    def type_cast(self, expr: TypeCast) -> Operand:
        operand = self.rec(expr.operand)
        dtype = expr.dtype
        if isinstance(operand, Value):
            if operand.dtype == dtype and operand.weak is None:
                return operand
            strong = self.reduced(self.cast(operand, dtype))
            return Value(strong.node, dtype, most=strong.most)
        return self.weak(operand, dtype, _cast_literal)


_OF_INTEGERS = frozenset(("pow", "abs", "sign", "fmin", "fmax"))
"""Functions whose results are integers where their arguments are."""


def concrete_type(value: Operand) -> dt.DType:
    """The type of a constant that meets nothing: NumPy's default, but ``int32`` where it fits."""
    if isinstance(value, Value):
        return value.dtype
    if isinstance(value, dt.Choice):
        return dt.promote(concrete_type(value.then), value.else_)
    if isinstance(value, int) and not isinstance(value, bool):
        return dt.INT32 if dt.fits(value, dt.INT32) else dt.INT64
    return np.dtype(type(value))


def _cast_literal(value: dt.Constant, dtype: dt.DType) -> Value:
    return literal(wrapped(value, dtype), dtype)


def _without_minus(term: Expression) -> Expression | None:
    """``3*x`` for the term ``-3*x``."""
    if isinstance(term, prim.Product):
        first = term.children[0]
        if type(first) in (int, float) and first < 0:
            return prim.Product((-first, *term.children[1:]))
    return None


_BITWISE = {
    prim.BitwiseAnd: "&",
    prim.BitwiseOr: "|",
    prim.BitwiseXor: "^",
}
_RULES: dict[type, Callable[[ExpressionLowering, Any], Operand]] = {
    **dict.fromkeys((bool, int, float, complex), ExpressionLowering.constant),
    prim.Variable: ExpressionLowering.variable,
    prim.Subscript: ExpressionLowering.subscript,
    prim.Sum: ExpressionLowering.sum,
    prim.Product: ExpressionLowering.product,
    prim.Quotient: ExpressionLowering.quotient,
    prim.FloorDiv: ExpressionLowering.division,
    prim.Remainder: ExpressionLowering.division,
    prim.Power: ExpressionLowering.power,
    **dict.fromkeys(_BITWISE, ExpressionLowering.bitwise),
    prim.BitwiseNot: ExpressionLowering.bitwise_not,
    prim.LeftShift: ExpressionLowering.shift,
    prim.RightShift: ExpressionLowering.shift,
    prim.Comparison: ConditionalLowering.comparison,
    prim.LogicalAnd: ConditionalLowering.logical_and,
    prim.LogicalOr: ConditionalLowering.logical_or,
    prim.LogicalNot: ConditionalLowering.logical_not,
    prim.If: ConditionalLowering.conditional,
    prim.Min: ConditionalLowering.extrema,
    prim.Max: ConditionalLowering.extrema,
    prim.Call: ExpressionLowering.call,
    TypeCast: ExpressionLowering.type_cast,
}
