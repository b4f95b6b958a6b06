"""Expressions of the kernel as typed terms, by the language's rules of promotion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._expression import index_tuple
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression, TypeCast
from loopkit._promotion import (
    BOOL,
    COMPARE,
    COMPLEXES,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FLOATS,
    FOLD,
    INT64,
    INTEGERS,
    SMALL_FLOATS,
    Choice,
    DType,
    Subtraction,
    Typed,
    Weak,
    call_type,
    fits,
    fold,
    fold_call,
    operation_type,
    power_type,
    promote,
    real_of,
    subtrahend,
)
from loopkit.codegen.proof import terms
from loopkit.codegen.proof.terms import Read, Term

Value = Term | Weak
"""What an expression is: a term, or a constant that takes the type of what it meets."""

_ROUNDING = frozenset(("floor", "ceil", "trunc", "round"))
_IDENTITIES = _ROUNDING | {"real", "conj"}
_PREDICATES = {"isnan": False, "isinf": False, "isfinite": True}
_LARGEST_POWER = 64


def _asked() -> str:
    return "in the proof"


def converted(dtype: DType, x: Term) -> Term:
    """A conversion as the language has it: to small floats by way of ``float32``."""
    if dtype in SMALL_FLOATS and x.dtype != dtype:
        if x.dtype in COMPLEXES:
            x = terms.part(x, "re")
        if x.dtype != FLOAT64 or dtype != FLOAT16:
            return terms.cast(dtype, terms.cast(FLOAT32, x))
    return terms.cast(dtype, x)


class KernelValues:
    """Translates expressions; ``dtypes`` has the types of all names."""

    def __init__(self, kernel: Kernel, dtypes: Mapping[str, DType]) -> None:
        self.kernel = kernel
        self.dtypes = dtypes
        self.operations = {o.name: o for o in kernel.reductions}

    # {{{ statements

    def assigned(self, statement: Statement) -> Term:
        """What a statement leaves in the cell that it writes."""
        name, _ = statement.write
        dtype = self.dtypes[name]
        if statement.operation is None:
            return self.typed(dtype, self.value(statement.rhs))
        own = self.operations.get(statement.operation)
        if own is not None:
            return self.typed(dtype, self.value(own.combine(statement.lhs, statement.rhs)))
        old = self.term(self.value(statement.lhs), dtype)
        if statement.operation in ("any", "all"):
            parts = [terms.truth(old), self.condition(statement.rhs)]
            return terms.cast(dtype, terms.logic(statement.operation, parts))
        value = self.value(statement.rhs)
        if dtype == BOOL and statement.operation in ("sum", "product"):
            word = "any" if statement.operation == "sum" else "all"
            return terms.logic(word, [old, self.true(value)])
        new = self.typed(dtype, value)
        if statement.operation == "sum":
            return terms.add(dtype, old, new)
        if statement.operation == "product":
            return terms.multiply(dtype, old, new)
        return self.extremum(statement.operation, dtype, old, new)

    # }}}

    # {{{ types

    def typed(self, dtype: DType, value: Value) -> Term:
        """A value converted to a type."""
        if isinstance(value, Term):
            return converted(dtype, value)
        if isinstance(value, Choice):
            sides = (self.typed(dtype, value.then), self.typed(dtype, value.else_))
            return terms.choice(value.condition, *sides)
        return terms.const(value, dtype)

    def term(self, value: Value, dtype: DType) -> Term:
        """A value as a term; a constant of type ``dtype``."""
        return value if isinstance(value, Term) else self.typed(dtype, value)

    def true(self, value: Value) -> Term:
        """A value as a condition."""
        if isinstance(value, Term):
            return terms.truth(value)
        if isinstance(value, Choice):
            sides = (self.true(value.then), self.true(value.else_))
            return terms.choice(value.condition, *sides)
        return terms.const(bool(value), BOOL)

    def condition(self, expr: Expression) -> Term:
        """An expression as a condition."""
        return self.true(self.value(expr))

    def operands(self, common: DType, *values: Value) -> list[Term]:
        """Operands of an operation in ``common``; real numbers that meet complex ones stay real."""
        if common not in COMPLEXES:
            return [self.typed(common, v) for v in values]
        kinds = [v.dtype in COMPLEXES if isinstance(v, Term) else _is_complex(v) for v in values]
        if not any(kinds):
            kinds[0] = True
        return [
            self.typed(common if k else real_of(common), v)
            for k, v in zip(kinds, values, strict=True)
        ]

    # }}}

    def value(self, expr: Expression) -> Value:
        """``expr`` as a term, or as the constant that it is."""
        rule = _RULES.get(type(expr))
        if rule is not None:
            return rule(self, expr)
        if isinstance(expr, np.generic):
            dtype = np.dtype(expr.dtype)
            return terms.const(float(expr) if dtype in SMALL_FLOATS else expr.item(), dtype)
        raise NotImplementedError(f"'{expr}'")

    def constant(self, expr: Weak) -> Value:
        return expr

    def variable(self, expr: prim.Variable) -> Value:
        if self.kernel.is_array(expr.name):
            return Term("read", self.dtypes[expr.name], (), Read(expr.name, (), False))
        return Term("name", self.dtypes[expr.name], (), expr.name)

    def subscript(self, expr: Any) -> Value:
        name = expr.aggregate.name
        return Term("read", self.dtypes[name], (), Read(name, index_tuple(expr), False))

    # {{{ arithmetic

    def binary(self, node: type, a: Value, b: Value) -> Value:
        """One operation on two values."""
        if not isinstance(a, Term) and not isinstance(b, Term):
            return fold(FOLD[node], a, b, asked=_asked)  # type: ignore[no-any-return]
        common = operation_type(node, _kind(a), _kind(b), _asked)
        if node in (prim.FloorDiv, prim.Remainder):
            return self.division("fdiv" if node is prim.FloorDiv else "mod", common, a, b)
        if node in _SHIFTS:
            count = b if isinstance(b, Term) else self.typed(common, b)
            return terms.shift(_SHIFTS[node], common, self.typed(common, a), count)
        if node in (prim.Min, prim.Max):
            left, right = self.typed(common, a), self.typed(common, b)
            return self.extremum("min" if node is prim.Min else "max", common, left, right)
        if common == BOOL and node in (prim.Sum, prim.Product):
            word = "any" if node is prim.Sum else "all"
            return terms.logic(word, [self.true(a), self.true(b)])
        left, right = self.operands(common, a, b)
        if node in _BITS:
            return terms.bits(_BITS[node], common, left, right)
        return _ARITHMETIC[node](common, left, right)

    def division(self, word: str, common: DType, a: Value, b: Value) -> Term:
        if common in FLOATS:
            compute = FLOAT32 if common in SMALL_FLOATS else common
            sides = [terms.cast(compute, self.typed(common, x)) for x in (a, b)]
            return converted(common, terms.call(word, compute, *sides))
        return self.in_int(
            common, lambda c, x, y: terms.quotient(word, c, x, y), a=self.typed(common, a), b=b
        )

    def in_int(self, common: DType, make: Callable[..., Term], *, a: Term, b: Value) -> Term:
        """An operation on integers as C computes it, and its result in their type."""
        compute = terms.in_registers(common)
        right = terms.cast(compute, self.typed(common, b))
        return terms.cast(common, make(compute, terms.cast(compute, a), right))

    def extremum(self, word: str, common: DType, a: Term, b: Term) -> Term:
        """The smaller or larger of two operands of a type."""
        compute = FLOAT32 if common in SMALL_FLOATS else common
        left, right = terms.cast(compute, a), terms.cast(compute, b)
        return converted(common, terms.extremum(word, compute, left, right))

    def chain(self, expr: Any) -> Value:
        result = self.value(expr.children[0])
        for child in expr.children[1:]:
            result = self.binary(type(expr), result, self.value(child))
        return result

    def extrema(self, expr: Any) -> Value:
        result = self.value(expr.children[-1])
        for child in reversed(expr.children[:-1]):
            result = self.binary(type(expr), self.value(child), result)
        return result

    def sum(self, expr: prim.Sum) -> Value:
        total = self.value(expr.children[0])
        for child in expr.children[1:]:
            subtracted = subtrahend(child)
            if subtracted is None:
                total = self.binary(prim.Sum, total, self.value(child))
            else:
                total = self.binary(Subtraction, total, self.value(subtracted))
        return total

    def product(self, expr: prim.Product) -> Value:
        first, *rest = expr.children
        if rest and type(first) is int and first == -1:
            result = self.negated(self.value(rest.pop(0)))
        else:
            result = self.value(first)
        for child in rest:
            result = self.binary(prim.Product, result, self.value(child))
        return result

    def negated(self, value: Value) -> Value:
        if not isinstance(value, Term):
            return fold(lambda x: -1 * x, value, asked=_asked)  # type: ignore[no-any-return]
        if value.dtype == BOOL:
            value = terms.cast(INT64, value)
        return terms.neg(value.dtype, value)

    def fraction(self, expr: Any) -> Value:
        return self.binary(type(expr), self.value(expr.numerator), self.value(expr.denominator))

    def shift(self, expr: Any) -> Value:
        return self.binary(type(expr), self.value(expr.shiftee), self.value(expr.shift))

    def inverted(self, expr: prim.BitwiseNot) -> Value:
        value = self.value(expr.child)
        if not isinstance(value, Term):
            return fold(lambda x: ~x, value, asked=_asked)  # type: ignore[no-any-return]
        if value.dtype == BOOL:
            return terms.negation(value)
        return terms.invert(value.dtype, value)

    # }}}

    # {{{ powers and functions

    def power(self, expr: prim.Power) -> Value:
        return self.raised(self.value(expr.base), self.value(expr.exponent))

    def raised(self, base: Value, exponent: Value) -> Value:
        """A power: of a small constant exponent by products, of one half by a root."""
        result = power_type(_kind(base), _kind(exponent), _asked)
        if not isinstance(result, np.dtype):
            return result
        number: Any = exponent
        if isinstance(number, float) and number.is_integer() and result not in INTEGERS:
            number = int(number)
        if isinstance(base, Term):
            if type(number) is int and abs(number) <= _LARGEST_POWER:
                return self.product_of(self.typed(result, base), number, result)
            if number == 0.5 and result in FLOATS:
                return self.call_of("sqrt", [self.typed(result, base)])
        if result in COMPLEXES or result in INTEGERS:
            sides = (self.typed(result, base), self.typed(result, exponent))
            return terms.call("pow" if result in COMPLEXES else "ipow", result, *sides)
        return self.computed("pow", result, result, [base, exponent])

    def product_of(self, base: Term, exponent: int, result: DType) -> Term:
        if exponent == 0:
            return terms.const(1, result)
        if exponent < 0:
            below = self.product_of(base, -exponent, result)
            return terms.divide(result, *self.operands(result, 1, below))
        if result in SMALL_FLOATS and exponent > 2:
            single = terms.power(FLOAT32, terms.cast(FLOAT32, base), exponent)
            return converted(result, single)
        return terms.power(result, base, exponent)

    def call(self, expr: Any) -> Value:
        return self.call_of(expr.function.name, [self.value(p) for p in expr.parameters])

    def call_of(self, name: str, values: list[Value]) -> Value:
        """A function of the language."""
        if name == "pow":
            return self.raised(values[0], values[1])
        kinds = [_kind(v) for v in values]
        result = call_type(name, kinds, _asked)
        if not isinstance(result, np.dtype):
            return fold_call(name, kinds, _asked)  # type: ignore[no-any-return]
        common = kinds[0]
        for kind in kinds[1:]:
            common = promote(common, kind)
        assert isinstance(common, np.dtype)
        if common in COMPLEXES:
            return self._of_complex(name, self.typed(common, values[0]), result)
        if common == BOOL or common in INTEGERS:
            special = self._of_integers(name, common, values)
            if special is not None:
                return special
        if name == "imag":
            return terms.const(0, result)
        if name in ("real", "conj"):
            return self.typed(common, values[0])
        return self.computed(name, common, result, values)

    def computed(self, name: str, common: DType, result: DType, values: list[Value]) -> Term:
        """A function of floating-point numbers, in the type that it computes in."""
        compute = FLOAT32 if common in SMALL_FLOATS else common if common in FLOATS else FLOAT64
        sides = []
        for value in values:
            if common in FLOATS:
                value = self.typed(common, value)
            sides.append(terms.cast(compute, self.typed(compute, value)))
        name = "abs" if name == "fabs" else name
        if name in _PREDICATES:
            return terms.call(name, BOOL, *sides)
        return converted(result, terms.call(name, compute, *sides))

    def _of_complex(self, name: str, value: Term, result: DType) -> Term:
        if name in ("real", "imag"):
            return terms.part(value, name[:2])
        return terms.call(name, result, value)

    def _of_integers(self, name: str, common: DType, values: list[Value]) -> Term | None:
        if name in _PREDICATES:
            return terms.const(_PREDICATES[name], BOOL)
        first = self.typed(common, values[0])
        if name in ("fmin", "fmax"):
            return self.extremum(name[1:], common, first, self.typed(common, values[1]))
        if name in _IDENTITIES or (name == "abs" and common.kind in "bu"):
            return first
        if name == "imag":
            return terms.const(0, common)
        if name == "abs":
            compute = terms.in_registers(common)
            return terms.cast(common, terms.call(name, compute, terms.cast(compute, first)))
        return terms.call(name, common, first) if name == "sign" else None

    # }}}

    # {{{ truth

    def comparison(self, expr: prim.Comparison) -> Value:
        a, b, operator = self.value(expr.left), self.value(expr.right), expr.operator
        if not isinstance(a, Term) and not isinstance(b, Term):
            return fold(COMPARE[operator], a, b, asked=_asked)  # type: ignore[no-any-return]
        for one, two, order in ((a, b, (0, 1)), (b, a, (1, 0))):
            if isinstance(one, Term) and one.dtype in INTEGERS and type(two) is int:
                if not fits(two, one.dtype):  # known, whatever the other is
                    low, high = order if two > 0 else order[::-1]
                    return COMPARE[operator](low, high)
                return terms.compare(
                    operator, *(x if isinstance(x, Term) else terms.const(x, INT64) for x in (a, b))
                )
        kinds = [_kind(a), _kind(b)]
        integers = all(isinstance(k, np.dtype) and (k in INTEGERS or k == BOOL) for k in kinds)
        if integers and isinstance(a, Term) and isinstance(b, Term):
            return terms.compare(operator, a, b)
        if type(a) in (bool, int) or type(b) in (bool, int):
            kinds = [INT64 if k == BOOL else k for k in kinds]
        common = promote(*kinds)
        return terms.compare(operator, self.typed(common, a), self.typed(common, b))

    def logical(self, expr: Any) -> Value:
        word = "all" if isinstance(expr, prim.LogicalAnd) else "any"
        return terms.logic(word, [self.condition(c) for c in expr.children])

    def logical_not(self, expr: prim.LogicalNot) -> Value:
        return terms.negation(self.condition(expr.child))

    def conditional(self, expr: prim.If) -> Value:
        condition = self.condition(expr.condition)
        then, other = self.value(expr.then), self.value(expr.else_)
        if not isinstance(then, Term) and not isinstance(other, Term):
            return Choice(condition, then, other)
        common = promote(_kind(then), _kind(other))
        return terms.choice(condition, self.typed(common, then), self.typed(common, other))

    def type_cast(self, expr: TypeCast) -> Value:
        return self.typed(expr.dtype, self.value(expr.operand))

    # }}}


def _kind(value: Value) -> Typed:
    return value.dtype if isinstance(value, Term) else value


def _is_complex(value: Weak) -> bool:
    if isinstance(value, Choice):
        return _is_complex(value.then) or _is_complex(value.else_)
    return isinstance(value, complex)


_SHIFTS: dict[type, str] = {prim.LeftShift: "shl", prim.RightShift: "shr"}
_BITS: dict[type, str] = {
    prim.BitwiseAnd: "and",
    prim.BitwiseOr: "or",
    prim.BitwiseXor: "xor",
}
_ARITHMETIC: dict[type, Callable[[DType, Term, Term], Term]] = {
    prim.Sum: terms.add,
    Subtraction: terms.subtract,
    prim.Product: terms.multiply,
    prim.Quotient: terms.divide,
}
_RULES: dict[type, Callable[[KernelValues, Any], Value]] = {
    **dict.fromkeys((bool, int, float, complex), KernelValues.constant),
    prim.Variable: KernelValues.variable,
    prim.Subscript: KernelValues.subscript,
    prim.Sum: KernelValues.sum,
    prim.Product: KernelValues.product,
    **dict.fromkeys((prim.Quotient, prim.FloorDiv, prim.Remainder), KernelValues.fraction),
    prim.Power: KernelValues.power,
    **dict.fromkeys((prim.LeftShift, prim.RightShift), KernelValues.shift),
    **dict.fromkeys((prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor), KernelValues.chain),
    **dict.fromkeys((prim.Min, prim.Max), KernelValues.extrema),
    prim.BitwiseNot: KernelValues.inverted,
    prim.Comparison: KernelValues.comparison,
    **dict.fromkeys((prim.LogicalAnd, prim.LogicalOr), KernelValues.logical),
    prim.LogicalNot: KernelValues.logical_not,
    prim.If: KernelValues.conditional,
    prim.Call: KernelValues.call,
    TypeCast: KernelValues.type_cast,
}
