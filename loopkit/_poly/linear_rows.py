"""Linear constraints as rows of coefficients, and their simplification.

A row holds a coefficient for each name, and the constant: ``row @ (values, 1)`` is 0 for an
equality, and at least 0 for an inequality.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

UNKNOWN = 1 << 62
"""A bound that is not known; as a lower bound, its negative."""

Row = tuple[int, ...]
Bounds = Sequence[int]


def least(row: Sequence[int], low: Bounds, high: Bounds) -> int:
    """The smallest value of a row where each name lies between its bounds."""
    ends = zip(row[:-1], low, high, strict=True)
    return row[-1] + sum(c * (a if c > 0 else b) for c, a, b in ends if c)


def plus(row: Row, factor: int, other: Row, times: int = 1) -> Row:
    """``times*row + factor*other``."""
    return tuple(times * a + factor * b for a, b in zip(row, other, strict=True))


def names_in(row: Row) -> int:
    """How many names a row is about."""
    return sum(map(bool, row[:-1]))


def tightened(row: Row) -> Row:
    """The same inequality of whole numbers, without a common divisor of the coefficients."""
    divisor = gcd(*row[:-1])
    if divisor <= 1:
        return row
    return (*(c // divisor for c in row[:-1]), row[-1] // divisor)


Terms = tuple[tuple[int, int], ...]


def without_terms(row: Row, equalities: Iterable[tuple[Row, Terms]]) -> Row:
    """The same inequality under the equalities, about fewer names where that is possible.

    Equalities come with their columns and coefficients.
    """
    for equality, terms in equalities:
        for column, coefficient in terms:
            if row[column] and row[column] % coefficient == 0:
                other = plus(row, -(row[column] // coefficient), equality)
                if names_in(other) < names_in(row):
                    row = other
    return tightened(row)


def tidy(
    equalities: Iterable[Row], inequalities: Iterable[Row], low: Bounds, high: Bounds
) -> list[Row]:
    """Inequalities that say the same, the bounds of single names among them.

    ``low`` and ``high`` bound the names of all points that there are.
    """
    width = len(low)
    ends = [_bound(column, 1, -end, width) for column, end in enumerate(low) if end > -UNKNOWN]
    ends += [_bound(column, -1, end, width) for column, end in enumerate(high) if end < UNKNOWN]
    return unlinked(equalities, [*ends, *inequalities], low, high)


def unlinked(
    equalities: Iterable[Row], inequalities: Iterable[Row], low: Bounds, high: Bounds
) -> list[Row]:
    """Inequalities that say the same, each once: what bounds imply links no names."""
    known = [(e, tuple((n, c) for n, c in enumerate(e[:-1]) if c)) for e in equalities]
    tightest: dict[Row, int] = {}
    for row in inequalities:
        row = without_terms(row, known)
        if names_in(row) == 1 or least(row, low, high) < 0:
            key = row[:-1]
            tightest[key] = min(row[-1], tightest.get(key, row[-1]))
    return [(*key, constant) for key, constant in tightest.items()]


def narrowed(inequalities: Iterable[Row], low: Bounds, high: Bounds) -> tuple[list[int], list[int]]:
    """The bounds of names, with what inequalities say of single ones."""
    lower, upper = list(low), list(high)
    for row in inequalities:
        if names_in(row) == 1:
            column, c = next((n, c) for n, c in enumerate(row[:-1]) if c)
            if c > 0:
                lower[column] = max(lower[column], -(row[-1] // c))
            else:
                upper[column] = min(upper[column], row[-1] // -c)
    return lower, upper


def _bound(column: int, sign: int, constant: int, width: int) -> Row:
    return (*(sign if n == column else 0 for n in range(width)), constant)
