"""The functions that expressions may call: result types, and values for constant arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from loopkit import _folding
from loopkit import _promotion as dt
from loopkit._errors import TypeInferenceError, counted, nearest
from loopkit._promotion import RunTime, Typed

BITS = frozenset(("popcount", "clz", "ffs", "brev"))
"""Functions of the bits that an integer has in its type."""
COMPLEX_FUNCTIONS = frozenset(
    ("sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh")
)
"""Those floating-point functions that take complex arguments."""

_ARITIES = {
    **dict.fromkeys(_folding.FLOAT_FUNCTIONS, 1),
    **dict.fromkeys((*_folding.ROUNDING, *_folding.PREDICATES, *_folding.PARTS, *BITS), 1),
    **dict.fromkeys(("atan2", "hypot", "copysign", "fmod", "fmin", "fmax", "pow"), 2),
    "fma": 3,
}
FUNCTIONS = frozenset(_ARITIES)
"""All functions that expressions may call, by name."""


def arity_of(name: str) -> int:
    """How many arguments one of the :data:`FUNCTIONS` takes."""
    return _ARITIES[name]


_CASTS = {
    **dict.fromkeys(("float", "float_", "double", "half", "single"), "float32(x), float64(x), ..."),
    **dict.fromkeys(
        ("int", "int_", "long", "longlong", "short", "char"), "int32(x), int64(x), ..."
    ),
    **dict.fromkeys(("uint", "unsigned", "size_t", "uchar"), "uint32(x), uint64(x), ..."),
    **dict.fromkeys(("complex", "cdouble", "csingle"), "complex64(x), complex128(x)"),
    "bool_": "bool(x)",
}
"""What C, Python and NumPy call types, with what is written for it."""


def unknown_function(name: str, asked: str, own: Iterable[str] = ()) -> TypeInferenceError:
    """The error of a call of what is no function; ``own`` are what else can be called there."""
    if name in _CASTS:
        return TypeInferenceError(
            f"there is no function '{name}'",
            asked=asked,
            instead=f"a cast has the name of its type: {_CASTS[name]}",
        )
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
    common = reduce(dt.promote, arguments)
    assert isinstance(common, np.dtype)
    if name in _folding.PREDICATES:
        return dt.BOOL
    if name in _folding.ROUNDING or name in _folding.EXTREMA:
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
    **_folding.FLOAT_FUNCTIONS,
    **_folding.ROUNDING,
    **_folding.PREDICATES,
    **_folding.EXTREMA,
    **_folding.PARTS,
}


def _late_call(name: str, arguments: Sequence[Typed]) -> Typed:
    """What a call gives of numbers that are known at run time."""
    if name in _folding.PREDICATES:
        return dt.BOOL
    if name in _folding.FLOAT_FUNCTIONS:
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
    """A call of constants."""
    if name == "pow":
        return dt.fold(_folding.power, *values, asked=asked)
    return dt.fold(_FOLDED[name], *values, asked=asked)
