"""Operands of the kernel's operations, and its functions, as typed terms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from loopkit import _promotion as dt
from loopkit._functions import BITS, call_type, fold_call
from loopkit.codegen.c.types import WHOLE, in_registers
from loopkit.codegen.proof import term_makers as ops
from loopkit.codegen.proof import typed_computations as terms
from loopkit.codegen.proof.typed_computations import Term

_ROUNDING = frozenset(("floor", "ceil", "trunc", "round"))
_PREDICATES = {"isnan": False, "isinf": False, "isfinite": True}
_LARGEST_POWER = 64


@dataclass(frozen=True)
class Late:
    """A number whose type depends on its context: ``term`` computes it, with a Python type.

    Integers are computed in 64 bits and treated as unbounded; another check shows that nothing
    overflows wherever the text computes in 64 bits or fewer.
    """

    term: Term
    kind: dt.RunTime


Value = Term | dt.Weak | Late
"""What an expression is: a term, or a number that takes the type of what it meets."""


def kind_of(value: Value) -> dt.Typed:
    """An operand's type, or the constant itself."""
    if isinstance(value, Late):
        return value.kind
    return value.dtype if isinstance(value, Term) else value


def is_late(*values: Value) -> bool:
    """Whether no operand has a type of its own, and one is no constant."""
    late = any(isinstance(v, Late) for v in values)
    return late and not any(isinstance(v, Term) for v in values)


def kind_of_both(a: Value, b: Value) -> dt.RunTime:
    """The kind of number that holds either of two without types."""
    kinds = [kind_of(x) for x in (a, b)]
    one, two = (k for k in kinds if not isinstance(k, np.dtype))
    return dt.run_time(dt.Choice(None, one, two))


def has_imaginary(value: Value) -> bool:
    """Whether a value is a complex number."""
    kind = kind_of(value)
    return kind in dt.COMPLEXES if isinstance(kind, np.dtype) else dt.is_complex(kind)


def is_whole(value: Value) -> bool:
    """Whether a value is an integer, or true or false."""
    kind = kind_of(value)
    return kind in WHOLE if isinstance(kind, np.dtype) else dt.run_time(kind) == dt.INTEGER


def asked() -> str:
    """What an error says was asked; nobody reads it."""
    return "in the proof"


def converted(dtype: dt.DType, x: Term) -> Term:
    """A conversion as the language has it: to small floats by way of ``float32``."""
    if dtype in dt.SMALL_FLOATS and x.dtype != dtype:
        if x.dtype in dt.COMPLEXES:
            x = ops.part(x, "re")
        if x.dtype != dt.FLOAT64 or dtype != dt.FLOAT16:
            return ops.cast(dtype, ops.cast(dt.FLOAT32, x))
    return ops.cast(dtype, x)


def typed(dtype: dt.DType, value: Value) -> Term:
    """A value converted to a type."""
    if isinstance(value, Term):
        return converted(dtype, value)
    if isinstance(value, Late):
        return converted(dtype, value.term)
    if isinstance(value, dt.Choice):
        sides = (typed(dtype, value.then), typed(dtype, value.else_))
        return ops.choice(value.condition, *sides)
    return terms.const(value, dtype)


def as_term(value: Value, dtype: dt.DType) -> Term:
    """A value as a term; a constant of type ``dtype``."""
    if isinstance(value, Late):
        return value.term
    return value if isinstance(value, Term) else typed(dtype, value)


def truth_of(value: Value) -> Term:
    """A value as a condition."""
    if isinstance(value, (Term, Late)):
        return ops.truth(value if isinstance(value, Term) else value.term)
    if isinstance(value, dt.Choice):
        sides = (truth_of(value.then), truth_of(value.else_))
        return ops.choice(value.condition, *sides)
    return terms.const(bool(value), dt.BOOL)


def operands(common: dt.DType, *values: Value) -> list[Term]:
    """Operands of an operation in ``common``; real numbers that meet complex ones stay real."""
    if common not in dt.COMPLEXES:
        return [typed(common, v) for v in values]
    kinds = [has_imaginary(v) for v in values]
    if not any(kinds):
        kinds[0] = True
    return [
        typed(common if k else dt.real_of(common), v) for k, v in zip(kinds, values, strict=True)
    ]


