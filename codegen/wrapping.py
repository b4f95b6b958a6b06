"""Integer arithmetic that wraps around as in NumPy, although signed overflow is undefined in C.

If a result may exceed the signed integers that C computes with, one operand is converted to
unsigned, so that C computes modulo a power of two. The value is marked ``unsigned``; storing or
casting it restores the signed number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from loopkit import _intervals
from loopkit._promotion import BOOL, INT64, INTEGERS, UINT32, UNSIGNED, Choice, DType, RunTime
from loopkit.codegen.c.tree import Binary, Cast, Number
from loopkit.codegen.operands import NARROW, SIGNED, Operand, Value

Largest = Callable[[], int | None]
"""The largest magnitude that an expression has, if it is known; asked where it matters."""

_LARGEST_OF = {"+": operator.add, "-": operator.add, "*": operator.mul}
"""The largest magnitude of a result, from those of its operands."""


def magnitude(operand: Operand, common: DType) -> int:
    """The largest magnitude of an operand of an operation in the integer type ``common``."""
    if isinstance(operand, Choice):
        return max(magnitude(operand.then, common), magnitude(operand.else_, common))
    if not isinstance(operand, Value):
        assert not isinstance(operand, RunTime), "what is known at run time is a value of C"
        return abs(int(operand.real))
    if operand.wide and operand.dtype == common:
        return operand.most if operand.most is not None else 2**64
    limit = _largest_of(operand.dtype)
    # What is negative becomes large where it is reduced to an unsigned type.
    known = operand.most if not (operand.wide and operand.dtype in UNSIGNED) else None
    return limit if known is None else min(known, limit)


def overflows(most: int, dtype: DType) -> bool:
    """Whether a magnitude may be too much for the integers that C computes ``dtype`` with."""
    return dtype in SIGNED and most >= (2**63 if dtype == INT64 else 2**31)


def combined(
    symbol: str,
    sides: tuple[Value, Value],
    operands: tuple[Operand, Operand],
    dtype: DType,
    largest: Largest,
) -> Value:
    """``left symbol right`` in an integer type; ``operands`` are both sides as they were before."""
    left, right = sides
    most = _LARGEST_OF[symbol](*(magnitude(o, dtype) for o in operands))
    if not (left.unsigned or right.unsigned) and overflows(most, dtype):
        known = largest()
        most = most if known is None else min(most, known)
        if isinstance(operands[0], Value):
            left = guarded(left, most, dtype)
        else:
            right = guarded(right, most, dtype)
    is_unsigned = left.unsigned or right.unsigned
    # The difference of unsigned integers may be as large as they get.
    is_known = not is_unsigned and (dtype in SIGNED or symbol != "-")
    return Value(
        Binary(symbol, left.node, right.node),
        dtype,
        is_unsigned or dtype in NARROW,
        unsigned=is_unsigned,
        most=most if is_known else None,
    )


def addend(symbol: str, dtype: DType, value: Value, operand: Operand) -> Value:
    """``value`` as the right side of ``target symbol= value`` for a target of type ``dtype``."""
    most = _LARGEST_OF[symbol](_largest_of(dtype), magnitude(operand, dtype))
    # C computes with an uint32 in 64 bits where the other operand has these.
    is_wider = dtype == UINT32 and isinstance(operand, Value) and operand.dtype == INT64
    if not overflows(most, INT64 if is_wider else dtype) or value.unsigned:
        return value
    if type(operand) is int and 0 <= operand < 2**31:
        ctype = "ulong" if dtype == INT64 else "uint"
        return Value(Number(operand, ctype), dtype, unsigned=True)
    return unsigned(value, dtype)


def guarded(value: Value, most: int, dtype: DType) -> Value:
    """An operand of what has at most this magnitude: unsigned where that may overflow."""
    return unsigned(value, dtype) if overflows(most, dtype) else value


def unsigned(value: Value, dtype: DType) -> Value:
    """An operand of unsigned arithmetic of the width that C computes ``dtype`` in."""
    if value.unsigned:
        return value
    word = "unsigned long long" if dtype == INT64 else "unsigned"
    return Value(Cast(word, value.node), dtype, wide=True, unsigned=True)


def _largest_of(dtype: DType) -> int:
    """The largest magnitude that a type holds; of one that is no integer, more than any."""
    if dtype not in INTEGERS:
        return 1 if dtype == BOOL else 2**64
    return _intervals.magnitude(_intervals.of_dtype(dtype))
