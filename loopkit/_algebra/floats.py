"""Predicates on constants and floating-point sorts, used in rewrite rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from loopkit._algebra.ranges import is_within, range_of
from loopkit._algebra.terms import INF, Term, constant

_DIGITS = {"F16": 11, "BF16": 8, "F32": 24, "F64": 53}
_LEAST = {"F16": 2.0**-14, "BF16": 2.0**-126, "F32": 2.0**-126, "F64": 2.0**-1022}
"""The least normal numbers."""


def is_power(value: float) -> bool:
    """Whether a number is a power of two, with an exponent of either sign."""
    return value > 0 and math.isfinite(value) and math.frexp(value)[0] == 0.5


def is_exact(value: float, sort: str) -> bool:
    """Whether a sort represents this number exactly, as a normal number."""
    return _LEAST[sort] <= abs(value) < INF and bool(constant(value, sort).data == value)


def has_inverse(value: float, sort: str) -> bool:
    """Whether division by the value equals multiplication: a power of two with a normal inverse."""
    return is_power(abs(value)) and is_exact(value, sort) and is_exact(1 / value, sort)


def is_one_rounding(one: float, two: float, sort: str) -> bool:
    """Whether ``one*x + two*x`` is rounded as ``(one + two)*x`` is.

    Multiples by powers of two are exact. In ``x + 3*x`` the rounded ``3*x`` differs from the exact
    one by at most half a unit in the last place of ``4*x``, and by exactly that only if ``4*x`` is
    the even neighbour.
    """
    are_powers = all(is_power(c) and c >= 1 for c in (one, two))
    return (are_powers or {one, two} == {1, 3}) and is_exact(one + two, sort)


def is_negative(value: float) -> bool:
    """Whether a number has its sign bit set, such as ``-0.0``; False for NaN."""
    return value == value and math.copysign(1, value) < 0


def has_all(wider: str, sort: str) -> bool:
    """Whether one sort contains all numbers of another."""
    return sort == wider or wider == "F64" or (wider == "F32" and sort in ("F16", "BF16"))


def is_exact_whole(term: Term, sort: str) -> bool:
    """Whether a sort certainly represents an integer exactly."""
    low, high = range_of(term)
    most = 2 ** _DIGITS[sort]
    return bool(-most <= low and high <= most)


def conditions_in(sort: str) -> Mapping[str, Callable[..., Any]]:
    """The predicates that conditions of rules may use, for constants of a sort."""
    return {
        "has_inverse": lambda c: has_inverse(c, sort),
        "is_once": lambda c, c2: is_one_rounding(c, c2, sort),
        "is_multiple": lambda c, c2: is_power(c) and c >= 1 <= c2 and is_exact(c * c2, sort),
        "is_negative": is_negative,
        "has_all": has_all,
        "is_exact_whole": is_exact_whole,
        "is_inside": is_within,
        "sort": lambda term: term.sort,
    }
