"""Mathematical functions and powers in CUDA C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from loopkit import _promotion as dt
from loopkit.codegen import wrapping
from loopkit.codegen.c.printer import expression_text
from loopkit.codegen.c.tree import Call, CExpression, Element, Member, Name, Number, Unary
from loopkit.codegen.c.types import C_TYPES
from loopkit.codegen.conversions import Converter, Operand, typed
from loopkit.codegen.operands import (
    NARROW,
    Value,
    binary,
    called,
    joined,
)

_SPELLED = {"abs": "fabs", "round": "rint", "fabs": "fabs"}
"""Functions that C knows by another name; ``round`` rounds halves to even, as NumPy does."""

_INTEGER_IDENTITIES = frozenset(("floor", "ceil", "trunc", "round", "real", "conj"))
_PREDICATES = {"isnan": False, "isinf": False, "isfinite": True}
_LARGEST_UNROLLED = 64


def lower_call(
    converter: Converter, name: str, operands: Sequence[Operand], asked: Callable[[], str]
) -> Operand:
    """A call of one of the functions that the language knows."""
    types = [typed(o) for o in operands]
    result = dt.call_type(name, types, asked)
    if name == "pow":
        return lower_power(converter, operands[0], operands[1], asked)
    if not isinstance(result, np.dtype):
        return cast(Operand, dt.fold_call(name, types, asked))
    common = types[0]
    for other in types[1:]:
        common = dt.promote(common, other)
    assert isinstance(common, np.dtype)
    if common in dt.COMPLEXES:
        return _complex_call(converter, name, operands[0], result)
    if common == dt.BOOL or common in dt.INTEGERS:
        special = _integer_call(converter, name, operands, common)
        if special is not None:
            return special
    if name == "imag":
        return converter.exact(0, result)
    compute = (
        dt.FLOAT32 if common in dt.SMALL_FLOATS else common if common in dt.FLOATS else dt.FLOAT64
    )
    arguments = [_argument(converter, operand, common, compute) for operand in operands]
    if name in ("real", "conj"):
        return converter.exact(operands[0], common)
    if name in _PREDICATES:
        return called(name, arguments, dt.BOOL)
    if name == "sign":
        return converter.exact(called("lk_sign", arguments, compute), result)
    c_name = _SPELLED.get(name, name) + ("f" if compute == dt.FLOAT32 else "")
    return converter.exact(called(c_name, arguments, compute), result)


def _argument(converter: Converter, operand: Operand, common: dt.DType, compute: dt.DType) -> Value:
    """An argument in the type that the function computes in, after NumPy's own conversion."""
    if common in dt.FLOATS:
        operand = converter.exact(operand, common)
    return converter.reduced(converter.exact(operand, compute))


def _integer_call(
    converter: Converter, name: str, operands: Sequence[Operand], common: dt.DType
) -> Value | None:
    """A function of integers whose result is no floating-point number."""
    if name in _PREDICATES:
        return converter.exact(_PREDICATES[name], dt.BOOL)
    if name in ("fmin", "fmax"):
        arguments = [converter.reduced(converter.exact(o, common)) for o in operands]
        return called(name[1:], arguments, common)
    value = converter.exact(operands[0], common)
    if name in _INTEGER_IDENTITIES or (
        name == "abs" and (common == dt.BOOL or common in dt.UNSIGNED)
    ):
        return value
    if name == "imag":
        return converter.exact(0, common)
    if name == "abs":
        argument = converter.reduced(value)
        if wrapping.overflows(wrapping.magnitude(argument, common), common):
            return called("lk_abs", [argument], common)
        return called("abs", [argument], common, common in NARROW)
    if name == "sign":
        return called("lk_sign", [converter.reduced(value)], common)
    return None


def _complex_call(converter: Converter, name: str, operand: Operand, result: dt.DType) -> Value:
    assert isinstance(operand, Value)
    if name in ("real", "imag"):
        return Value(Member(operand.node, name[:2]), dt.real_of(operand.dtype))
    return called(f"lk_{name}", [operand], result)


def lower_power(
    converter: Converter, base: Operand, exponent: Operand, asked: Callable[[], str]
) -> Operand:
    """``base ** exponent``: products for small constant exponents, else a function."""
    types = [typed(o) for o in (base, exponent)]
    result = dt.power_type(types[0], types[1], asked)
    if not isinstance(result, np.dtype):
        return cast(Operand, result)
    number = exponent
    if isinstance(number, float) and number.is_integer() and result not in dt.INTEGERS:
        number = int(number)
    if isinstance(base, Value):
        if type(number) is int and abs(number) <= _LARGEST_UNROLLED:
            return _constant_power(converter, base, number, result)
        if number == 0.5 and result in dt.FLOATS:
            return lower_call(converter, "sqrt", [converter.exact(base, result)], asked)
    if result in dt.COMPLEXES:
        return called("lk_pow", [converter.exact(x, result) for x in (base, exponent)], result)
    if result in dt.INTEGERS:
        arguments = [converter.reduced(converter.exact(x, result)) for x in (base, exponent)]
        return called(f"lk_ipow<{C_TYPES[result]}>", arguments, result)
    compute = dt.FLOAT32 if result in dt.SMALL_FLOATS else result
    arguments = [_argument(converter, x, result, compute) for x in (base, exponent)]
    name = "powf" if compute == dt.FLOAT32 else "pow"
    return converter.exact(called(name, arguments, compute), result)


def _constant_power(converter: Converter, base: Value, exponent: int, result: dt.DType) -> Operand:
    base = converter.reduced(converter.exact(base, result))
    if exponent == 0:
        return converter.exact(1, result)
    if exponent == 1:
        return base
    if exponent < 0:
        power = _constant_power(converter, base, -exponent, result)
        left, right = converter.unify(1, power, result)
        return binary(left, "/", right, result)
    if result in dt.SMALL_FLOATS and exponent > 2:  # rounded once, not after each multiplication
        single = _constant_power(converter, converter.cast(base, dt.FLOAT32), exponent, dt.FLOAT32)
        return converter.exact(single, result)
    first = base
    if result in dt.INTEGERS:
        most = wrapping.magnitude(base, result) ** exponent
        first = wrapping.guarded(base, most, result)
    wide = result in NARROW or first.unsigned
    if exponent <= 3 and _is_short(base.node):
        product = joined("*", [first.node, *[base.node] * (exponent - 1)])
        return Value(product, result, wide, unsigned=first.unsigned)
    node = Call(f"lk_power<{exponent}>", (first.node,))
    return Value(node, result, wide, unsigned=first.unsigned)


def _is_short(expr: CExpression) -> bool:
    """Whether people repeat an expression: a name or an element, without parentheses."""
    is_plain = isinstance(expr, (Name, Number, Element, Member, Unary))
    return is_plain and "(" not in expression_text(expr)
