"""Expressions of the text and of the kernel as forms and conditions."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_, or_, xor
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._arrays import ArrayArg, strides_of
from loopkit._expression import variable_names
from loopkit._kernel import Kernel
from loopkit._nodes import Expression, TypeCast
from loopkit._promotion import INTEGERS as INTEGER_TYPES
from loopkit._promotion import DType
from loopkit._same import key_of
from loopkit.codegen.proof.c_types import TYPES
from loopkit.codegen.proof.conditions import (
    FALSE,
    TRUE,
    Condition,
    Unknown,
    comparison,
    joined,
    negated,
)
from loopkit.codegen.proof.forms import (
    ONE,
    ZERO,
    Form,
    choice,
    constant,
    extreme,
    floor,
    loaded,
    opaque,
    variable,
)
from loopkit.codegen.proof.lexer import ReadError
from loopkit.codegen.proof.names import INTEGERS, Names
from loopkit.codegen.proof.syntax import (
    Binary,
    Braces,
    Call,
    Cast,
    CExpression,
    Choice,
    Element,
    Member,
    Name,
    Number,
    Unary,
    children,
)
from loopkit.codegen.proof.terms import const

NonNegative = Callable[[Form], bool]
"""Whether a form is proven not to be negative where it is computed."""

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_SPELLED = {"fabs": "abs", "rint": "round", "isinf": "isin"}
_LARGEST_POWER = 64
_EXTREMA = {"min": "min", "max": "max", "lk_min": "min", "lk_max": "max"}


def number(value: Any) -> Form:
    """A literal; fractions are opaque."""
    if isinstance(value, (bool, np.bool_)):
        return constant(int(value))
    if isinstance(value, (int, np.integer)):
        return constant(int(value))
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return constant(int(value))
    return opaque(("number", key_of(value.item() if isinstance(value, np.generic) else value)))


def call_of(function: str, arguments: list[Form]) -> Form:
    """A function whose value is not looked into, by the name that C gives it."""
    plain = function.removeprefix("lk_").partition("<")[0]
    if plain.endswith("f") and plain not in ("if", "isinf"):
        plain = plain[:-1]
    plain = _SPELLED.get(plain, plain)
    if plain == "power" and len(arguments) == 1:
        return power(arguments[0], int(function.partition("<")[2].rstrip(">")))
    return opaque(plain, *arguments)


def cast(dtype: DType, form: Form) -> Form:
    """A conversion: that the widest integers hold a value is shown by :mod:`.widths`."""
    if dtype in INTEGER_TYPES and dtype.itemsize >= 4:
        return form
    known = form.constant
    if known is not None and dtype in INTEGER_TYPES:
        return constant(int(const(known, dtype).data))
    return opaque(dtype, form)


def bitwise(operator: str, left: Form, right: Form) -> Form:
    """``<<``, ``>>``, ``&``, ``|`` or ``^`` of integers."""
    known = right.constant
    if known is not None and left.constant is not None and operator in _OF_BITS:
        return constant(_OF_BITS[operator](left.constant, known))
    if known is not None and operator == ">>" and 0 <= known < 64:
        return floor(left, 1 << known)
    if known is not None and operator == "<<" and 0 <= known < 64:
        return left.scaled(1 << known)
    if known is not None and operator == "&" and known > 0 and known & (known + 1) == 0:
        return left.minus(floor(left, known + 1).scaled(known + 1))
    return call_of(operator, [left, right])


_OF_BITS = {"&": and_, "|": or_, "^": xor}


def power(base: Form, exponent: int) -> Form:
    """A product of equal factors."""
    result = ONE
    for _ in range(exponent):
        result = result.times(base)
    return result


def truncated(numerator: Form, by: int, is_nonnegative: NonNegative) -> Form:
    """C's quotient, which rounds towards zero."""
    down = floor(numerator, by)
    if is_nonnegative(numerator):
        return down
    up = floor(numerator.scaled(-1), by).scaled(-1)
    return extreme("max", (down, ZERO)).plus(extreme("min", (up, ZERO)))


