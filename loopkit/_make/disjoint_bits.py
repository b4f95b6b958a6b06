"""Bits of several inames in one subscript: ``(i & 1) << 2 | i & 2 | i >> 2`` is a sum.

Where operands of ``|`` and ``^`` have no bit in common, they add up, and sums are affine. Which
bits an operand may have is read off its masks, shifts and remainders, and off the constant bounds
of inames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_

import islpy as isl
import pymbolic.primitives as prim

from loopkit._bits import MOST
from loopkit._expression import accesses
from loopkit._kernel import Domain
from loopkit._make.own_calls import TextMapper, with_expressions
from loopkit._nodes import Expression, is_integer
from loopkit._syntax.items import RawItem

Bits = Callable[[str], "int | None"]
"""The bits that a name may have, as a mask; None where it may be negative, or without end."""


class _Adder(TextMapper):
    def __init__(self, bits: Bits) -> None:
        super().__init__()
        self.bits = bits

    def map_bitwise_or(self, expr: prim.BitwiseOr) -> Expression:
        return self._sum(expr, prim.BitwiseOr)

    def map_bitwise_xor(self, expr: prim.BitwiseXor) -> Expression:
        return self._sum(expr, prim.BitwiseXor)

    def _sum(self, expr: Expression, kind: Callable[..., Expression]) -> Expression:
        parts = tuple(self.rec(child) for child in expr.children)
        if sum(not is_integer(part) for part in parts) < 2:  # a mask of one unknown is affine
            return kind(parts)
        seen = 0
        for child in expr.children:
            mask = _mask(child, self.bits)
            if mask is None or mask & seen:
                return kind(parts)
            seen |= mask
        return prim.Sum(parts)


def with_sums_of_bits(
    items: Iterable[RawItem], domains: Sequence[Domain], known: isl.Set
) -> list[RawItem]:
    """A text whose operands without common bits are added, in what holds no data.

    ``domains`` tell the bounds of inames, for sizes in the set ``known``.
    """

    def bits_of(name: str) -> int | None:
        home = next((d for d in domains if name in d.inames), None)
        low, high = (None, None) if home is None else home.range_of(name, known)
        return (1 << high.bit_length()) - 1 if low is not None and high and low >= 0 else None

    adder = _Adder(bits_of)
    return [with_expressions(item, adder) for item in items]


def _mask(expr: Expression, bits: Bits) -> int | None:
    """The bits that an expression of inames and numbers may have; None where they have no end."""
    if is_integer(expr):
        return int(expr) if expr >= 0 else None
    if isinstance(expr, prim.Variable):
        return bits(expr.name)
    if isinstance(expr, prim.BitwiseAnd):
        masks = [m for c in expr.children if (m := _mask(c, bits)) is not None]
        own = any(index for c in expr.children for _, index in accesses(c))
        return None if own or not masks else reduce(lambda a, b: a & b, masks)
    if isinstance(expr, (prim.BitwiseOr, prim.BitwiseXor)):
        parts = [_mask(c, bits) for c in expr.children]
        return None if None in parts else reduce(or_, (p for p in parts if p is not None))
    if isinstance(expr, (prim.LeftShift, prim.RightShift)):
        inner = _mask(expr.shiftee, bits)
        if inner is None or not is_integer(expr.shift) or not 0 <= expr.shift < MOST:
            return None
        shift = int(expr.shift)
        return inner << shift if isinstance(expr, prim.LeftShift) else inner >> shift
    if isinstance(expr, prim.Remainder) and _is_power(expr.denominator):
        has_data = any(index for _, index in accesses(expr.numerator))
        return None if has_data else int(expr.denominator) - 1
    if isinstance(expr, prim.FloorDiv) and _is_power(expr.denominator):
        inner = _mask(expr.numerator, bits)
        return None if inner is None else inner // int(expr.denominator)
    if isinstance(expr, prim.Product) and len(expr.children) == 2:
        first, second = expr.children
        number, other = (first, second) if is_integer(first) else (second, first)
        inner = _mask(other, bits) if _is_power(number) else None
        return None if inner is None else inner * int(number)
    return None


def _is_power(expr: Expression) -> bool:
    return is_integer(expr) and expr > 0 and expr & (expr - 1) == 0
