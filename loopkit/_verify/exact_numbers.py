"""Exact arithmetic on Python's numbers, for kernels run on a few small integers.

Sums, products and quotients of integers stay exact, so that two orders of one
sum give one value.  Functions such as ``sqrt`` round as floats do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

Number = Any
_LARGE = 512
_MOST_BITS = 2048


def is_unwieldy(a: Number) -> bool:
    """Whether a number has so many digits that arithmetic on more like it takes its time."""
    if not isinstance(a, (int, Fraction)):
        return False
    return a.numerator.bit_length() + a.denominator.bit_length() > _MOST_BITS


def divide(a: Number, b: Number) -> Number:
    """``a / b``, infinite or no number where ``b`` is zero."""
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, float(a))
    if isinstance(a, (int, Fraction)) and isinstance(b, (int, Fraction)):
        result = Fraction(a) / b
        return int(result) if result.denominator == 1 else result
    return a / b


def floor_divide(a: Number, b: Number) -> Number:
    """``a // b``."""
    return _safely(lambda: a // b if b != 0 else 0)


def remainder(a: Number, b: Number) -> Number:
    """``a % b``."""
    return _safely(lambda: a % b if b != 0 else 0)


def power(a: Number, b: Number) -> Number:
    """``a ** b``."""
    if isinstance(a, int) and isinstance(b, int) and abs(b) < _LARGE:
        if b >= 0:
            return a**b
        return divide(1, a**-b)
    if isinstance(a, complex) or isinstance(b, complex):
        return _safely(lambda: a**b)
    return _safely(lambda: math.pow(a, b))


def minimum(a: Number, b: Number) -> Number:
    """The smaller one."""
    return a if a < b or a != a else b


def maximum(a: Number, b: Number) -> Number:
    """The larger one."""
    return a if a > b or a != a else b


def converted(value: Number, dtype: np.dtype[Any]) -> Number:
    """A value as a variable of an integer, boolean or other type holds it."""
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind in "iu":
        whole = _safely(lambda: int(value))
        if whole != whole:
            return whole
        bits = 8 * dtype.itemsize
        whole &= (1 << bits) - 1
        return whole - (1 << bits) if dtype.kind == "i" and whole >> (bits - 1) else whole
    if isinstance(value, bool):
        return int(value)
    return value


def _safely(compute: Callable[[], Number]) -> Number:
    try:
        return compute()
    except (ArithmeticError, ValueError, TypeError):
        return math.nan


def function(name: str) -> Callable[..., Number] | None:
    """A function of the language; None where there is no such."""
    exact = _EXACT.get(name)
    if exact is not None:
        return exact
    from loopkit._reference.functions import FUNCTIONS

    found = FUNCTIONS.get(name)
    if found is None:
        return None

    def call(*arguments: Number) -> Number:
        def compute() -> Number:
            with np.errstate(all="ignore"):
                wide = [
                    np.complex128(a) if isinstance(a, complex) else np.float64(float(a))
                    for a in arguments
                ]
                return found(*wide).item()

        return _safely(compute)

    return call


_EXACT: Mapping[str, Callable[..., Number]] = {
    "abs": abs,
    "fabs": abs,
    "fmin": min,
    "fmax": max,
    "pow": power,
    "fma": lambda x, y, z: x * y + z,
}

REDUCTIONS: Mapping[str, Callable[[Number, Number], Number]] = {
    "sum": lambda a, b: a + b,
    "product": lambda a, b: a * b,
    "max": maximum,
    "min": minimum,
    "any": lambda a, b: bool(a) or bool(b),
    "all": lambda a, b: bool(a) and bool(b),
}


def close(a: Number, b: Number, dtype: np.dtype[Any]) -> bool:
    """Whether two results are the same, but for what rounding may do."""
    if a == b or (a != a and b != b):
        return True
    if dtype.kind in "iub":
        return False
    try:
        scale = max(abs(a), abs(b))
        if scale == math.inf:
            return False
        # Where functions have rounded, what should cancel out does so but for a little.
        rounded = isinstance(a, (float, complex)) or isinstance(b, (float, complex))
        return bool(abs(a - b) <= max(1e-6 * scale, 1e-9 if rounded else 0))
    except (OverflowError, TypeError):
        return False
