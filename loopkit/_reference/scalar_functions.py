"""Functions and conversions on NumPy scalars, with the semantics of the language."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._promotion import BOOL, DType


def converter(source: DType | None, target: DType) -> Callable[[Any], Any]:
    """A function that converts scalars to ``target`` as an assignment does.

    ``source`` is their type, None for Python's own numbers.
    """
    kind = target.type
    if target == BOOL:
        return lambda x: np.bool_(x != 0)
    if source is not None and source.kind == "c" and target.kind != "c":
        real = converter(np.dtype(source.type(0).real.dtype), target)
        return lambda x: real(x.real)
    if source is not None and source.kind == "V":  # bfloat16
        inner = converter(np.dtype("float32"), target)
        return lambda x: inner(np.float32(float(x)))
    if source is None and target.kind in "iu":
        return lambda x: np.asarray(_wrapped(x) if isinstance(x, int) else x).astype(target)[()]
    if source is not None and source.kind == "f" and target.kind in "fcV":
        return lambda x: kind(x)
    return lambda x: np.asarray(x).astype(target)[()]


def _wrapped(number: int) -> int:
    """The last 64 bits of an integer, as a signed number."""
    return (number + 2**63) % 2**64 - 2**63


def maximum(a: Any, b: Any) -> Any:
    """The larger one; not a number if one of them is."""
    return a if a > b or a != a else b


def minimum(a: Any, b: Any) -> Any:
    """The smaller one; not a number if one of them is."""
    return a if a < b or a != a else b


def power(a: Any, b: Any) -> Any:
    """``a ** b``; an integer to a negative power, which NumPy refuses, is 0."""
    kind = np.result_type(a, b)
    if kind.kind in "iu":
        return kind.type(0) if b < 0 else np.power(a, b)
    return a**b  # np.power of one exponent takes a root where that is 0.5


def _parts(re: Any, im: Any) -> Any:
    """A complex number; a product with ``1j`` would touch what is infinite."""
    kind = np.complex64 if re.dtype == np.float32 else np.complex128
    result = np.empty((), kind)
    result.real, result.imag = re, im
    return result[()]


BESIDE_REAL: dict[tuple[str, bool], Callable[[Any, Any], Any]] = {
    ("+", False): lambda z, x: _parts(z.real + x, z.imag),
    ("+", True): lambda x, z: _parts(x + z.real, z.imag),
    ("-", False): lambda z, x: _parts(z.real - x, z.imag),
    ("-", True): lambda x, z: _parts(x - z.real, -z.imag),
    ("*", False): lambda z, x: _parts(z.real * x, z.imag * x),
    ("*", True): lambda x, z: _parts(x * z.real, x * z.imag),
    ("/", False): lambda z, x: _parts(z.real / x, z.imag / x),
}
"""Arithmetic of a complex and a real number, which has no imaginary part; second: it is left."""


OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    prim.Quotient: np.true_divide,
    prim.FloorDiv: np.floor_divide,
    prim.Remainder: np.remainder,
    prim.Power: power,
    prim.LeftShift: np.left_shift,
    prim.RightShift: np.right_shift,
    prim.Min: minimum,
    prim.Max: maximum,
}
"""What has no symbol of Python's on scalars, or means something else there."""


def _fma(x: Any, y: Any, z: Any) -> Any:
    """``x*y + z``, rounded once."""
    if not all(math.isfinite(float(v)) for v in (x, y, z)):
        return float(x) * float(y) + float(z)
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    if exact == 0:
        return float(x) * float(y) + float(z)
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def inverted(x: Any) -> Any:
    """``~x``, which is ``not x`` of a truth value."""
    return not x if isinstance(x, bool) else ~x


def _of_pole(x: float) -> float:
    """What the gamma function gives where it has no value: at zero the sign says which infinity."""
    return math.copysign(math.inf, x) if x == 0 else math.nan


def _guarded(
    function: Callable[[float], float], at_pole: Callable[[float], float]
) -> Callable[[Any], float]:
    """A function of :mod:`math` that gives what C gives where Python raises."""

    def call(argument: Any) -> float:
        x = float(argument)
        try:
            return function(x)
        except OverflowError:
            return math.copysign(math.inf, x) if function is math.gamma else math.inf
        except ValueError:
            return at_pole(x)

    return call


def _bits(x: Any) -> tuple[int, int]:
    """The bits of an integer as a number, and how many there are."""
    count = 8 * x.dtype.itemsize
    return int(x) % (1 << count), count


def _clz(x: Any) -> int:
    bits, count = _bits(x)
    return count - bits.bit_length()


def _ffs(x: Any) -> int:
    bits, _ = _bits(x)
    return (bits & -bits).bit_length()


def _brev(x: Any) -> Any:
    bits, count = _bits(x)
    turned = int(f"{bits:0{count}b}"[::-1], 2)
    return np.array([turned], f"u{x.dtype.itemsize}").view(x.dtype)[0]


_OF_ONE_NAME = (
    *("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "hypot", "copysign", "fmod"),
    *("floor", "ceil", "trunc", "isnan", "isinf", "isfinite", "fmin", "fmax"),
    *("abs", "sign", "real", "imag", "conj"),
)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _OF_ONE_NAME},
    **{f"a{n}": getattr(np, f"arc{n}") for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "erf": lambda x: math.erf(float(x)),
    "erfc": lambda x: math.erfc(float(x)),
    "lgamma": _guarded(math.lgamma, lambda x: math.inf),
    "tgamma": _guarded(math.gamma, _of_pole),
    "atan2": np.arctan2,
    "rsqrt": lambda x: type(x)(1) / np.sqrt(x),
    "fma": _fma,
    "round": np.rint,
    "fabs": np.abs,
    "popcount": lambda x: _bits(x)[0].bit_count(),
    "clz": _clz,
    "ffs": _ffs,
    "brev": _brev,
}
"""What functions compute on scalars, by their names in the language."""


def _quotient(a: Any, b: Any) -> Any:
    if b == 0 and not isinstance(a, complex) and not isinstance(b, complex):
        return float(np.float64(a) / np.float64(b))
    return a / b


def _floor_division(a: Any, b: Any) -> Any:
    if b != 0:
        return a // b
    return 0 if isinstance(a, int) and isinstance(b, int) else float(np.float64(a) // np.float64(b))


def _remainder(a: Any, b: Any) -> Any:
    return a % b if b != 0 else 0 if isinstance(a, int) and isinstance(b, int) else math.nan


def _raised(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return a**b if b >= 0 else 0
    return ((np.complex128 if isinstance(a, complex) else np.float64)(a) ** b).item()


def root(a: Any, half: float) -> Any:
    """``a ** 0.5`` as written so: of a real number it is the root, as NumPy has it for arrays."""
    if isinstance(a, (complex, np.complexfloating)):
        return a**half
    if isinstance(a, np.generic):
        return a.dtype.type(np.sqrt(a))
    return np.sqrt(np.float64(a)).item()


LATE: dict[type, Callable[[Any, Any], Any]] = {
    prim.Quotient: _quotient,
    prim.FloorDiv: _floor_division,
    prim.Remainder: _remainder,
    prim.Power: _raised,
    prim.LeftShift: lambda a, n: a << n if 0 <= n < 64 else 0,
    prim.RightShift: lambda a, n: a >> n if n >= 0 else 0,
}
"""Operations on numbers that are known at run time, where Python's own may raise."""
