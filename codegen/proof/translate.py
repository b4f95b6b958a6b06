"""Expressions of the text and of the kernel, translated to forms and conditions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

import numpy as np
import pymbolic.primitives as prim

from loopkit._algebra.make import make_term
from loopkit._algebra.polynomials import minus, plus, scaled, times
from loopkit._algebra.terms import FALSE, ONE, TRUE, ZERO, number
from loopkit._arrays import ArrayArg, TemporaryVariable, strides_of, swizzles_of
from loopkit._cached import memoised
from loopkit._device_functions import OwnFunction
from loopkit._errors import LoopkitError
from loopkit._expression import index_tuple, is_integer_arithmetic, parts_of, variable_names
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._promotion import BOOL, INT32, INT64, INTEGERS, DType
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.errors import UnreadableError
from loopkit.codegen.c.types import common
from loopkit.codegen.proof.form_ranges import Ranges
from loopkit.codegen.proof.forms import (
    Form,
    choice,
    exclusive_or,
    floor,
    is_data,
    loaded,
    names_of,
    number_in,
    opaque,
    variable,
)
from loopkit.codegen.proof.names import Names
from loopkit.codegen.proof.proof_conditions import Condition, comparison, joined, negated
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.term_makers import OWN
from loopkit.codegen.proof.typed_computations import Read, keeps_values
from loopkit.codegen.proof.typed_forms import RangeOf, TypedForms, limits
from loopkit.codegen.proof.value_functions import as_term, is_whole, kind_of
from loopkit.codegen.proof.value_kernel import KernelValues
from loopkit.codegen.proof.value_text import COMPARISONS, TextValues

_LARGEST_POWER = 64
_ON_BITS = ("<<", ">>", "&", "|", "^")
_EXTREMA = {"min": "min", "max": "max", "lk_min": "min", "lk_max": "max"}


def truncated(numerator: Form, by: int, scope: Scope) -> Form:
    """C's quotient, which rounds towards zero."""
    down = floor(numerator, by)
    if scope.never_below_zero(numerator):
        return down
    up = scaled(floor(scaled(numerator, -1), by), -1)
    return plus(make_term("max", down, ZERO), make_term("min", up, ZERO))


class _Unreadable:
    """An operation that is not understood, equal to nothing else."""

    def __str__(self) -> str:
        return "a value that is not understood"