def extremum(word: str, common: dt.DType, a: Term, b: Term) -> Term:
    """The smaller or larger of two operands of a type."""
    compute = dt.FLOAT32 if common in dt.SMALL_FLOATS else common
    left, right = ops.cast(compute, a), ops.cast(compute, b)
    return converted(common, ops.extremum(word, compute, left, right))


def raised(base: Value, exponent: Value) -> Value:
    """A power: of a small constant exponent by products, of one half by a root."""
    result = dt.power_type(kind_of(base), kind_of(exponent), asked)
    if not isinstance(result, np.dtype):
        return result
    number: Any = exponent
    if isinstance(number, float) and number.is_integer() and result not in dt.INTEGERS:
        number = int(number)
    if isinstance(base, Term):
        if type(number) is int and abs(number) <= _LARGEST_POWER:
            return product_of(typed(result, base), number, result)
        if number == 0.5 and result in dt.FLOATS:
            return call_of("sqrt", [typed(result, base)])
    if result in dt.COMPLEXES or result in dt.INTEGERS:
        sides = (typed(result, base), typed(result, exponent))
        return ops.call("pow" if result in dt.COMPLEXES else "ipow", result, *sides)
    return computed("pow", result, result, [base, exponent])


def product_of(base: Term, exponent: int, result: dt.DType) -> Term:
    """A power of a constant exponent."""
    if exponent == 0:
        return terms.const(1, result)
    if exponent < 0:
        below = product_of(base, -exponent, result)
        return ops.divide(result, *operands(result, 1, below))
    if result in dt.SMALL_FLOATS and exponent > 2:
        single = ops.power(dt.FLOAT32, ops.cast(dt.FLOAT32, base), exponent)
        return converted(result, single)
    return ops.power(result, base, exponent)


def call_of(name: str, values: list[Value]) -> Value:
    """A function of the language."""
    if name == "pow":
        return raised(values[0], values[1])
    kinds = [kind_of(v) for v in values]
    result = call_type(name, kinds, asked)
    if not isinstance(result, np.dtype):
        return fold_call(name, kinds, asked)  # type: ignore[no-any-return]
    common = reduce(dt.promote, kinds)
    assert isinstance(common, np.dtype)
    if common in dt.COMPLEXES:
        value = typed(common, values[0])
        is_part = name in ("real", "imag")
        return ops.part(value, name[:2]) if is_part else ops.call(name, result, value)
    if common == dt.BOOL or common in dt.INTEGERS:
        special = _of_integers(name, common, values)
        if special is not None:
            return special
    if name == "imag":
        return terms.const(0, result)
    if name in ("real", "conj"):
        return typed(common, values[0])
    return computed(name, common, result, values)


def computed(name: str, common: dt.DType, result: dt.DType, values: list[Value]) -> Term:
    """A function of floating-point numbers, in the type that it computes in."""
    compute = dt.FLOAT32 if common in dt.SMALL_FLOATS else common
    compute = compute if common in dt.FLOATS else dt.FLOAT64
    sides = []
    for value in values:
        if common in dt.FLOATS:
            value = typed(common, value)
        sides.append(ops.cast(compute, typed(compute, value)))
    name = "abs" if name == "fabs" else name
    if name in _PREDICATES:
        return ops.call(name, dt.BOOL, *sides)
    return converted(result, ops.call(name, compute, *sides))


def _of_integers(name: str, common: dt.DType, values: list[Value]) -> Term | None:
    if name in _PREDICATES:
        return terms.const(_PREDICATES[name], dt.BOOL)
    first = typed(common, values[0])
    if name in BITS:
        return ops.call(name, common if name == "brev" else dt.INT32, first)
    if name in ("fmin", "fmax"):
        return extremum(name[1:], common, first, typed(common, values[1]))
    if name in _ROUNDING or (name == "abs" and common.kind in "bu"):
        return first
    if name == "abs":
        compute = in_registers(common)
        return ops.cast(common, ops.call(name, compute, ops.cast(compute, first)))
    return ops.call(name, common, first) if name == "sign" else None
