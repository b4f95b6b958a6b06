"""Mathematical functions and powers in CUDA C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from loopkit import _promotion as dt
from loopkit._functions import BITS, call_type, fold_call
from loopkit.codegen import operands as op
from loopkit.codegen import wrapping
from loopkit.codegen.c.calls import SPELLED
from loopkit.codegen.c.printer import expression_text
from loopkit.codegen.c.tree import Call, CExpression, Element, Member, Name, Number, Unary
from loopkit.codegen.c.types import C_TYPES
from loopkit.codegen.operands import Operand, Value

_SPELLED = {name: spelled for spelled, name in SPELLED.items()}
"""Functions that C knows by another name; ``round`` rounds halves to even, as NumPy does."""

_ROUNDING = frozenset(("floor", "ceil", "trunc", "round"))
_PREDICATES = {"isnan": False, "isinf": False, "isfinite": True}
_LARGEST_UNROLLED = 64


def lower_call(name: str, operands: Sequence[Operand], asked: Callable[[], str]) -> Operand:
    """A call of one of the functions that the language knows."""
    types = [op.typed(o) for o in operands]
    result = call_type(name, types, asked)
    if name == "pow":
        return _power(operands[0], operands[1], asked)
    if not isinstance(result, np.dtype):
        return fold_call(name, types, asked)  # type: ignore[no-any-return]
    common = reduce(dt.promote, types)
    assert isinstance(common, np.dtype)
    if common in dt.COMPLEXES:
        return _complex_call(name, operands[0], result)
    if common == dt.BOOL or common in dt.INTEGERS:
        special = _integer_call(name, operands, common)
        if special is not None:
            return special
    if name == "imag":
        return op.exact(0, result)
    if name in ("real", "conj"):
        return op.exact(operands[0], common)
    given = common if common in dt.FLOATS else dt.FLOAT64
    if name in _PREDICATES:
        return op.called(name, [op.argument(o, given) for o in operands], dt.BOOL)
    is_single = op.computed_in(given) == dt.FLOAT32
    c_name = "lk_sign" if name == "sign" else _SPELLED.get(name, name) + "f" * is_single
    return op.exact(op.function_of(c_name, operands, given), result)


def _integer_call(name: str, operands: Sequence[Operand], common: dt.DType) -> Value | None:
    """A function of integers whose result is no floating-point number."""
    if name in _PREDICATES:
        return op.exact(_PREDICATES[name], dt.BOOL)
    if name in BITS:
        value = op.reduced(op.exact(operands[0], common))
        result = common if name == "brev" else dt.INT32
        return op.called(f"lk_{name}<{C_TYPES[common]}>", [value], result)
    if name in ("fmin", "fmax"):
        return op.function_of(name[1:], operands, common)
    value = op.exact(operands[0], common)
    has_no_sign = common == dt.BOOL or common in dt.UNSIGNED
    if name in _ROUNDING or (name == "abs" and has_no_sign):
        return value
    value = op.reduced(value)
    if name == "sign":
        return op.called("lk_sign", [value], common)
    if name != "abs":
        return None
    if wrapping.overflows(wrapping.magnitude(value, common), common):
        return op.called("lk_abs", [value], common)
    return op.called("abs", [value], common, common in op.NARROW)


def _complex_call(name: str, operand: Operand, result: dt.DType) -> Value:
    assert isinstance(operand, Value)
    if name in ("real", "imag"):
        return Value(Member(operand.node, name[:2]), dt.real_of(operand.dtype))
    return op.called(f"lk_{name}", [operand], result)


def _power(base: Operand, exponent: Operand, asked: Callable[[], str]) -> Operand:
    """``base ** exponent``: products for small constant exponents, else a function."""
    types = [op.typed(o) for o in (base, exponent)]
    result = dt.power_type(types[0], types[1], asked)
    if not isinstance(result, np.dtype):
        return result
    number = exponent
    if isinstance(number, float) and number.is_integer() and result not in dt.INTEGERS:
        number = int(number)
    if isinstance(base, Value):
        if type(number) is int and abs(number) <= _LARGEST_UNROLLED:
            return _constant_power(base, number, result)
        if number == 0.5 and result in dt.FLOATS:
            return lower_call("sqrt", [op.exact(base, result)], asked)
    if result in dt.COMPLEXES:
        return op.called("lk_pow", [op.exact(x, result) for x in (base, exponent)], result)
    if result in dt.INTEGERS:
        arguments = [op.reduced(op.exact(x, result)) for x in (base, exponent)]
        return op.called(f"lk_ipow<{C_TYPES[result]}>", arguments, result)
    name = "powf" if op.computed_in(result) == dt.FLOAT32 else "pow"
    return op.function_of(name, (base, exponent), result)


def _constant_power(base: Value, exponent: int, result: dt.DType) -> Operand:
    base = op.reduced(op.exact(base, result))
    if exponent == 0:
        return op.exact(1, result)
    if exponent == 1:
        return base
    if exponent < 0:
        left, right = op.unify(1, _constant_power(base, -exponent, result), result)
        return op.binary(left, "/", right, result)
    if result in dt.SMALL_FLOATS and exponent > 2:  # rounded once, not after each multiplication
        return op.exact(_constant_power(op.cast(base, dt.FLOAT32), exponent, dt.FLOAT32), result)
    first = base
    if result in dt.INTEGERS:
        most = wrapping.magnitude(base, result) ** exponent
        first = wrapping.guarded(base, most, result)
    wide = result in op.NARROW or first.unsigned
    node: CExpression = Call(f"lk_power<{exponent}>", (first.node,))
    if exponent <= 3 and _is_short(base.node):
        node = op.joined("*", [first.node, *[base.node] * (exponent - 1)])
    return Value(node, result, wide, unsigned=first.unsigned)


def _is_short(expr: CExpression) -> bool:
    """Whether an expression is short enough to be repeated: a name or an element."""
    is_plain = isinstance(expr, (Name, Number, Element, Member, Unary))
    return is_plain and "(" not in expression_text(expr)