class TextTranslator:
    """Expressions of the text as forms; variables in memory stand for the values they have."""

    def __init__(self, names: Names, scalars: frozenset[str]) -> None:
        self.names = names
        self.scalars = scalars

    def offset(self, expr: Element, is_nonnegative: NonNegative) -> Form:
        """The element's place in its array, in elements."""
        indices = tuple(self.form(i, is_nonnegative) for i in expr.indices)
        return self.offset_of(expr.array, indices)

    def offset_of(self, array: str, indices: tuple[Form, ...]) -> Form:
        """The same from the forms of its indices; scalars have none."""
        if not indices:
            return ZERO
        return flat(indices, self.names.dimensions.get(array, (None,)))

    def form(self, expr: CExpression, is_nonnegative: NonNegative) -> Form:
        """An expression; what is no integer arithmetic becomes opaque."""
        if isinstance(expr, Number):
            return number(expr.value)
        if isinstance(expr, Name):
            return variable(expr.name)
        if isinstance(expr, Element) and expr.array in self.scalars:
            return variable(expr.array)
        if isinstance(expr, Element):
            return loaded(expr.array, self.offset(expr, is_nonnegative))
        if isinstance(expr, Cast):
            return cast(TYPES[expr.ctype], self.form(expr.operand, is_nonnegative))
        if isinstance(expr, Unary) and expr.operator == "-":
            return self.form(expr.operand, is_nonnegative).scaled(-1)
        if isinstance(expr, Binary) and expr.operator in _BINARY:
            # Long sums lean to the left.
            spine: list[Binary] = []
            while isinstance(expr, Binary) and expr.operator in _BINARY:
                spine.append(expr)
                expr = expr.left
            result = self.form(expr, is_nonnegative)
            for whole in reversed(spine):
                result = self._binary(whole, result, is_nonnegative)
            return result
        if isinstance(expr, Call):
            return self._call(expr, is_nonnegative)
        if isinstance(expr, Binary) and expr.operator in (*_COMPARISONS, "&&", "||"):
            return opaque("condition", self.condition(expr, is_nonnegative))
        parts = [self.form(c, is_nonnegative) for c in children(expr)]
        if isinstance(expr, Choice):
            condition = self.condition(expr.condition, is_nonnegative)
            return choice(condition, parts[1], parts[2])
        return opaque(_word_of(expr), *parts)

    def _binary(self, expr: Binary, left: Form, is_nonnegative: NonNegative) -> Form:
        right = self.form(expr.right, is_nonnegative)
        operator = expr.operator
        if operator == "+":
            return left.plus(right)
        if operator == "-":
            return left.minus(right)
        if operator == "*":
            return left.times(right)
        known = right.constant
        divides = operator in ("/", "%") and known is not None and known > 0
        if divides and known is not None and self.names.is_integer(expr):
            quotient = truncated(left, known, is_nonnegative)
            return quotient if operator == "/" else left.minus(quotient.scaled(known))
        return bitwise(operator, left, right)

    def _call(self, expr: Call, is_nonnegative: NonNegative) -> Form:
        arguments = [self.form(a, is_nonnegative) for a in expr.arguments]
        if expr.function in _EXTREMA:
            return extreme(_EXTREMA[expr.function], arguments)
        if expr.function in ("lk_floordiv", "lk_mod") and self.names.is_integer(expr):
            return divided(expr.function == "lk_floordiv", *arguments)
        return call_of(expr.function, arguments)

    def condition(self, expr: CExpression, is_nonnegative: NonNegative) -> Condition:
        """An expression as a condition."""
        if isinstance(expr, Binary) and expr.operator in ("&&", "||"):
            word = "and" if expr.operator == "&&" else "or"
            sides = (expr.left, expr.right)
            return joined(word, [self.condition(s, is_nonnegative) for s in sides])
        if isinstance(expr, Unary) and expr.operator == "!":
            return negated(self.condition(expr.operand, is_nonnegative))
        if isinstance(expr, Number):
            return TRUE if expr.value else FALSE
        if isinstance(expr, Binary) and expr.operator in _COMPARISONS:
            left = self.form(expr.left, is_nonnegative)
            right = self.form(expr.right, is_nonnegative)
            sides = (expr.left, expr.right)
            is_integer = all(self.names.is_integer(s) for s in sides)
            return comparison(expr.operator, left, right, is_integer=is_integer)
        value = self.form(expr, is_nonnegative)
        if self.names.is_integer(expr):
            return comparison("!=", value, ZERO, is_integer=True)
        return Unknown("!=", ZERO, value)


def _word_of(expr: CExpression) -> tuple[str, ...]:
    """What an operation is beside its operands."""
    word = (type(expr).__name__,)
    if isinstance(expr, (Unary, Binary)):
        return (*word, expr.operator)
    if isinstance(expr, Member):
        return (*word, expr.name)
    return (*word, expr.ctype) if isinstance(expr, Braces) else word


_BINARY = frozenset(("+", "-", "*", "/", "%", ">>", "<<", "&", "|", "^"))


def flat(indices: tuple[Form, ...], dimensions: tuple[int | None, ...]) -> Form:
    """The offset of C's ``a[i][j]`` in an array of those dimensions."""
    if len(indices) != len(dimensions):
        raise ReadError(
            0, f"an array of {len(dimensions)} dimensions has {len(indices)} subscripts"
        )
    offset = indices[0]
    for index, extent in zip(indices[1:], dimensions[1:], strict=True):
        assert extent is not None
        offset = offset.scaled(extent).plus(index)
    return offset


def divided(is_floor: bool, numerator: Form, denominator: Form) -> Form:
    """Python's quotient or remainder."""
    by = denominator.constant
    if by is None or by == 0:
        return call_of("//" if is_floor else "%", [numerator, denominator])
    quotient = floor(numerator, by) if by > 0 else floor(numerator.scaled(-1), -by)
    return quotient if is_floor else numerator.minus(quotient.scaled(by))


_BITWISE: dict[type, str] = {prim.BitwiseAnd: "&", prim.BitwiseOr: "|", prim.BitwiseXor: "^"}


