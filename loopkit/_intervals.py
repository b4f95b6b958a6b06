"""Interval arithmetic: bounds of integer results from bounds of their operands.

An interval ``(low, high)`` is the set of all integers from ``low`` to ``high``, both included.
Every operation returns an interval that contains the result for all operands in the given
intervals.  Operands count as independent: ``x - x`` gives an interval twice as wide as that of
``x``.

(R. E. Moore: Interval Analysis. Prentice-Hall, 1966.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._expression import parts_of
from loopkit._nodes import Expression

Interval = tuple[int, int]

_SHIFT = 64
"""Integers have as many bits at most: exponents and shifts to the left stop there."""


def of_dtype(dtype: np.dtype[Any]) -> Interval:
    """All values of an integer type."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def contains(outer: Interval, inner: Interval) -> bool:
    """Whether one interval lies in another."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def intersection(values: Interval, within: Interval) -> Interval:
    """What lies in two intervals; some value where nothing does, and so nothing is computed."""
    low = max(values[0], within[0])
    return low, max(low, min(values[1], within[1]))


def hull(*parts: Interval) -> Interval:
    """The interval around others."""
    return min(low for low, _ in parts), max(high for _, high in parts)


def least(*parts: Interval) -> Interval:
    """The minimum of values of each interval."""
    return min(low for low, _ in parts), min(high for _, high in parts)


def greatest(*parts: Interval) -> Interval:
    """The maximum of values of each interval."""
    return max(low for low, _ in parts), max(high for _, high in parts)


def add(*parts: Interval) -> Interval:
    """``x + y + ...``."""
    return sum(low for low, _ in parts), sum(high for _, high in parts)


def negate(values: Interval) -> Interval:
    """``-x``."""
    return -values[1], -values[0]


def subtract(left: Interval, right: Interval) -> Interval:
    """``x - y``."""
    return left[0] - right[1], left[1] - right[0]


def magnitude(values: Interval) -> int:
    """The largest ``abs(x)``."""
    return max(-values[0], values[1])


def absolute(values: Interval) -> Interval:
    """``abs(x)``."""
    return max(values[0], -values[1], 0), magnitude(values)


def multiply(*parts: Interval) -> Interval:
    """``x * y * ...``."""
    low, high = 1, 1
    for part in parts:
        corners = [x * y for x in (low, high) for y in part]
        low, high = min(corners), max(corners)
    return low, high


def floor_divide(numerator: Interval, denominator: Interval) -> Interval:
    """``x // y``, rounded down."""
    return _divided(numerator, denominator, lambda x, y: x // y)


def truncating_divide(numerator: Interval, denominator: Interval) -> Interval:
    """``x / y`` of C, rounded towards zero."""
    return _divided(numerator, denominator, _truncated)


def _truncated(x: int, y: int) -> int:
    return x // y if (x < 0) == (y < 0) else -(-x // y)


def _divided(x: Interval, y: Interval, divide: Callable[[int, int], int]) -> Interval:
    """The quotients of two intervals, whose extremes are at the ends of each sign's part."""
    ends = {e for e in y if e} | {e for e in (-1, 1) if y[0] <= e <= y[1]}
    corners = [divide(a, b) for a in x for b in ends]
    if y[0] <= 0 <= y[1]:
        corners.append(0)  # a quotient by zero is zero
    return min(corners), max(corners)


def floor_remainder(denominator: Interval) -> Interval:
    """``x % y`` of any ``x``, of the sign of ``y``."""
    return min(denominator[0] + 1, 0), max(denominator[1] - 1, 0)


def truncating_remainder(numerator: Interval, denominator: Interval) -> Interval:
    """``x % y`` of C, of the sign of ``x``."""
    most = max(magnitude(denominator) - 1, 0)
    return (0 if numerator[0] >= 0 else -most), (0 if numerator[1] <= 0 else most)


def power(base: Interval, exponent: Interval) -> Interval:
    """``x ** y``; what is no integer is rounded towards zero."""
    least_exponent, most = (min(max(e, 0), _SHIFT) for e in exponent)
    values = [b**e for b in base for e in (least_exponent, most)]
    if exponent[0] < 0 or base[0] <= 0 <= base[1]:
        values.append(0)
    if exponent[0] < 0 and base[0] <= -1 <= base[1]:
        values += [-1, 1]
    if base[0] < 0 and exponent[0] != exponent[1]:  # signs change from one to the next
        values += [-(base[0] ** most), base[0] ** most]
    if least_exponent == 0:
        values.append(1)
    return min(values), max(values)


def shift_left(values: Interval, count: Interval) -> Interval:
    """``x << y``, which is zero where ``y`` is negative or as large as there are bits."""
    ends = [min(max(c, 0), _SHIFT) for c in count]
    shifted = [v << c for v in values for c in ends]
    if count[0] < 0 or count[1] >= _SHIFT:
        shifted.append(0)
    return min(shifted), max(shifted)


def shift_right(values: Interval, count: Interval) -> Interval:
    """``x >> y``, which is zero where ``y`` is negative, and as its sign for large ``y``."""
    shifted = [v >> max(c, 0) for v in values for c in count]
    if count[0] < 0:
        shifted.append(0)
    return min(shifted), max(shifted)


def invert(values: Interval) -> Interval:
    """``~x``."""
    return ~values[1], ~values[0]


def bitwise_and(*parts: Interval) -> Interval:
    """``x & y & ...``."""
    if max(low for low, _ in parts) >= 0:
        return 0, min(high for low, high in parts if low >= 0)
    return bitwise_or(*parts)


def bitwise_or(*parts: Interval) -> Interval:
    """``x | y | ...``, or ``x ^ y ^ ...``."""
    bits = max((end if end >= 0 else ~end).bit_length() for part in parts for end in part)
    return (0 if min(low for low, _ in parts) >= 0 else -(1 << bits)), (1 << bits) - 1


def of_expression(
    expr: Expression,
    of_name: Callable[[str], Interval],
    unknown: Interval,
    *,
    may_wrap: bool = True,
) -> Interval:
    """Bounds of an integer expression, from those of its names: of an array, of its elements.

    Parts like no other lie in ``unknown``; without ``may_wrap``, so do bits, powers and
    calls, which the integers of a machine compute otherwise than mathematics does.
    """
    if isinstance(expr, (int, np.integer)):
        return int(expr), int(expr)
    if isinstance(expr, (prim.Variable, prim.Subscript)):
        return of_name(expr.name if isinstance(expr, prim.Variable) else expr.aggregate.name)
    operands = operands_of(expr)
    parts = (of_expression(o, of_name, unknown, may_wrap=may_wrap) for o in operands)
    return of_operation(expr, parts, unknown, may_wrap=may_wrap)


def operands_of(expr: Expression) -> list[Expression]:
    """What an operation combines to its value: not what a choice asks, or a condition."""
    if isinstance(expr, _CONDITIONS):
        return []
    return [expr.then, expr.else_] if isinstance(expr, prim.If) else parts_of(expr)


def of_operation(
    expr: Expression, operands: Iterable[Interval], unknown: Interval, *, may_wrap: bool = True
) -> Interval:
    """:func:`of_expression` for one operation, from bounds of its operands."""
    kind = type(expr)
    if may_wrap and kind in _CONDITIONS:
        return 0, 1
    function = _ARITHMETIC.get(kind) or (_OPERATIONS.get(kind) if may_wrap else None)
    if may_wrap and kind is prim.Call:
        function = _FUNCTIONS.get(expr.function.name)
    return unknown if function is None else function(*operands)


_ARITHMETIC: dict[type, Callable[..., Interval]] = {
    prim.Sum: add,
    prim.Product: multiply,
    prim.FloorDiv: floor_divide,
    prim.Remainder: lambda x, y: floor_remainder(y),
    prim.Min: least,
    prim.Max: greatest,
    prim.If: hull,
}
"""What subscripts are made of."""

_OPERATIONS: dict[type, Callable[..., Interval]] = {
    prim.Power: power,
    prim.LeftShift: shift_left,
    prim.RightShift: shift_right,
    prim.BitwiseNot: invert,
    prim.BitwiseAnd: bitwise_and,
    prim.BitwiseOr: bitwise_or,
    prim.BitwiseXor: bitwise_or,
}
_CONDITIONS = (prim.Comparison, prim.LogicalNot, prim.LogicalAnd, prim.LogicalOr)
_FUNCTIONS: dict[str, Callable[..., Interval]] = {
    "sign": lambda x: (-1, 1),
    "abs": absolute,
    "pow": power,
    "fmin": least,
    "fmax": greatest,
}
