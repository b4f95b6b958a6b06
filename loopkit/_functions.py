"""The functions that expressions may call: their types, and their values for constants."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from loopkit import _promotion as dt
from loopkit._errors import TypeInferenceError, counted, nearest
from loopkit._promotion import RunTime, Typed

_OF_MATH = (
    *("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "erf", "erfc"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "lgamma", "atan2", "hypot", "copysign", "fmod"),
)
_FLOAT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(math, name) for name in _OF_MATH},
    "tgamma": math.gamma,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "fma": lambda x, y, z: float(x * y + z),
}
"""Floating-point functions, with how constants are folded."""


def _keep_float(function: Callable[[Any], int]) -> Callable[[Any], int | float]:
    return lambda x: float(function(x)) if isinstance(x, float) else function(x)


_ROUNDING: dict[str, Callable[[Any], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": round,
}
_PREDICATES = {"isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite}
_EXTREMA: dict[str, Callable[..., Any]] = {"fmin": min, "fmax": max}
_PARTS: dict[str, Callable[[Any], Any]] = {
    "abs": abs,
    "fabs": lambda x: float(abs(x)),
    "sign": lambda x: (x > 0) - (x < 0),
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "conj": lambda x: x.conjugate(),
}
BITS = frozenset(("popcount", "clz", "ffs", "brev"))
"""Functions of the bits that an integer has in its type."""
COMPLEX_FUNCTIONS = frozenset(("sqrt", "exp", "log", "sin", "cos"))
"""Those floating-point functions that take complex arguments."""

_ARITIES = {
    **dict.fromkeys(_FLOAT_FUNCTIONS, 1),
    **dict.fromkeys((*_ROUNDING, *_PREDICATES, *_PARTS, *BITS), 1),
    **dict.fromkeys(("atan2", "hypot", "copysign", "fmod", "fmin", "fmax", "pow"), 2),
    "fma": 3,
}
FUNCTIONS = frozenset(_ARITIES)
"""All functions that expressions may call, by name."""


def arity_of(name: str) -> int:
    """How many arguments one of the :data:`FUNCTIONS` takes."""
    return _ARITIES[name]


def unknown_function(name: str, asked: str, own: Iterable[str] = ()) -> TypeInferenceError:
    """The error of a call of what is no function; ``own`` are what else can be called there."""
    mine, every = sorted(own), sorted(FUNCTIONS)
    lists = [f"functions: {', '.join(every)}"]
    if mine:
        lists.insert(0, f"what this kernel can call besides: {', '.join(mine)}")
    return TypeInferenceError(
        f"there is no function '{name}'",
        asked=asked,
        instead=nearest(name, (*mine, *every), "\n".join(lists)),
    )


def check_call(name: str, count: int, asked: Callable[[], str]) -> None:
    """Raise if there is no function ``name``, or it takes another number of arguments."""
    arity = _ARITIES.get(name)
    if arity is None:
        raise unknown_function(name, asked())
    if count != arity:
        raise TypeInferenceError(
            f"'{name}' takes {counted(arity, 'argument')}, not {count}",
            asked=asked(),
        )


def call_type(name: str, arguments: Sequence[Typed], asked: Callable[[], str]) -> Typed:
    """What a call gives: a type, or a value if all arguments are constants."""
    check_call(name, len(arguments), asked)
    if name == "pow":
        return dt.power_type(arguments[0], arguments[1], asked)
    if name in BITS:
        return _type_of_bits(name, arguments[0], asked)
    if not any(isinstance(a, np.dtype) for a in arguments):
        if any(isinstance(a, RunTime) for a in arguments):
            return _late_call(name, arguments)
        return fold_call(name, arguments, asked)  # type: ignore[no-any-return]
    common = arguments[0]
    for argument in arguments[1:]:
        common = dt.promote(common, argument)
    assert isinstance(common, np.dtype)
    if name in _PREDICATES:
        return dt.BOOL
    if name in _ROUNDING or name in _EXTREMA:
        if common in dt.COMPLEXES:
            raise dt.refuse(f"'{name}'", common, asked())
        return common
    if name in ("real", "imag", "abs"):
        return dt.real_of(common)
    if name in ("conj", "sign"):
        if name == "sign" and common in dt.COMPLEXES | {dt.BOOL}:
            raise dt.refuse("'sign'", common, asked())
        return common
    if common in dt.COMPLEXES and name not in COMPLEX_FUNCTIONS:
        raise dt.refuse(
            f"'{name}'",
            common,
            asked(),
            "functions of complex numbers: " + ", ".join(sorted(COMPLEX_FUNCTIONS)),
        )
    return dt.float_of(common)


def _type_of_bits(name: str, argument: Typed, asked: Callable[[], str]) -> Typed:
    if not isinstance(argument, np.dtype):
        raise TypeInferenceError(
            f"'{name}' is of the bits that an integer has in its type, and this has no type",
            asked=asked(),
            instead="a cast says which, as in int32(...)",
        )
    if argument not in dt.INTEGERS:
        raise dt.refuse(f"'{name}'", argument, asked())
    return argument if name == "brev" else dt.INT32


_FOLDED: dict[str, Callable[..., Any]] = {
    **_FLOAT_FUNCTIONS,
    **{name: _keep_float(function) for name, function in _ROUNDING.items()},
    **_PREDICATES,
    **_EXTREMA,
    **_PARTS,
}


def _late_call(name: str, arguments: Sequence[Typed]) -> Typed:
    """What a call gives of numbers that are known at run time."""
    if name in _PREDICATES:
        return dt.BOOL
    if name in _FLOAT_FUNCTIONS:
        return RunTime(
            complex
            if any(a == RunTime(complex) or type(a) is complex for a in arguments)
            else float
        )
    kinds = [dt.run_time(a).kind for a in arguments]  # type: ignore[arg-type]
    kind = max(kinds, key=dt.KINDS.index)
    if name == "fabs" or (kind is complex and name in ("real", "imag", "abs")):
        kind = float
    return RunTime(kind)


def fold_call(name: str, values: Sequence[Typed], asked: Callable[[], str]) -> Any:
    """A call of constants, as Python computes it."""
    if name == "pow":
        return dt.fold(operator.pow, *values, asked=asked)
    return dt.fold(_FOLDED[name], *values, asked=asked)
