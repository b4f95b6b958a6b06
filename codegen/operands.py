"""Expressions of C that know their type as lowering goes, and constants of a type."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np

from loopkit import _promotion as dt
from loopkit._errors import TypeInferenceError
from loopkit._nodes import Expression
from loopkit.codegen.c.tree import Binary, Braces, Call, Cast, CExpression, Name, Number, Unary
from loopkit.codegen.c.types import C_TYPES

# C computes in `int` what is narrower.
NARROW = frozenset((dt.BOOL, dt.INT8, dt.INT16, dt.UINT8, dt.UINT16))
# C computes these with signed integers, and leaves open what becomes of an overflow.
SIGNED = frozenset((dt.INT8, dt.INT16, dt.INT32, dt.INT64, dt.UINT8, dt.UINT16))


class Value:
    """An expression of C, and what is known of its value.

    One of an integer type is ``wide`` when its value in C still has to be reduced to that
    type: an ``int`` for a narrow type, or an unsigned integer where it is ``unsigned``.
    ``most`` is the largest magnitude of its value, where that is known.  What is made of
    inames and sizes alone is ``weak``: it is computed in ``dtype``, but has no type where it
    meets one.  Where that is a number that may need more than 64 bits, the expression has the
    last ones of it, and ``beyond`` is what it stands for.
    """

    __slots__ = ("beyond", "dtype", "most", "node", "unsigned", "weak", "wide")

    def __init__(
        self,
        node: CExpression,
        dtype: dt.DType,
        wide: bool = False,
        *,
        unsigned: bool = False,
        most: int | None = None,
        weak: dt.RunTime | None = None,
        beyond: Expression = None,
    ) -> None:
        self.beyond = beyond
        self.node = node
        self.dtype = dtype
        self.wide = wide
        self.unsigned = unsigned
        self.most = most
        self.weak = weak


def called(name: str, values: Iterable[Value], dtype: dt.DType, wide: bool = False) -> Value:
    """A call of a function of C."""
    return Value(Call(name, tuple(v.node for v in values)), dtype, wide)


def binary(left: Value, operator: str, right: Value, dtype: dt.DType) -> Value:
    """``left operator right``."""
    return Value(Binary(operator, left.node, right.node), dtype)


def joined(operator: str, nodes: Iterable[CExpression]) -> CExpression:
    """``a operator b operator c``, from the left."""
    return reduce(lambda left, right: Binary(operator, left, right), nodes)


# {{{ constants


def integer(value: int, ctype: str = "int") -> CExpression:
    """An integer, with its sign; the smallest of a type is one less than what C can spell."""
    if value >= 0:
        return Number(value, ctype)
    if -value == 2 ** {"int": 31, "long": 63}.get(ctype, 0):
        return Binary("-", integer(value + 1, ctype), Number(1, "int"))
    return Unary("-", Number(-value, ctype))


def literal(value: dt.Constant, dtype: dt.DType) -> Value:
    """A constant as a value of exactly the type ``dtype``, as NumPy converts it."""
    if dtype in dt.COMPLEXES:
        part = dt.real_of(dtype)
        number = complex(value)
        parts = (literal(x, part).node for x in (number.real, number.imag))
        return Value(Braces(C_TYPES[dtype], tuple(parts)), dtype)
    if isinstance(value, complex):
        raise TypeInferenceError(
            f"the complex constant {value} is not a value of {dt.dtype_name(dtype)}",
            instead="write real(...)",
        )
    if dtype == dt.BOOL:
        return Value(Number(int(bool(value)), "bool"), dtype)
    if dtype in dt.INTEGERS:
        return Value(_integer_literal(value, dtype), dtype)
    if dtype in dt.SMALL_FLOATS:
        with np.errstate(over="ignore"):
            rounded = float(dtype.type(value))
        name = "__float2half" if dtype == dt.FLOAT16 else "__float2bfloat16"
        return called(name, [literal(rounded, dt.FLOAT32)], dtype)
    return Value(_float_literal(float(value), dtype), dtype)


def _integer_literal(value: int | float, dtype: dt.DType) -> CExpression:
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeInferenceError(f"{value} is not a value of {dt.dtype_name(dtype)}")
    number = int(value)
    if not dt.fits(number, dtype):
        raise TypeInferenceError(
            f"the constant {number} is not a value of {dt.dtype_name(dtype)}",
            instead=f"{dt.dtype_name(dtype)}({number}) would wrap it around",
        )
    return integer(number, _LITERAL_TYPES.get(dtype, "int"))


_LITERAL_TYPES = {dt.INT64: "long", dt.UINT32: "uint", dt.UINT64: "ulong"}


def operand_literal(value: dt.Constant, dtype: dt.DType) -> Value:
    """A constant that meets an operand of type ``dtype``: an integer needs no suffix there.

    The value's type is then ``int``, which C converts to that of the operand.
    """
    if dtype in dt.INTEGERS and isinstance(value, int) and -(2**31) < value < 2**31:
        return Value(integer(int(value)), dt.INT32, most=abs(value))
    return literal(value, dtype)


def wrapped(value: dt.Constant, dtype: dt.DType) -> dt.Constant:
    """A constant cast to ``dtype``: integers wrap around, as ``astype`` has it."""
    if dtype in dt.INTEGERS and not isinstance(value, complex) and cmath.isfinite(value):
        bits = 8 * dtype.itemsize
        number = int(value) & ((1 << bits) - 1)
        return number - (1 << bits) if number >> (bits - 1) and dtype.kind == "i" else number
    return value


def _float_literal(value: float, dtype: dt.DType) -> CExpression:
    """The number with its sign, which zeros have, too."""
    if dtype == dt.FLOAT32:
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    found: CExpression = Number(abs(value), "float" if dtype == dt.FLOAT32 else "double")
    if not math.isfinite(value):
        name = "LK_NAN" if math.isnan(value) else "LK_INFINITY"
        found = Cast("double", Name(name)) if dtype == dt.FLOAT64 else Name(name)
    is_negative = value < 0 or (value == 0 and math.copysign(1.0, value) < 0)
    return Unary("-", found) if is_negative else found


def scalar_value(value: Any) -> tuple[dt.Constant, dt.DType]:
    """A NumPy scalar as a constant of Python's and its type."""
    dtype = value.dtype
    if dtype == dt.BFLOAT16:
        return float(value), dtype
    constant: dt.Constant = value.item()
    return constant, dtype


# }}}