class KernelTranslator:
    """Expressions of the kernel as forms, names living where the text puts them."""

    def __init__(self, kernel: Kernel, names: Names) -> None:
        self.kernel = kernel
        self.names = names

    def offset(self, array: str, indices: tuple[Expression, ...]) -> Form:
        """An element's place in its array, in elements."""
        held = self.kernel.array(array)
        offset = self.form(held.offset) if isinstance(held, ArrayArg) else ZERO
        for stride, index in zip(strides_of(held), indices, strict=True):
            offset = offset.plus(self.form(stride).times(self.form(index)))
        return offset

    def form(self, expr: Expression) -> Form:
        """An expression; what is no integer arithmetic becomes opaque."""
        if isinstance(expr, (bool, int, float, complex, np.generic)):
            return number(expr)
        if isinstance(expr, prim.Variable):
            return variable(expr.name)
        if isinstance(expr, prim.Subscript):
            name = expr.aggregate.name
            return loaded(name, self.offset(name, expr.index_tuple))
        if isinstance(expr, TypeCast):
            return cast(expr.dtype, self.form(expr.operand))
        if isinstance(expr, (prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor)):
            word = _BITWISE[type(expr)]
            forms = [self.form(c) for c in expr.children]
            return reduce(lambda a, b: bitwise(word, a, b), forms)
        if isinstance(expr, (prim.LeftShift, prim.RightShift)):
            shifts = "<<" if isinstance(expr, prim.LeftShift) else ">>"
            return bitwise(shifts, self.form(expr.shiftee), self.form(expr.shift))
        if isinstance(expr, prim.Sum):
            return reduce(Form.plus, (self.form(c) for c in expr.children))
        if isinstance(expr, prim.Product):
            return reduce(Form.times, (self.form(c) for c in expr.children))
        if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
            parts = (self.form(expr.numerator), self.form(expr.denominator))
            if self.is_integer(expr):
                return divided(isinstance(expr, prim.FloorDiv), *parts)
            name = "lk_floordiv" if isinstance(expr, prim.FloorDiv) else "lk_mod"
            return call_of(name, list(parts))
        if isinstance(expr, (prim.Min, prim.Max)):
            word = "min" if isinstance(expr, prim.Min) else "max"
            return extreme(word, [self.form(c) for c in expr.children])
        if isinstance(expr, prim.Power) and expr.exponent in range(_LARGEST_POWER + 1):
            return power(self.form(expr.base), int(expr.exponent))
        if isinstance(expr, prim.Quotient):
            return call_of("/", [self.form(expr.numerator), self.form(expr.denominator)])
        if isinstance(expr, prim.If):
            condition = self.condition(expr.condition)
            then, other = self.form(expr.then), self.form(expr.else_)
            return choice(condition, then, other)
        if isinstance(expr, prim.Call):
            return call_of(expr.function.name, [self.form(p) for p in expr.parameters])
        names = sorted(variable_names(expr))
        return opaque(("expression", key_of(expr)), *(variable(name) for name in names))

    def condition(self, expr: Expression) -> Condition:
        """An expression as a condition."""
        if isinstance(expr, (bool, np.bool_)):
            return TRUE if expr else FALSE
        if isinstance(expr, (prim.LogicalAnd, prim.LogicalOr)):
            word = "and" if isinstance(expr, prim.LogicalAnd) else "or"
            return joined(word, [self.condition(c) for c in expr.children])
        if isinstance(expr, prim.LogicalNot):
            return negated(self.condition(expr.child))
        if isinstance(expr, prim.Comparison):
            left, right = self.form(expr.left), self.form(expr.right)
            is_integer = self.is_integer(expr.left) and self.is_integer(expr.right)
            return comparison(expr.operator, left, right, is_integer=is_integer)
        if self.is_integer(expr):
            return comparison("!=", self.form(expr), ZERO, is_integer=True)
        return Unknown("!=", ZERO, self.form(expr))

    def is_integer(self, expr: Expression) -> bool:
        """Whether an expression has an integer type."""
        if isinstance(expr, (bool, int, np.integer, np.bool_, prim.Comparison, prim.LogicalNot)):
            return True
        if isinstance(expr, prim.Variable):
            return self.names.types.get(expr.name, "int") in INTEGERS
        if isinstance(expr, prim.Subscript):
            return self.names.types.get(expr.aggregate.name, "other") in INTEGERS
        if isinstance(expr, TypeCast):
            return expr.dtype in INTEGER_TYPES
        if isinstance(expr, (prim.LeftShift, prim.RightShift)):
            return self.is_integer(expr.shiftee)
        if isinstance(expr, (prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor)):
            return all(self.is_integer(c) for c in expr.children)
        if isinstance(expr, (prim.Sum, prim.Product, prim.Min, prim.Max)):
            return all(self.is_integer(c) for c in expr.children)
        if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
            return self.is_integer(expr.numerator) and self.is_integer(expr.denominator)
        if isinstance(expr, prim.If):
            return self.is_integer(expr.then) and self.is_integer(expr.else_)
        return isinstance(expr, (prim.LogicalAnd, prim.LogicalOr))
