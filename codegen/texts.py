"""C's words for types and constants, and pieces of C text that know their type."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from loopkit._errors import TypeInferenceError
from loopkit._nodes import Expression
from loopkit._promotion import (
    BFLOAT16,
    BOOL,
    COMPLEX64,
    COMPLEX128,
    COMPLEXES,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    INTEGERS,
    SMALL_FLOATS,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Constant,
    DType,
    RunTime,
    dtype_name,
    fits,
    real_of,
)

# C's levels of precedence, loosest first.
(
    NONE,
    TERNARY,
    OR,
    AND,
    BIT_OR,
    BIT_XOR,
    BIT_AND,
    EQUAL,
    LESS,
    SHIFT,
    ADD,
    MULTIPLY,
    UNARY,
    POSTFIX,
) = range(14)

C_TYPES: dict[DType, str] = {
    BOOL: "bool",
    INT8: "signed char",
    INT16: "short",
    INT32: "int",
    INT64: "long long",
    UINT8: "unsigned char",
    UINT16: "unsigned short",
    UINT32: "unsigned int",
    UINT64: "unsigned long long",
    FLOAT16: "__half",
    BFLOAT16: "__nv_bfloat16",
    FLOAT32: "float",
    FLOAT64: "double",
    COMPLEX64: "lk_complex64",
    COMPLEX128: "lk_complex128",
}

NEEDED_FOR_TYPE: dict[DType, str] = {
    FLOAT16: "cuda_fp16.h",
    BFLOAT16: "cuda_bf16.h",
    COMPLEX64: "lk_complex64",
    COMPLEX128: "lk_complex128",
}
"""What a type's mere name needs: a header, or a piece of the preamble."""

# C computes in `int` what is narrower.
NARROW = frozenset((BOOL, INT8, INT16, UINT8, UINT16))
# C computes these with signed integers, and leaves open what becomes of an overflow.
SIGNED = frozenset((INT8, INT16, INT32, INT64, UINT8, UINT16))


def c_type(dtype: DType) -> str:
    """The CUDA C name of a type."""
    return C_TYPES[dtype]


def needs_of_types(dtypes: Iterable[DType]) -> set[str]:
    """What the preamble must hold where these types are named, whatever is done with them."""
    return {NEEDED_FOR_TYPE[dtype] for dtype in dtypes if dtype in NEEDED_FOR_TYPE}


class Text:
    """A piece of C text.

    ``level`` is the precedence of its outermost operator.  A text of an integer
    type is ``wide`` when its value in C still has to be reduced to that type: an
    ``int`` for a narrow type, or an unsigned integer where it is ``unsigned``.
    ``most`` is the largest magnitude of its value, where that is known.  What is made of
    inames and sizes alone is ``weak``: it is computed in ``dtype``, but has no type where it
    meets one.  Where that is a number that may need more than 64 bits, the text has the last
    ones of it, and ``beyond`` is its expression.
    """

    __slots__ = ("beyond", "dtype", "level", "most", "text", "unsigned", "weak", "wide")

    def __init__(
        self,
        text: str,
        level: int,
        dtype: DType,
        wide: bool = False,
        *,
        unsigned: bool = False,
        most: int | None = None,
        weak: RunTime | None = None,
        beyond: Expression = None,
    ) -> None:
        self.beyond = beyond
        self.text = text
        self.level = level
        self.dtype = dtype
        self.wide = wide
        self.unsigned = unsigned
        self.most = most
        self.weak = weak

    def at(self, level: int) -> str:
        """The text as an operand of an operator of ``level``, in parentheses if need be."""
        return self.text if self.level >= level else f"({self.text})"


@lru_cache(maxsize=1024)
def c_common(a: DType, b: DType) -> DType:
    """The type in which C computes with operands of two built-in types."""
    if FLOAT64 in (a, b):
        return FLOAT64
    if FLOAT32 in (a, b):
        return FLOAT32
    a = INT32 if a in NARROW else a
    b = INT32 if b in NARROW else b
    if a == b:
        return a
    if UINT64 in (a, b):
        return UINT64
    return INT64 if INT64 in (a, b) else UINT32


def computed_in(dtype: DType) -> DType:
    """The type in which C computes with two values of ``dtype``."""
    return INT32 if dtype in NARROW else dtype


# {{{ constants