class TextTranslator:
    """Expressions of the text as forms; variables in memory are named values.

    C's signed arithmetic is treated as exact, since :mod:`.width_check` and :mod:`.overflow` prove
    that it does not overflow. So are unsigned integers and conversions of inames and sizes.
    Everything else is a typed computation.
    """

    def __init__(self, names: Names, scalars: frozenset[str]) -> None:
        self.names = names
        self.scalars = scalars

    @memoised
    def values(self, scope: Scope) -> TextValues:
        """What expressions mean at a point of the text, as typed terms (memoised)."""

        def at_least(expr: c.CExpression, bound: int) -> bool:
            return scope.never_below_zero(minus(self.form(expr, scope), number(bound)))

        return TextValues(self.names, at_least)

    def offset_of(self, array: str, indices: tuple[Form, ...]) -> Form:
        """An element's place in its array, in elements; scalars have none."""
        if not indices:
            return ZERO
        return flat(indices, self.names.dimensions.get(array, (None,)))

    def form(self, expr: c.CExpression, scope: Scope) -> Form:
        """An expression's value, exact or opaque."""
        # Long sums lean to the left.
        spine: list[c.Binary] = []
        while id(expr) not in scope.forms:
            if not isinstance(expr, c.Binary) or expr.operator not in _BINARY:
                break
            if not self._is_exact(expr):
                break
            spine.append(expr)
            expr = expr.left
        if id(expr) not in scope.forms:
            scope.forms[id(expr)] = expr, self._first(expr, scope)
        result = scope.forms[id(expr)][1]
        for whole in reversed(spine):
            result = self._binary(whole, result, scope)
            scope.forms[id(whole)] = whole, result
        return result

    def _first(self, expr: c.CExpression, scope: Scope) -> Form:
        if isinstance(expr, c.Name) or (isinstance(expr, c.Element) and expr.array in self.scalars):
            return variable(expr.name if isinstance(expr, c.Name) else expr.array)
        if isinstance(expr, c.Element):
            return self._element(expr.array, expr.indices, scope)
        if isinstance(expr, c.Cast) and self._is_kept(expr, scope):
            return self.form(expr.operand, scope)
        if not self._is_exact(expr):
            return self._typed(expr, scope)
        if isinstance(expr, c.Number):
            return number(int(expr.value))
        if isinstance(expr, c.Unary) and expr.operator == "-":
            return scaled(self.form(expr.operand, scope), -1)
        if isinstance(expr, c.Unary) and expr.operator == "~":
            return make_term("inv", self.form(expr.operand, scope))
        if isinstance(expr, c.Choice):
            condition = self.condition(expr.condition, scope)
            return choice(condition, self.form(expr.then, scope), self.form(expr.other, scope))
        if isinstance(expr, c.Call):
            found = self._call(expr, scope)
            if found is not None:
                return found
        if isinstance(expr, c.Binary) and expr.operator in (*COMPARISONS, "&&", "||"):
            return choice(self.condition(expr, scope), ONE, ZERO)
        return self._typed(expr, scope)

    def _element(self, array: str, indices: tuple[c.CExpression, ...], scope: Scope) -> Form:
        offset = self.offset_of(array, tuple(self.form(i, scope) for i in indices))
        return loaded(array, offset, self.names.types[array].name)

    def _is_exact(self, expr: c.CExpression) -> bool:
        """Whether an operation on exact operands gives the exact result, or another check fails."""
        kind = self.names.computed_in(expr)
        if kind in (INT32, INT64):
            if isinstance(expr, c.Binary) and expr.operator in _ON_BITS:
                # Bits that leave the type are left out, which is no overflow.
                return not self.names.reads_memory(expr)
            return not isinstance(expr, c.Cast)
        return kind in INTEGERS and not self.names.reads_memory(expr)

    def _is_kept(self, expr: c.Cast, scope: Scope) -> bool:
        """Whether a conversion keeps all values that there can be."""
        dtype = self.names.type_of(expr)
        if dtype not in INTEGERS or not self.names.is_integer(expr.operand):
            return False
        if self.names.reads_memory(expr.operand):
            try:
                return keeps_values(self.values(scope).value(expr.operand).dtype, dtype)
            except UnreadableError:
                return False
        low, high = limits(dtype)
        form = self.form(expr.operand, scope)
        least, most = scope.range_of(form)
        return (low <= least or scope.never_below_zero(minus(form, number(low)))) and (
            most <= high or scope.never_below_zero(minus(number(high), form))
        )

    def _typed(self, expr: c.CExpression, scope: Scope) -> Form:
        try:
            return self._forms(scope).form(self.values(scope).value(expr))
        except UnreadableError:
            return opaque(_Unreadable())

    def _forms(self, scope: Scope) -> TypedForms:
        def read(what: Read) -> Form:
            if not what.indices or what.array in self.scalars:
                return variable(what.array)
            return self._element(what.array, what.indices, scope)

        return TypedForms(read, scope.range_of_name)

    def _binary(self, expr: c.Binary, left: Form, scope: Scope) -> Form:
        right = self.form(expr.right, scope)
        operator = expr.operator
        if operator == "+":
            return plus(left, right)
        if operator == "-":
            return minus(left, right)
        if operator == "*":
            return times(left, right)
        known = number_in(right)
        if operator in ("/", "%"):
            # C rounds to zero, which is down where nothing is negative.
            is_positive = known is None and scope.never_below_zero(minus(right, number(1)))
            if is_positive and scope.never_below_zero(left):
                return divided(operator == "/", left, right)
            if known is None or known <= 0:
                return self._typed(expr, scope)
            quotient = truncated(left, known, scope)
            return quotient if operator == "/" else minus(left, scaled(quotient, known))
        return scope.of_bits(operator, left, right)

    def _call(self, expr: c.Call, scope: Scope) -> Form | None:
        arguments = [self.form(a, scope) for a in expr.arguments]
        if expr.function in self.names.own:
            if not all(map(self.names.is_integer, expr.arguments)):
                return None
            return opaque(own_word(expr.function, self.names.type_of(expr)), *arguments)
        if expr.function in _EXTREMA:
            return make_term(_EXTREMA[expr.function], *arguments)
        if expr.function in ("lk_floordiv", "lk_mod"):
            if number_in(arguments[1]) == -1 and self.names.reads_memory(expr):
                return None  # the least integer wraps around
            return divided(expr.function == "lk_floordiv", *arguments)
        if expr.function == "abs":
            return make_term("abs", *arguments)
        exponent = expr.function.partition("<")[2].rstrip(">")
        if expr.function.startswith("lk_power<") and not self.names.reads_memory(expr):
            return make_term("mul", *arguments * int(exponent))
        return None

    def condition(self, expr: c.CExpression, scope: Scope) -> Condition:
        """An expression as a condition."""
        if isinstance(expr, c.Binary) and expr.operator in ("&&", "||"):
            word = "and" if expr.operator == "&&" else "or"
            sides = (expr.left, expr.right)
            return joined(word, [self.condition(s, scope) for s in sides])
        if isinstance(expr, c.Unary) and expr.operator == "!":
            return negated(self.condition(expr.operand, scope))
        if isinstance(expr, c.Number):
            return TRUE if expr.value else FALSE
        if isinstance(expr, c.Binary) and expr.operator in COMPARISONS:
            if not self._compares_values(expr):
                return self._typed_condition(expr, scope)
            left, right = self.form(expr.left, scope), self.form(expr.right, scope)
            return comparison(expr.operator, left, right)
        is_truth = isinstance(expr, (c.Cast, c.Call, c.Choice)) and self.names.type_of(expr) == BOOL
        if is_truth or not self.names.is_integer(expr):
            return self._typed_condition(expr, scope)
        return comparison("!=", self.form(expr, scope), ZERO)

    def _compares_values(self, expr: c.Binary) -> bool:
        """Whether C compares the values of two integers as they are."""
        kinds = [self.names.computed_in(side) for side in (expr.left, expr.right)]
        is_ordered = isinstance(expr.left, c.Call) and expr.left.function == "lk_compare"
        if is_ordered or not INTEGERS.issuperset(kinds):
            return False
        if common(*kinds) in (INT32, INT64) or kinds[0] == kinds[1]:
            return True
        return not self.names.reads_memory(expr)  # what becomes unsigned is looked at

    def _typed_condition(self, expr: c.CExpression, scope: Scope) -> Condition:
        try:
            return self._forms(scope).condition(self.values(scope).condition(expr))
        except UnreadableError:
            return opaque(_Unreadable(), sort="B")


