"""Ranges of integer terms: their least and greatest values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, reduce

from loopkit._algebra.polynomials import minus, polynomial, scaled
from loopkit._algebra.terms import INF, Term, is_constant

Interval = tuple[float, float]
"""Two whole numbers, both included, or infinities."""

EVERYTHING: Interval = (-INF, INF)

INTEGERS: dict[str, Interval] = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
"""The values of the types of whole numbers."""


_FAR = 1 << 500
"""Ends beyond this, which floating-point numbers might not hold, are infinite."""


@lru_cache(1 << 14)
def range_of(term: Term) -> Interval:
    """The range of an integer term that follows from the bounds of its names."""
    return computed_range(term, range_of)


def _near(low: float, high: float) -> Interval:
    """An enclosing interval in which very large ends are replaced by infinity."""
    return (min(low, _FAR) if low >= -_FAR else -INF), (max(high, -_FAR) if high <= _FAR else INF)


def computed_range(term: Term, range_of: Callable[[Term], Interval]) -> Interval:
    """The range of an integer term, given the ranges of its operands."""
    return _near(*_range(term, range_of))


def _range(term: Term, range_of: Callable[[Term], Interval]) -> Interval:
    match term.op:
        case "constant":
            return term.data, term.data
        case "name":
            return term.data[1], term.data[2]
        case "wrap" | "toint":
            return INTEGERS[term.data]
        case "read" | "call":
            return INTEGERS.get(term.data[-1], EVERYTHING)
        case "reduce" | "pow":
            return EVERYTHING
        case "sum":
            return _range_of_sum(term, range_of)
        case "product":
            low, high = reduce(_product, map(range_of, term.args))
            is_square = len(term.args) == 2 and term.args[0] is term.args[1]
            return (max(0, low), high) if is_square else (low, high)
        case "select":
            (a, b), (c, d) = map(range_of, term.args[1:])
            return min(a, c), max(b, d)
    return reduce(_OPERATIONS[term.op], map(range_of, term.args))


def is_within(term: Term, dtype: str) -> bool:
    """Whether an integer term certainly fits a type."""
    (low, high), (a, b) = INTEGERS[dtype], range_of(term)
    return low <= a and b <= high


def remainders_in(term: Term) -> Iterator[tuple[Term, int, int, Term]]:
    """Each ``f*(x mod d)`` that a sum holds as ``f*x - f*d*(x // d)``.

    As what is left of the sum, ``f``, ``d`` and ``x``, which may be a quotient: ``x//2 - 2*(x//4)``
    is ``x//2 mod 2``.
    """
    own = zip(term.args, term.data, strict=True)
    quotients = {t: c for t, c in own if t.op == "fdiv" and is_constant(t.args[1])}
    for part in sorted(quotients, key=lambda t: -t.args[1].data):
        value, divisor = part.args[0], part.args[1].data
        inner = {t: t.args[1].data for t in quotients if t.args[0] is value}
        for divided, by in (*sorted(inner.items(), key=lambda item: -item[1]), (value, 1)):
            if 0 < by < divisor and divisor % by == 0 and quotients[part] % (divisor // by) == 0:
                length = divisor // by
                factor = -quotients[part] // length
                remainder = minus(divided, scaled(part, length))
                rest = minus(term, scaled(remainder, factor))
                if len(polynomial(rest)) < len(polynomial(term)):
                    yield rest, factor, length, divided


def _range_of_sum(term: Term, range_of: Callable[[Term], Interval]) -> Interval:
    low: float = 0
    high: float = 0
    for part, coefficient in zip(term.args, term.data, strict=True):
        a, b = _product(_near(coefficient, coefficient), range_of(part))
        low, high = low + a, high + b
    # One remainder after the other: all subsets of many would be exponentially many.
    if simplest := min(remainders_in(term), key=lambda r: len(polynomial(r[0])), default=None):
        rest, factor, divisor, _ = simplest
        a, b = _product(_near(factor, factor), _near(0, divisor - 1))
        c, d = range_of(rest)
        return max(low, a + c), min(high, b + d)
    return low, high


def _product(a: Interval, b: Interval) -> Interval:
    every = [0 if x == 0 or y == 0 else x * y for x in a for y in b]
    return min(every), max(every)


def _quotient(a: Interval, b: Interval) -> Interval:
    """The range of a quotient rounded down; division by 0 gives 0."""
    if b[0] <= 0:
        most = max(map(abs, a))
        return (0, a[1]) if a[0] >= 0 and b[0] == 0 else (-most, most)
    every = [_floor(x, y) for x in a for y in b]
    return min(every), max(every)


def _floor(x: float, y: float) -> float:
    if abs(x) == INF:
        return x
    return x // y if y != INF else -1 if x < 0 else 0


def _remainder(a: Interval, b: Interval) -> Interval:
    """The range of a remainder with the divisor's sign; division by 0 gives 0."""
    if b[0] >= 0:
        return 0, max(0, min(a[1], b[1] - 1) if a[0] >= 0 else b[1] - 1)
    return min(0, b[0] + 1), max(0, b[1] - 1)


def _bits(x: float) -> float:
    """The greatest integer with as many bits as a given nonnegative one."""
    return INF if x == INF else (1 << int(x).bit_length()) - 1


def _bitwise(a: Interval, b: Interval) -> Interval:
    """The range of ``|`` and ``^``."""
    if a[0] >= 0 and b[0] >= 0:
        return 0, max(_bits(a[1]), _bits(b[1]))
    most = max(_bits(x if x >= 0 else -x - 1) for x in (*a, *b))
    return -most - 1, most


def _common_bits(a: Interval, b: Interval) -> Interval:
    """The range of ``&``."""
    ends = [high for low, high in (a, b) if low >= 0]
    return (0, min(ends)) if ends else _bitwise(a, b)


_OPERATIONS: dict[str, Callable[[Interval, Interval], Interval]] = {
    "fdiv": _quotient,
    "mod": _remainder,
    "and": _common_bits,
    "or": _bitwise,
    "xor": _bitwise,
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "shr": lambda a, b: (min(a[0], 0), max(a[1], 0)),
    "shl": lambda a, b: EVERYTHING,
}
