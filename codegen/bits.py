"""How large powers, shifts and combined bits of integers get."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pymbolic.primitives as prim

from loopkit._nodes import Expression

Range = tuple[int, int]
_MOST = 64
"""Exponents and shifts beyond this one give as good as anything."""


def interval(expr: Expression, of: Callable[[Expression], Range]) -> Range | None:
    """The smallest and largest value of an operation, from those of its operands."""
    if isinstance(expr, prim.Power):
        return power(of(expr.base), of(expr.exponent))
    if isinstance(expr, prim.LeftShift):
        return _shifted_left(of(expr.shiftee), of(expr.shift))
    if isinstance(expr, prim.RightShift):
        return _shifted_right(of(expr.shiftee), of(expr.shift))
    if isinstance(expr, prim.BitwiseNot):
        low, high = of(expr.child)
        return ~high, ~low
    if isinstance(expr, (prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor)):
        first, *others = (of(c) for c in expr.children)
        for other in others:
            first = _combined(type(expr), first, other)
        return first
    if isinstance(expr, prim.Call):
        return _called(expr.function.name, [of(p) for p in expr.parameters])
    if isinstance(expr, (bool, prim.Comparison, prim.LogicalNot, prim.LogicalAnd, prim.LogicalOr)):
        return 0, 1
    return None


def power(base: Range, exponent: Range) -> Range:
    """The range of ``base**exponent``, which is no integer for negative exponents."""
    least, most = max(exponent[0], 0), min(max(exponent[1], 0), _MOST)
    values = [b**e for b in base for e in (min(least, most), most)]
    if exponent[0] < 0 or base[0] <= 0 <= base[1]:
        values.append(0)
    if base[0] < 0 and exponent[0] != exponent[1]:  # signs change from one to the next
        values += [-(base[0] ** most), base[0] ** most]
    if base[0] <= 0 and least == 0:
        values.append(1)
    return min(values), max(values)


def _shifted_left(value: Range, count: Range) -> Range:
    ends = [min(max(c, 0), _MOST) for c in count]
    values = [v << c for v in value for c in ends]
    if count[0] < 0 or count[1] >= _MOST:
        values.append(0)
    return min(values), max(values)


def _shifted_right(value: Range, count: Range) -> Range:
    ends = [min(max(c, 0), _MOST) for c in count]
    values = [v >> c for v in value for c in ends]
    if count[0] < 0:
        values.append(0)
    return min(values), max(values)


def _combined(node: type, left: Range, right: Range) -> Range:
    if node is prim.BitwiseAnd and max(left[0], right[0]) >= 0:
        return 0, min(high for low, high in (left, right) if low >= 0)
    size = max((end if end >= 0 else ~end).bit_length() for end in (*left, *right))
    return (0 if min(left[0], right[0]) >= 0 else -(1 << size)), (1 << size) - 1


def _called(name: str, parts: Sequence[Range]) -> Range | None:
    if name == "sign":
        return -1, 1
    if name == "abs":
        (low, high) = parts[0]
        return max(low, -high, 0), max(-low, high)
    if name == "pow":
        return power(parts[0], parts[1])
    if name in ("fmin", "fmax"):
        pick = min if name == "fmin" else max
        return pick(p[0] for p in parts), pick(p[1] for p in parts)
    return None
