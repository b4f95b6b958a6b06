"""Integer arithmetic that wraps around, as NumPy's does, in C, where signed overflow means nothing.

Where a result may be too large for the signed integers that C computes with, one
operand is made unsigned, and C then computes modulo a power of two.  The text is
``unsigned`` from there on; storing it, or a cast, gives back the signed number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from loopkit._promotion import BOOL, INT64, INTEGERS, UNSIGNED, Choice, DType
from loopkit.codegen.conversions import Operand
from loopkit.codegen.texts import MULTIPLY, NARROW, POSTFIX, SIGNED, UNARY, Text

Largest = Callable[[], int | None]
"""The largest magnitude that an expression has, if it is known; asked where it matters."""

_SYMBOLS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a + b,
    "*": lambda a, b: a * b,
}


def magnitude(operand: Operand, common: DType) -> int:
    """The largest magnitude of an operand of an operation in the integer type ``common``."""
    if isinstance(operand, Choice):
        return max(magnitude(operand.then, common), magnitude(operand.else_, common))
    if not isinstance(operand, Text):
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
    level: int,
    sides: tuple[Text, Text],
    operands: tuple[Operand, Operand],
    dtype: DType,
    largest: Largest,
) -> Text:
    """``left symbol right`` in an integer type; ``operands`` are both sides as they were before."""
    left, right = sides
    most = _SYMBOLS[symbol](*(magnitude(o, dtype) for o in operands))
    if dtype in SIGNED and not (left.unsigned or right.unsigned):
        known = largest() if overflows(most, dtype) else None
        most = most if known is None else min(most, known)
    if dtype not in SIGNED or not (left.unsigned or right.unsigned or overflows(most, dtype)):
        text = f"{left.at(level)} {symbol} {right.at(level + 1)}"
        wraps = dtype not in SIGNED and symbol == "-"
        return Text(text, level, dtype, dtype in NARROW, most=None if wraps else most)
    if not (left.unsigned or right.unsigned):
        if isinstance(operands[0], Text):
            left = unsigned(left, dtype)
        else:
            right = unsigned(right, dtype)
    text = f"{left.at(level)} {symbol} {right.at(level + 1)}"
    return Text(text, level, dtype, wide=True, unsigned=True)


def negated(text: Text) -> Text:
    """``-x`` of an integer."""
    dtype = text.dtype
    most = magnitude(text, dtype)
    if overflows(most, dtype):
        text = unsigned(text, dtype)
    shown = text.at(UNARY)
    shown = f"-({shown})" if shown.startswith("-") else f"-{shown}"
    wide = dtype in NARROW or text.unsigned
    known = most if dtype in SIGNED else None
    return Text(shown, UNARY, dtype, wide, unsigned=text.unsigned, most=known)


def updated(target: str, symbol: str, dtype: DType, value: Text, operand: Operand) -> str:
    """``target symbol= value`` for a target of the type ``dtype``."""
    most = _SYMBOLS[symbol](_largest_of(dtype), magnitude(operand, dtype))
    if overflows(most, dtype) and not value.unsigned:
        if type(operand) is int and 0 <= operand < 2**31:
            suffix = "ULL" if dtype == INT64 else "u"
            value = Text(f"{operand}{suffix}", POSTFIX, dtype, unsigned=True)
        else:
            value = unsigned(value, dtype)
    return f"{target} {symbol}= {value.text};"


def power(base: Text, exponent: int, dtype: DType, repeated: bool) -> Text:
    """``base`` to the power of a positive constant, spelled out where it may be ``repeated``."""
    may = overflows(magnitude(base, dtype) ** exponent, dtype)
    first = unsigned(base, dtype) if may else base
    wide = dtype in NARROW or first.unsigned
    if not repeated:
        text, level = f"lk_power<{exponent}>({first.text})", POSTFIX
    else:
        rest = [base.at(MULTIPLY + 1)] * (exponent - 1)
        text, level = " * ".join([first.at(MULTIPLY + 1), *rest]), MULTIPLY
    return Text(text, level, dtype, wide, unsigned=first.unsigned)


def unsigned(text: Text, dtype: DType) -> Text:
    """A text as an operand of unsigned arithmetic of the width that C computes ``dtype`` in."""
    if text.unsigned:
        return text
    word = "unsigned long long" if dtype == INT64 else "unsigned"
    return Text(f"({word}){text.at(UNARY)}", UNARY, dtype, wide=True, unsigned=True)


def _largest_of(dtype: DType) -> int:
    """The largest magnitude that a type holds; of one that is no integer, more than any."""
    if dtype not in INTEGERS:
        return 1 if dtype == BOOL else 2**64
    info = np.iinfo(dtype)
    return max(-int(info.min), int(info.max))
