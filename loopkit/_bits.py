"""Operations on the bits of whole numbers, as sums of their quotients and remainders.

Whole numbers have as many bits as one likes, negative ones endlessly many that are set.  So
``x >> 3`` is ``x // 8`` for every ``x``, and ``x & 24`` is ``8*(x // 8 % 4)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_, or_, xor

import pymbolic.primitives as prim

from loopkit._nodes import Expression, is_integer

MOST = 64
"""Shifts go by fewer bits: those of data give zero from there on."""

_FOLDED = {prim.BitwiseAnd: and_, prim.BitwiseOr: or_, prim.BitwiseXor: xor}


def runs(mask: int) -> Iterator[tuple[int, int]]:
    """The runs of bits that are set in a ``mask`` of 0 or more, as pairs of powers of two.

    ``x & mask`` is the sum of ``low * (x // low % length)`` over all ``(low, length)``.
    """
    low = 1
    while mask >= low:
        if not mask & low:
            low *= 2
            continue
        length = 1
        while mask & (low * length):
            length *= 2
        yield low, length
        low *= length


def arithmetic(expr: Expression) -> Expression | None:
    """The same as a sum of quotients and remainders; None where it is no operation on bits.

    One of the operands may be unknown, the others must be numbers.
    """
    if isinstance(expr, prim.BitwiseNot):
        return prim.Sum((-1, prim.Product((-1, expr.child))))
    if isinstance(expr, (prim.LeftShift, prim.RightShift)):
        if not is_integer(expr.shift) or not 0 <= expr.shift < MOST:
            return None
        power = 1 << int(expr.shift)
        if isinstance(expr, prim.LeftShift):
            return prim.Product((power, expr.shiftee))
        return prim.FloorDiv(expr.shiftee, power)
    fold = _FOLDED.get(type(expr))
    if fold is None:
        return None
    unknown = [child for child in expr.children if not is_integer(child)]
    numbers = [int(child) for child in expr.children if is_integer(child)]
    if len(unknown) != 1 or not numbers:
        return None
    (value,), mask = unknown, reduce(fold, numbers)
    common = _masked(value, mask)
    if fold is and_:
        return common
    return prim.Sum((value, mask, prim.Product((-1 if fold is or_ else -2, common))))


def _masked(value: Expression, mask: int) -> Expression:
    """``value & mask``."""
    if mask < 0:
        return prim.Sum((value, prim.Product((-1, _masked(value, ~mask)))))
    parts = [
        prim.Product((low, prim.Remainder(prim.FloorDiv(value, low), length)))
        for low, length in runs(mask)
    ]
    return prim.Sum(tuple(parts)) if parts else 0
