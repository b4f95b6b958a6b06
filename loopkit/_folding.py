"""Constant folding, with the same results as the generated code.

Whole numbers are computed exactly, as in Python.  Everything else is computed in double precision,
where undefined results are NaN or infinite, as in the generated code.  The type of a result covers
both operands: ``min(n, 2.5)`` is a float for every ``n``.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

Number = Any
"""A number of Python's: ``bool``, ``int``, ``float`` or ``complex``."""

KINDS = [bool, int, float, complex]


def _common(a: Number, b: Number) -> type:
    """The kind that holds two numbers."""
    kind: type = max(type(a), type(b), key=KINDS.index)
    if kind is complex:
        raise TypeError("complex numbers have no order")
    return kind


def maximum(a: Number, b: Number) -> Number:
    """The larger one; NaN if one is."""
    return _common(a, b)(a if a > b or a != a else b)


def minimum(a: Number, b: Number) -> Number:
    """The smaller one; NaN if one is."""
    return _common(a, b)(a if a < b or a != a else b)


def fmax(a: Number, b: Number) -> Number:
    """The larger one; the other one where one is NaN."""
    return _common(a, b)(b if a != a else a if b != b else max(a, b))


def fmin(a: Number, b: Number) -> Number:
    """The smaller one; the other one where one is NaN."""
    return _common(a, b)(b if a != a else a if b != b else min(a, b))


def invert(x: Number) -> Number:
    """``~x``: of a truth value it is ``not x``, as NumPy has it."""
    return not x if isinstance(x, bool) else ~x


def _in_doubles(function: Any, *values: Number) -> Number:
    """A function of NumPy's in double precision, without a warning."""
    kind = np.complex128 if any(isinstance(v, complex) for v in values) else np.float64
    with np.errstate(all="ignore"):
        return function(*map(kind, values)).item()


def quotient(a: Number, b: Number) -> Number:
    """``a / b``."""
    return a / b if b != 0 else _in_doubles(np.true_divide, a, b)


def floor_division(a: Number, b: Number) -> Number:
    """``a // b``; of whole numbers, 0 where ``b`` is."""
    if b != 0:
        return a // b
    return 0 if isinstance(a, int) and isinstance(b, int) else _in_doubles(np.floor_divide, a, b)


def remainder(a: Number, b: Number) -> Number:
    """``a % b``; of whole numbers, 0 where ``b`` is."""
    if b != 0:
        return a % b
    return 0 if isinstance(a, int) and isinstance(b, int) else _in_doubles(np.remainder, a, b)


def left_shift(a: int, count: int) -> int:
    """``a << count``; 0 for a count below 0."""
    return a << count if count >= 0 else 0


def right_shift(a: int, count: int) -> int:
    """``a >> count``; 0 for a count below 0."""
    return a >> count if count >= 0 else 0


def power(a: Number, b: Number) -> Number:
    """``a ** b``, with a real result of what is real; the exponent 0.5 takes the root."""
    if type(b) is float and b == 0.5 and not isinstance(a, complex):
        return _in_doubles(np.sqrt, a)
    try:
        result = a**b
    except (ZeroDivisionError, OverflowError):
        return _in_doubles(np.power, a, b)
    is_real = not isinstance(a, complex) and not isinstance(b, complex)
    return math.nan if is_real and isinstance(result, complex) else result


def _like_c(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """A function of :mod:`math`, or what NumPy gives where that has none; for complex ones, too."""
    numpys = getattr(np, name or function.__name__)
    complexes = getattr(cmath, function.__name__, None)

    def call(*values: Number) -> Number:
        known = function
        if any(isinstance(v, complex) for v in values):
            if complexes is None:
                raise TypeError("it takes no complex numbers")
            known = complexes
        try:
            return known(*values)
        except (ValueError, OverflowError):
            return _in_doubles(numpys, *values)

    return call


def lgamma(x: Number) -> float:
    """The logarithm of the absolute value of the gamma function."""
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def tgamma(x: Number) -> float:
    """The gamma function."""
    try:
        return math.gamma(x)
    except OverflowError:
        return math.copysign(math.inf, x)
    except ValueError:
        return math.copysign(math.inf, x) if x == 0 else math.nan


def fma(x: Number, y: Number, z: Number) -> float:
    """``x*y + z``, rounded once."""
    a, b, c = (float(value) for value in (x, y, z))
    plain = a * b + c
    if not all(map(math.isfinite, (a, b, c))):
        return plain
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return plain
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _of_ordered(numpys: Any, of_whole: Callable[[int], int]) -> Callable[[Number], Number]:
    """A function of floats in NumPy's way, where a zero keeps its sign, and of whole numbers."""

    def call(x: Number) -> Number:
        if isinstance(x, complex):
            raise TypeError("complex numbers have no order")
        return _in_doubles(numpys, x) if isinstance(x, float) else of_whole(x)

    return call


def _test(name: str) -> Callable[[Number], bool]:
    of_reals, of_complexes = getattr(math, name), getattr(cmath, name)
    return lambda x: (of_complexes if isinstance(x, complex) else of_reals)(x)


_ARCS = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
FLOAT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: _like_c(getattr(math, name))
        for name in (
            *("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
            *(*_ARCS, "hypot", "copysign", "fmod"),
        )
    },
    **{f"a{name}": _like_c(getattr(math, f"a{name}"), f"arc{name}") for name in _ARCS},
    "atan2": math.atan2,
    "erf": math.erf,
    "erfc": math.erfc,
    "lgamma": lgamma,
    "tgamma": tgamma,
    "rsqrt": lambda x: quotient(1.0, FLOAT_FUNCTIONS["sqrt"](x)),
    "fma": fma,
}
"""Functions whose results are no whole numbers."""
ROUNDING = {
    name: _of_ordered(getattr(np, "rint" if name == "round" else name), lambda x: x)
    for name in ("floor", "ceil", "trunc", "round")
}
PREDICATES = {name: _test(name) for name in ("isnan", "isinf", "isfinite")}
EXTREMA: dict[str, Callable[..., Any]] = {"fmin": fmin, "fmax": fmax}
PARTS: dict[str, Callable[[Any], Any]] = {
    "abs": abs,
    "fabs": lambda x: float(abs(x)),
    "sign": _of_ordered(np.sign, lambda x: (x > 0) - (x < 0)),
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "conj": lambda x: x.conjugate(),
}
negated = operator.neg
"""``-x``, which keeps the sign of a zero and of infinite parts."""
