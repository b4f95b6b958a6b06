"""Operations on the bits of values in domains: sums of quotients and remainders, as isl reads them.

Whole numbers have as many bits as one likes, so ``x >> 3`` is ``floor(x / 8)`` and ``x & 24`` is
``8*(floor(x / 8) mod 4)`` for every ``x`` (:mod:`loopkit._linear`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from loopkit._linear import MOST_SHIFT, runs
from loopkit._syntax.isl_text import Value, number, total

POWERS = {"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4}
"""How strongly the operations bind, as in Python: less than ``+``, more than comparisons."""

_FOLDED: dict[str, Callable[[int, int], int]] = {
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
    "<<": operator.lshift,
    ">>": operator.rshift,
}


def of_bits(word: str, left: Value, right: Value) -> Value | str:
    """What an operation makes of whole numbers; text that says why, where it is not affine."""
    if left.divisor != 1 or right.divisor != 1:
        return f"'{word}' is of integers"
    one, two = left.constant, right.constant
    if word in ("<<", ">>"):
        if two is None or not 0 <= two < MOST_SHIFT:
            return "a shift goes by a number of bits that is known, and less than 64"
    elif one is not None and two is None:
        left, right, one, two = right, left, two, one
    if two is None:
        return f"'{word}' of two variables is not affine"
    if one is not None:
        return number(_FOLDED[word](int(one), int(two)))
    if word == ">>":
        return _quotient(left, 1 << int(two))
    if word == "<<":
        return Value(left.times(1 << int(two)), has_factor=True)
    common = _masked(left, int(two))
    if word == "&":
        return common
    # a | b = a + b - (a & b), and a ^ b takes that away twice
    return _sum((1, left), (1, right), *[(-1, common)] * (1 if word == "|" else 2))


def _masked(value: Value, mask: int) -> Value:
    """``value & mask``."""
    if mask < 0:
        return _sum((1, value), (-1, _masked(value, ~mask)))
    terms = []
    for low, length in runs(mask):
        part = Value(f"({_quotient(value, low).text} mod {length})", is_atom=True)
        terms.append((1, Value(part.times(low), has_factor=True)))
    return _sum(*terms) if terms else number(0)


def _quotient(value: Value, divisor: int) -> Value:
    """``floor(value / divisor)``."""
    return Value(f"floor(({value.text})/{divisor})", is_atom=True)


def _sum(*terms: tuple[int, Value]) -> Value:
    whole = total([*terms])
    return Value(f"({whole.text})", constant=whole.constant, is_atom=True)