_BINARY = frozenset(("+", "-", "*", "/", "%", ">>", "<<", "&", "|", "^"))


def flat(indices: tuple[Form, ...], dimensions: tuple[int | None, ...]) -> Form:
    """The offset of C's ``a[i][j]`` in an array of those dimensions."""
    offset = indices[0]
    for index, extent in zip(indices[1:], dimensions[1:], strict=True):
        assert extent is not None
        offset = plus(scaled(offset, extent), index)
    return offset


def divided(is_floor: bool, numerator: Form, denominator: Form) -> Form:
    """Python's quotient or remainder."""
    return make_term("fdiv" if is_floor else "mod", numerator, denominator)


_NOT_UNDERSTOOD = (LoopkitError, UnreadableError, NotImplementedError, KeyError)


class KernelTranslator:
    """Expressions of the kernel as forms, names living where the text puts them.

    ``values`` gives their meaning as typed terms, ``range_of_name`` the bounds of inames
    and sizes.
    """

    def __init__(
        self, kernel: Kernel, names: Names, values: KernelValues, range_of_name: RangeOf
    ) -> None:
        self.kernel = kernel
        self.names = names
        self.values = values
        self.typed = TypedForms(self._read, range_of_name)
        self.ranges = Ranges()
        self.ranges.range_of_name = range_of_name
        self._forms: dict[int, tuple[Expression, Form]] = {}
        self._offsets: dict[tuple[object, ...], tuple[tuple[Expression, ...], Form]] = {}

    def _read(self, what: Read) -> Form:
        if not what.indices:
            return variable(what.array)
        offset = self.offset(what.array, what.indices)
        return loaded(what.array, offset, self.values.dtypes[what.array].name)

    def offset(self, array: str, indices: tuple[Expression, ...]) -> Form:
        """An element's place in its array, in elements."""
        key = (array, *map(id, indices))
        if key not in self._offsets:
            held = self.kernel.array(array)
            offset = self.form(held.offset) if isinstance(held, ArrayArg) else ZERO
            places = self._places(held, tuple(map(self.form, indices)))
            for stride, place in zip(self._strides(array), places, strict=True):
                offset = plus(offset, times(stride, place))
            self._offsets[key] = indices, offset
        return self._offsets[key][1]

    def _places(
        self, array: ArrayArg | TemporaryVariable, indices: tuple[Form, ...]
    ) -> tuple[Form, ...]:
        """A cell's places along the axes of its array, which has the cell."""
        places = list(indices)
        for swizzle in swizzles_of(array):
            by, extent = indices[swizzle.by], (array.shape or ())[swizzle.by]
            bits = swizzle.bits
            if isinstance(extent, int) and not is_data(by) | any(
                map(self.kernel.is_array, names_of(by))
            ):
                bits = min(bits, max(extent - 1 >> swizzle.skip, 0).bit_length())
            changed = scaled(floor(by, 1 << swizzle.skip), 1 << swizzle.base)
            index = indices[swizzle.axis]
            places[swizzle.axis] = exclusive_or(index, changed, swizzle.base + bits)
        return tuple(places)

    @memoised
    def _strides(self, array: str) -> tuple[Form, ...]:
        return tuple(map(self.form, strides_of(self.kernel.array(array))))

    def form(self, expr: Expression) -> Form:
        """A subscript or an extent: sums, products and quotients of integers are exact there.

        All else that data enter is computed in types.
        """
        if id(expr) not in self._forms:
            made = self._exact(expr) if self._is_integer(expr) else self._typed(expr)
            self._forms[id(expr)] = expr, made
        return self._forms[id(expr)][1]

    def _typed(self, expr: Expression) -> Form:
        try:
            return self.typed.form(as_term(self.values.value(expr), INT64))
        except _NOT_UNDERSTOOD:
            return opaque(_Unreadable())

    def condition(self, expr: Expression) -> Condition:
        """A predicate: what data enter is computed in types."""
        if isinstance(expr, (bool, np.bool_)):
            return TRUE if expr else FALSE
        if isinstance(expr, (prim.LogicalAnd, prim.LogicalOr)):
            word = "and" if isinstance(expr, prim.LogicalAnd) else "or"
            return joined(word, [self.condition(c) for c in expr.children])
        if isinstance(expr, prim.LogicalNot):
            return negated(self.condition(expr.child))
        if not self._is_index_arithmetic(expr):
            try:
                return self.typed.condition(self.values.condition(expr))
            except _NOT_UNDERSTOOD:
                return opaque(_Unreadable(), sort="B")
        if isinstance(expr, prim.Comparison):
            left, right = self.form(expr.left), self.form(expr.right)
            return comparison(expr.operator, left, right)
        return comparison("!=", self.form(expr), ZERO)

    def _is_index_arithmetic(self, expr: Expression) -> bool:
        """Whether an expression is of inames, sizes and integers alone."""
        return is_integer_arithmetic(expr) and not any(
            self.kernel.is_array(name) or not self.names.holds_integer(name)
            for name in variable_names(expr)
        )

    def _is_integer(self, expr: Expression) -> bool:
        try:
            return self._is_index_arithmetic(expr) or is_whole(self.values.value(expr))
        except _NOT_UNDERSTOOD:
            return False

    def _exact(self, expr: Expression) -> Form:
        """An integer expression, whose parts are integers, too."""
        if isinstance(expr, (bool, int, np.integer, np.bool_)):
            return number(int(expr))
        if isinstance(expr, prim.Variable):
            return variable(expr.name)
        if isinstance(expr, prim.Subscript):
            return self._read(Read(expr.aggregate.name, index_tuple(expr), False))
        if isinstance(expr, prim.If):
            then, other = self._exact(expr.then), self._exact(expr.else_)
            return choice(self.condition(expr.condition), then, other)
        rule = _EXACT.get(type(expr))
        if rule is not None:
            return rule(*map(self._exact, parts_of(expr)))
        if isinstance(expr, prim.Call) and isinstance(expr.function, OwnFunction):
            return self._own_call(expr)
        # Computed of data, these may leave their types, or what they are of does.
        if self._is_index_arithmetic(expr):
            if type(expr) in _OF_BITS:
                of_bits = partial(self.ranges.of_bits, _OF_BITS[type(expr)])
                return reduce(of_bits, map(self._exact, parts_of(expr)))
            if isinstance(expr, prim.LeftShift):
                return self.ranges.of_bits("<<", self._exact(expr.shiftee), self._exact(expr.shift))
            if isinstance(expr, prim.Power) and expr.exponent in range(_LARGEST_POWER + 1):
                return make_term("mul", *[self._exact(expr.base)] * int(expr.exponent))
            if isinstance(expr, prim.Call) and expr.function.name == "abs":
                return make_term("abs", self._exact(expr.parameters[0]))
        return self._typed(expr)

    def _own_call(self, expr: prim.Call) -> Form:
        """A user's function of integers, which the text converts where they do not fit.

        Where the text has these very integers, they fit: no operation of it overflows.
        """
        kinds = [kind_of(self.values.value(p)) for p in expr.parameters]
        own = expr.function.overload(kinds, str)
        if not all(t in INTEGERS for t in own.types):
            return self._typed(expr)
        word = own_word(own.c_name, own.result)
        return opaque(word, *map(self.form, expr.parameters))


def own_word(name: str, result: DType) -> tuple[str, str, str]:
    """What is said of a call of a user's function besides its arguments, as of any function."""
    return "call", f"{OWN}{name}", result.name


_EXACT: dict[type, Callable[..., Form]] = {
    prim.Sum: plus,
    prim.Product: partial(make_term, "mul"),
    prim.FloorDiv: partial(divided, True),
    prim.Remainder: partial(divided, False),
    prim.BitwiseNot: partial(make_term, "inv"),
    prim.Min: partial(make_term, "min"),
    prim.Max: partial(make_term, "max"),
}
_OF_BITS: dict[type, str] = {
    prim.BitwiseAnd: "&",
    prim.BitwiseOr: "|",
    prim.BitwiseXor: "^",
    prim.RightShift: ">>",
}