def literal(value: Constant, dtype: DType, need: Callable[[str], None]) -> Text:
    """A constant as a value of exactly the type ``dtype``, as NumPy converts it.

    ``need`` is told which pieces of the preamble and headers the text uses.
    """
    if dtype in COMPLEXES:
        part = real_of(dtype)
        number = complex(value)
        need(NEEDED_FOR_TYPE[dtype])
        parts = [literal(x, part, need).text for x in (number.real, number.imag)]
        return Text(f"{c_type(dtype)}{{{', '.join(parts)}}}", POSTFIX, dtype)
    if isinstance(value, complex):
        raise TypeInferenceError(
            f"the complex constant {value} is not a value of {dtype_name(dtype)}",
            instead="write real(...)",
        )
    if dtype == BOOL:
        return Text("true" if value else "false", POSTFIX, dtype)
    if dtype in INTEGERS:
        return _integer_literal(value, dtype)
    if dtype in SMALL_FLOATS:
        need(NEEDED_FOR_TYPE[dtype])
        with np.errstate(over="ignore"):
            rounded = float(dtype.type(value))
        name = "__float2half" if dtype == FLOAT16 else "__float2bfloat16"
        return Text(f"{name}({literal(rounded, FLOAT32, need).text})", POSTFIX, dtype)
    return _float_literal(float(value), dtype, need)


def _integer_literal(value: int | float, dtype: DType) -> Text:
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeInferenceError(f"{value} is not a value of {dtype_name(dtype)}")
    number = int(value)
    if not fits(number, dtype):
        raise TypeInferenceError(
            f"the constant {number} is not a value of {dtype_name(dtype)}",
            instead=f"{dtype_name(dtype)}({number}) would wrap it around",
        )
    if dtype == INT64:
        if number == -(2**63):
            return Text("-9223372036854775807LL - 1", ADD, dtype)
        return Text(f"{number}LL", UNARY if number < 0 else POSTFIX, dtype)
    if dtype in (UINT32, UINT64):
        return Text(f"{number}{'u' if dtype == UINT32 else 'ULL'}", POSTFIX, dtype)
    if number == -(2**31):
        return Text("-2147483647 - 1", ADD, dtype)
    return Text(str(number), UNARY if number < 0 else POSTFIX, dtype)


def operand_literal(value: Constant, dtype: DType, need: Callable[[str], None]) -> Text:
    """A constant that meets an operand of type ``dtype``: an integer needs no suffix there.

    The text's type is then ``int``, which C converts to that of the operand.
    """
    if dtype in INTEGERS and isinstance(value, int) and -(2**31) < value < 2**31:
        number = int(value)
        return Text(str(number), UNARY if number < 0 else POSTFIX, INT32, most=abs(number))
    return literal(value, dtype, need)


def wrapped(value: Constant, dtype: DType) -> Constant:
    """A constant cast to ``dtype``: integers wrap around, as ``astype`` has it."""
    if dtype in INTEGERS and not isinstance(value, complex) and cmath.isfinite(value):
        bits = 8 * dtype.itemsize
        number = int(value) & ((1 << bits) - 1)
        return number - (1 << bits) if number >> (bits - 1) and dtype.kind == "i" else number
    return value


def _float_literal(value: float, dtype: DType, need: Callable[[str], None]) -> Text:
    if dtype == FLOAT32:
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    if math.isinf(value) or math.isnan(value):
        name = "LK_NAN" if math.isnan(value) else "LK_INFINITY"
        need(name)
        cast = "(double)" if dtype == FLOAT64 else ""
        if value < 0:
            return Text(f"-{cast}{name}", UNARY, dtype)
        return Text(cast + name, UNARY if cast else POSTFIX, dtype)
    text = _float_text(value, math.copysign(1.0, value), dtype == FLOAT32)
    return Text(text, UNARY if text[0] == "-" else POSTFIX, dtype)


@lru_cache(maxsize=4096)
def _float_text(value: float, sign: float, is_single: bool) -> str:
    """The shortest text that gives back ``value``; ``sign`` tells the zeros apart."""
    if not is_single:
        text = repr(value)
        return text if "." in text or "e" in text else text + ".0"
    text = str(np.float32(value))
    return (text if "." in text or "e" in text else text + ".0") + "f"


def scalar_value(value: Any) -> tuple[Constant, DType]:
    """A NumPy scalar as a constant of Python's and its type."""
    dtype = value.dtype
    if dtype == BFLOAT16:
        return float(value), dtype
    constant: Constant = value.item()
    return constant, dtype


# }}}
