"""Expressions as CUDA C text with NumPy's meaning.

One pass over the tree prints, finds types and folds constants at once.  What C
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

from loopkit._errors import TypeInferenceError
from loopkit._expression import to_text
from loopkit._nodes import Expression, TypeCast
from loopkit._promotion import (
    BOOL,
    FLOAT32,
    FLOATS,
    FOLD,
    INT32,
    INT64,
    INTEGER,
    INTEGERS,
    SMALL_FLOATS,
    UNSIGNED,
    Choice,
    Constant,
    DType,
    RunTime,
    Subtraction,
    call_type,
    fits,
    fold,
    natural,
    operation_type,
    promote,
    refuse,
    run_time,
    subtrahend,
)
from loopkit.codegen import wrapping
from loopkit.codegen.calls import print_call, print_power
from loopkit.codegen.choices import ChoicePrinter, asked_in
from loopkit.codegen.conversions import Operand, is_late, typed, whole
from loopkit.codegen.preamble import preamble
from loopkit.codegen.texts import (
    ADD,
    AND,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    MULTIPLY,
    NARROW,
    NONE,
    OR,
    POSTFIX,
    SHIFT,
    SIGNED,
    UNARY,
    Text,
    c_type,
    literal,
    scalar_value,
    wrapped,
)

__all__ = ["CExpressionPrinter", "c_type", "preamble"]


class CExpressionPrinter(ChoicePrinter):
    """Prints expressions over names whose types and texts the caller knows.

    Parameters
    ----------
    dtype_of_name
        The type of a variable, or of an array's elements.
    print_variable, print_subscript
        The C text of a variable, and of an array's element at index expressions.
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

    What the printed texts need collects in ``needs``; :func:`preamble` makes
    headers and device functions of it.
    """

    def __init__(
        self,
        dtype_of_name: Callable[[str], DType],
        print_variable: Callable[[str], str],
        print_subscript: Callable[[str, tuple[Expression, ...]], str],
        *,
        is_weak: Callable[[str], bool] = lambda name: False,
        is_nonnegative: Callable[[Expression], bool] = lambda expr: False,
        largest: Callable[[Expression], int | None] = lambda expr: None,
        holds: Callable[[Expression], bool] = lambda expr: True,
    ) -> None:
        super().__init__()
        self.dtype_of_name = dtype_of_name
        self.print_variable = print_variable
        self.print_subscript = print_subscript
        self.is_weak = is_weak
        self.is_nonnegative = is_nonnegative
        self.largest = largest
        self.holds = holds

    # {{{ what callers use

    def __call__(self, expr: Expression, dtype: DType | None = None, *, level: int = NONE) -> str:
        """``expr`` as the right side of an assignment to a variable of type ``dtype``.

        ``level`` is the precedence that the text must have as part of a larger
        one.  Without ``dtype`` it keeps its own type.
        """
        operand = self.rec(expr)
        if dtype is not None:
            return self.stored(operand, dtype).at(level)
        if not isinstance(operand, Text):
            operand = self.exact(operand, concrete_type(operand))
        return self.reduced(operand).at(level)

    def predicate(self, expr: Expression, *, level: int = NONE) -> str:
        """``expr`` as a condition."""
        return self.condition(self.rec(expr)).at(level)

    def update(self, target: str, dtype: DType, operation: str, expr: Expression) -> str:
        """The statement that combines ``target`` with ``expr`` by a reduction's operation."""
        if operation in ("any", "all"):
            symbol = "||" if operation == "any" else "&&"
            return f"{target} = {target} {symbol} {self.predicate(expr, level=AND + 1)};"
        old = Text(target, POSTFIX, dtype)
        value = self.rec(expr)
        if operation in ("sum", "product"):
            if dtype == BOOL:
                symbol = "||" if operation == "sum" else "&&"
                return f"{target} = {target} {symbol} {self.condition(value).at(AND + 1)};"
            symbol = "+" if operation == "sum" else "*"
            stored = self.stored(value, dtype)
            if dtype in INTEGERS and not (isinstance(value, Text) and value.dtype in FLOATS):
                return wrapping.updated(target, symbol, dtype, stored, value)
            return f"{target} {symbol}= {stored.text};"
        if operation in ("max", "min"):
            node = prim.Max if operation == "max" else prim.Min
            self.stored(value, dtype)  # whether it may be stored at all
            return f"{target} = {self.extremum(node, old, value, dtype).text};"
        raise TypeInferenceError(f"there is no update for the reduction '{operation}'")

    # }}}

    def rec(self, expr: Expression) -> Operand:
        """``expr`` as a text with its type, or as the constant that it is."""
        rule = _RULES.get(type(expr))
        if rule is not None:
            return rule(self, expr)
        if isinstance(expr, np.generic):
            value, dtype = scalar_value(expr)
            return literal(value, dtype, self.need)
        raise TypeInferenceError(f"'{to_text(expr)}' cannot be printed as C")

    def constant(self, expr: Constant) -> Operand:
        return expr

    def variable(self, expr: prim.Variable) -> Operand:
        dtype = self.dtype_of_name(expr.name)
        most = self.largest(expr) if dtype in INTEGERS else None
        weak = INTEGER if self.is_weak(expr.name) else None
        return Text(self.print_variable(expr.name), POSTFIX, dtype, most=most, weak=weak)

    def subscript(self, expr: Any) -> Operand:
        name = expr.aggregate.name
        return Text(self.print_subscript(name, expr.index), POSTFIX, self.dtype_of_name(name))

    def meeting(
        self, node: type, a: Operand, b: Operand, asked: Callable[[], str], of: Expression
    ) -> tuple[DType, RunTime | None]:
        """The type of an operation, and what it is where both operands are without one."""
        if not (is_late(a) and is_late(b)):
            return operation_type(node, typed(a), typed(b), asked), None
        weak = run_time(fold(FOLD[node], typed(a), typed(b), asked=asked))
        return self.late(weak, (a, b), of), weak

    # {{{ sums and products

    def sum(self, expr: prim.Sum) -> Operand:
        asked = asked_in(expr)
        total = self.rec(expr.children[0])
        for number, child in enumerate(expr.children[1:], 2):
            node: type = prim.Sum
            subtracted = subtrahend(child)
            if subtracted is None:
                subtracted = _without_minus(child)
            if subtracted is not None:
                child, node = subtracted, Subtraction
            term = self.rec(child)
            if not isinstance(total, Text) and not isinstance(term, Text):
                total = fold(FOLD[node], total, term, asked=asked)
                continue
            part = prim.Sum(expr.children[:number])
            common, weak = self.meeting(node, total, term, asked, part)
            if node is prim.Sum and type(term) in (int, float) and term < 0:  # type: ignore[operator]
                term, node = -term, Subtraction  # type: ignore[operator]
            if common == BOOL:
                parts = (self.condition(total), self.condition(term))
                total = Text(f"{parts[0].at(OR)} || {parts[1].at(OR + 1)}", OR, BOOL)
                continue
            symbol = "+" if node is prim.Sum else "-"
            total = self.arithmetic(symbol, ADD, total, term, common, part)
            total = self.late_text(total, weak, part)
        return total

    def arithmetic(
        self, symbol: str, level: int, a: Operand, b: Operand, common: DType, of: Expression
    ) -> Text:
        """``a symbol b`` in the type ``common``; ``of`` is the expression that this is."""
        left, right = self.unify(a, b, common)
        if common in INTEGERS:
            return wrapping.combined(
                symbol, level, (left, right), (a, b), common, lambda: self.largest(of)
            )
        return Text(f"{left.at(level)} {symbol} {right.at(level + 1)}", level, common)

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
            if not isinstance(result, Text) and not isinstance(factor, Text):
                result = fold(FOLD[prim.Product], result, factor, asked=asked)
                continue
            part = prim.Product(expr.children[:number])
            common, weak = self.meeting(prim.Product, result, factor, asked, part)
            if common == BOOL:
                parts = (self.condition(result), self.condition(factor))
                result = Text(f"{parts[0].at(AND)} && {parts[1].at(AND + 1)}", AND, BOOL)
                continue
            result = self.arithmetic("*", MULTIPLY, result, factor, common, part)
            result = self.late_text(result, weak, part)
        return result

    def negated(self, operand: Operand, asked: Callable[[], str]) -> Operand:
        if not isinstance(operand, Text):
            return fold(lambda x: -1 * x, operand, asked=asked)  # type: ignore[no-any-return]
        if operand.dtype == BOOL:  # -1 is an integer, and so is the result
            operand = self.cast(operand, INT64)
        dtype, most, weak = operand.dtype, None, operand.weak
        if dtype in INTEGERS:
            most = wrapping.magnitude(operand, dtype)
            operand = wrapping.guarded(operand, most, dtype)
        text = operand.at(UNARY)
        text = f"-({text})" if text.startswith("-") else f"-{text}"
        wide = dtype in NARROW or operand.unsigned
        known = most if dtype in SIGNED else None
        return Text(
            text,
            UNARY,
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
        if not isinstance(a, Text) and not isinstance(b, Text):
            return fold(FOLD[prim.Quotient], a, b, asked=asked)  # type: ignore[no-any-return]
        common, weak = self.meeting(prim.Quotient, a, b, asked, expr)
        left, right = self.unify(a, b, common)
        text = f"{left.at(MULTIPLY)} / {right.at(MULTIPLY + 1)}"
        return Text(text, MULTIPLY, common, weak=weak)

    def division(self, expr: Any) -> Operand:
        node = type(expr)
        asked = asked_in(expr)
        a, b = self.rec(expr.numerator), self.rec(expr.denominator)
        if not isinstance(a, Text) and not isinstance(b, Text):
            return fold(FOLD[node], a, b, asked=asked)  # type: ignore[no-any-return]
        common, weak = self.meeting(node, a, b, asked, expr)
        if weak is not None:
            whole(a), whole(b)
        return self.late_text(self._divided(expr, a, b, common), weak, expr)

    def _divided(self, expr: Any, a: Operand, b: Operand, common: DType) -> Text:
        node = type(expr)
        is_floor = node is prim.FloorDiv
        name = "lk_floordiv" if is_floor else "lk_mod"
        if common in FLOATS:
            compute = FLOAT32 if common in SMALL_FLOATS else common
            self.need(f"lk_floordiv.{c_type(compute)}")
            texts = [self.exact(self.exact(x, common), compute).text for x in (a, b)]
            return self.exact(Text(f"{name}({texts[0]}, {texts[1]})", POSTFIX, compute), common)
        before = (a, b)
        a, b = self.narrowed(a, common), self.narrowed(b, common)
        is_whole = before == (a, b)  # else signs are no longer those of the expressions
        left, right = (self.reduced(x) for x in self.unify(a, b, common))
        most = None
        if type(b) is int and b > 0:
            most = wrapping.magnitude(left, common) // b + 1 if is_floor else b - 1
        if is_whole and self._divides_like_c(expr, common, b):
            symbol = "/" if is_floor else "%"
            text = f"{left.at(MULTIPLY)} {symbol} {right.at(MULTIPLY + 1)}"
            return Text(text, MULTIPLY, common, most=most)
        if type(b) is int and b > 0 and b & (b - 1) == 0:
            # Shifting and masking round down for negative numbers, too.
            if not is_floor:
                return Text(f"{left.at(UNARY)} & {b - 1}", BIT_AND, common, most=most)
            text = f"{left.at(UNARY)} >> {b.bit_length() - 1}"
            return Text(text, SHIFT, common, most=most)
        self.need(name)
        wide = common in NARROW and common not in UNSIGNED
        return Text(f"{name}({left.text}, {right.text})", POSTFIX, common, wide, most=most)

    def _divides_like_c(self, expr: Any, common: DType, divisor: Operand) -> bool:
        if isinstance(divisor, Text):
            positive = self.is_nonnegative(prim.Sum((expr.denominator, -1)))
        else:
            positive = type(divisor) is int and divisor > 0
        return positive and (common in UNSIGNED or self.is_nonnegative(expr.numerator))

    def power(self, expr: Any) -> Operand:
        base, exponent = self.rec(expr.base), self.rec(expr.exponent)
        return self._called("pow", [base, exponent], expr)

    def _called(self, name: str, operands: list[Operand], expr: Any) -> Operand:
        """A call; of what has no type it is computed in the types that C computes with."""
        asked = asked_in(expr)
        for operand in operands[1:] if name == "pow" else operands:
            whole(operand)
        if any(isinstance(o, Text) for o in operands) and all(is_late(o) for o in operands):
            kind = call_type(name, [typed(o) for o in operands], asked)
            is_wide = name in _OF_INTEGERS
            strong = [
                self._typed_as_computed(o, is_wide=is_wide) if isinstance(o, Text) else o
                for o in operands
            ]
            result = self._called(name, strong, expr)
            if isinstance(result, Text) and not isinstance(kind, np.dtype):
                result = self.late_text(result, run_time(kind), expr)
            return result
        if name == "pow":
            return print_power(self, operands[0], operands[1], asked)
        return print_call(self, name, operands, asked)

    def _typed_as_computed(self, operand: Text, *, is_wide: bool) -> Text:
        """A number without a type in that which C computes it in, or in the widest of its kind."""
        assert operand.weak is not None
        text = self.exact(operand, natural(operand.weak)) if is_wide else operand
        unsigned, most = text.unsigned, operand.most
        return Text(text.text, text.level, text.dtype, text.wide, unsigned=unsigned, most=most)

    # }}}

    # {{{ bits

    def bitwise(self, expr: Any) -> Operand:
        node = type(expr)
        asked = asked_in(expr)
        symbol, level = _BITWISE[node]
        result = self.rec(expr.children[0])
        for child in expr.children[1:]:
            operand = self.rec(child)
            if not isinstance(result, Text) and not isinstance(operand, Text):
                result = fold(FOLD[node], result, operand, asked=asked)
                continue
            common, weak = self.meeting(node, result, operand, asked, expr)
            one, two = self.narrowed(result, common), self.narrowed(operand, common)
            left, right = self.unify(one, two, common)
            wide, unsigned = left.wide or right.wide, left.unsigned or right.unsigned
            # C's precedence of these operators surprises people: parentheses around all else.
            first = left.text if left.level == level else left.at(UNARY)
            text = f"{first} {symbol} {right.at(UNARY)}"
            result = Text(text, level, common, wide, unsigned=unsigned)
            result = self.late_text(result, weak, expr)
        return result

    def bitwise_not(self, expr: prim.BitwiseNot) -> Operand:
        operand = self.rec(expr.child)
        if not isinstance(operand, Text):
            return fold(lambda x: ~x, operand, asked=asked_in(expr))  # type: ignore[no-any-return]
        if operand.dtype == BOOL:
            return Text(f"!{operand.at(UNARY)}", UNARY, BOOL)
        if operand.dtype not in INTEGERS:
            raise refuse("'~'", operand.dtype, asked_in(expr)())
        weak = operand.weak
        if weak is not None:
            operand = self._typed_as_computed(operand, is_wide=True)
        wide = operand.wide or operand.dtype in NARROW
        text, unsigned = f"~{operand.at(UNARY)}", operand.unsigned
        return self.late_text(Text(text, UNARY, operand.dtype, wide, unsigned=unsigned), weak, expr)

    def shift(self, expr: Any) -> Operand:
        node = type(expr)
        asked = asked_in(expr)
        a, n = self.rec(expr.shiftee), self.rec(expr.shift)
        if not isinstance(a, Text) and not isinstance(n, Text):
            return fold(FOLD[node], a, n, asked=asked)  # type: ignore[no-any-return]
        common, weak = self.meeting(node, a, n, asked, expr)
        common = common if weak is None else INT64
        left = self.reduced(self.exact(a, common))
        is_left = node is prim.LeftShift
        if weak is not None:
            whole(n if is_left else a), whole(n)
        if type(n) is int and 0 <= n < 8 * common.itemsize:
            symbol = "<<" if is_left else ">>"
            wide = is_left and common in NARROW
            text = Text(f"{left.at(UNARY)} {symbol} {n}", SHIFT, common, wide)
            return self.late_text(text, weak, expr)
        name = "lk_shl" if is_left else "lk_shr"
        self.need(name)
        right = self.reduced(self.operand(self.narrowed(n, common), common))
        text = Text(f"{name}({left.text}, {right.text})", POSTFIX, common)
        return self.late_text(text, weak, expr)

    # }}}

    def call(self, expr: Any) -> Operand:
        operands = [self.rec(parameter) for parameter in expr.parameters]
        return self._called(expr.function.name, operands, expr)

    def type_cast(self, expr: TypeCast) -> Operand:
        operand = self.rec(expr.operand)
        dtype = expr.dtype
        if isinstance(operand, Text):
            if operand.dtype == dtype and operand.weak is None:
                return operand
            strong = self.reduced(self.cast(operand, dtype))
            return Text(strong.text, strong.level, dtype, most=strong.most)
        return self.weak(operand, dtype, _cast_literal)


_OF_INTEGERS = frozenset(("pow", "abs", "sign", "fmin", "fmax"))
"""Functions whose results are integers where their arguments are."""


def concrete_type(value: Operand) -> DType:
    """The type of a constant that meets nothing: NumPy's default, but ``int32`` where it fits."""
    if isinstance(value, Text):
        return value.dtype
    if isinstance(value, Choice):
        return promote(concrete_type(value.then), value.else_)
    if isinstance(value, int) and not isinstance(value, bool):
        return INT32 if fits(value, INT32) else INT64
    return np.dtype(type(value))


def _cast_literal(value: Constant, dtype: DType, need: Callable[[str], None]) -> Text:
    return literal(wrapped(value, dtype), dtype, need)


def _without_minus(term: Expression) -> Expression | None:
    """``3*x`` for the term ``-3*x``."""
    if isinstance(term, prim.Product):
        first = term.children[0]
        if type(first) in (int, float) and first < 0:
            return prim.Product((-first, *term.children[1:]))
    return None


_BITWISE = {
    prim.BitwiseAnd: ("&", BIT_AND),
    prim.BitwiseOr: ("|", BIT_OR),
    prim.BitwiseXor: ("^", BIT_XOR),
}
_RULES: dict[type, Callable[[CExpressionPrinter, Any], Operand]] = {
    **dict.fromkeys((bool, int, float, complex), CExpressionPrinter.constant),
    prim.Variable: CExpressionPrinter.variable,
    prim.Subscript: CExpressionPrinter.subscript,
    prim.Sum: CExpressionPrinter.sum,
    prim.Product: CExpressionPrinter.product,
    prim.Quotient: CExpressionPrinter.quotient,
    prim.FloorDiv: CExpressionPrinter.division,
    prim.Remainder: CExpressionPrinter.division,
    prim.Power: CExpressionPrinter.power,
    **dict.fromkeys(_BITWISE, CExpressionPrinter.bitwise),
    prim.BitwiseNot: CExpressionPrinter.bitwise_not,
    prim.LeftShift: CExpressionPrinter.shift,
    prim.RightShift: CExpressionPrinter.shift,
    prim.Comparison: ChoicePrinter.comparison,
    prim.LogicalAnd: ChoicePrinter.logical_and,
    prim.LogicalOr: ChoicePrinter.logical_or,
    prim.LogicalNot: ChoicePrinter.logical_not,
    prim.If: ChoicePrinter.conditional,
    prim.Min: ChoicePrinter.extrema,
    prim.Max: ChoicePrinter.extrema,
    prim.Call: CExpressionPrinter.call,
    TypeCast: CExpressionPrinter.type_cast,
}
