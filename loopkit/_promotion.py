"""Types: their names, and NumPy's rules of promotion.

Every type is a :class:`numpy.dtype`.  The rules are those of NumPy 2 (NEP 50): Python's own numbers
are *weak*, they take the type of the other operand.  An expression without typed operands is a
Python constant; it is folded, so that ``x * (1 / 3)`` keeps the type of ``x``.  Differences from
NumPy: mathematical functions of integers give ``float64`` whatever the width, functions of
constants are constants, and bfloat16 combines with other types as a 16-bit float should.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import pymbolic.primitives as prim

from loopkit import _folding, _intervals
from loopkit._errors import InvalidArgumentError, TypeInferenceError, nearest
from loopkit._frozen import dataclass
from loopkit._nodes import SYMBOLS
from loopkit._spelling import shown

DType = np.dtype[Any]

BOOL: DType = np.dtype(np.bool_)
INT8: DType = np.dtype(np.int8)
INT16: DType = np.dtype(np.int16)
INT32: DType = np.dtype(np.int32)
INT64: DType = np.dtype(np.int64)
UINT8: DType = np.dtype(np.uint8)
UINT16: DType = np.dtype(np.uint16)
UINT32: DType = np.dtype(np.uint32)
UINT64: DType = np.dtype(np.uint64)
FLOAT16: DType = np.dtype(np.float16)
FLOAT32: DType = np.dtype(np.float32)
FLOAT64: DType = np.dtype(np.float64)
COMPLEX64: DType = np.dtype(np.complex64)
COMPLEX128: DType = np.dtype(np.complex128)
BFLOAT16: DType = np.dtype(ml_dtypes.bfloat16)

DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        *(BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64),
        *(FLOAT16, BFLOAT16, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128),
    )
}
"""All types of the language by name."""

_NAMES = {dtype: name for name, dtype in DTYPES.items()}

INTEGERS = frozenset((INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64))
UNSIGNED = frozenset((UINT8, UINT16, UINT32, UINT64))
FLOATS = frozenset((FLOAT16, BFLOAT16, FLOAT32, FLOAT64))
COMPLEXES = frozenset((COMPLEX64, COMPLEX128))
DOUBLES = frozenset((FLOAT64, COMPLEX128))
SMALL_FLOATS = frozenset((FLOAT16, BFLOAT16))


@dataclass(frozen=True)
class Choice:
    """One of two constants, as ``1.0 if x > 0 else 0.0``: weak, but unknown until run time.

    Operations with other constants are applied to both branches.
    """

    condition: Any
    then: Weak
    else_: Weak


@dataclass(frozen=True)
class RunTime:
    """A number of Python's that is only known at run time: what inames and sizes make.

    Integers are mathematical ones; ``kind`` is ``int``, ``float`` or ``complex``.
    """

    kind: type


INTEGER = RunTime(int)
"""What an iname or a size is."""

Constant = bool | int | float | complex
Weak = Constant | Choice | RunTime
Typed = DType | Weak
"""A type, or the value of an expression of constants, whose type is weak."""


def is_complex(value: Weak) -> bool:
    """Whether a constant is a complex number, or one of its branches is."""
    if isinstance(value, Choice):
        return is_complex(value.then) or is_complex(value.else_)
    return isinstance(value, complex) or value == RunTime(complex)


def run_time(value: Weak) -> RunTime:
    """The kind of a number of Python's, whatever its value."""
    if isinstance(value, RunTime):
        return value
    if isinstance(value, Choice):
        kinds = (run_time(value.then).kind, run_time(value.else_).kind)
        return RunTime(max(kinds, key=KINDS.index))
    return RunTime(int if isinstance(value, bool) else type(value))


KINDS = [int, float, complex]
"""The kinds of numbers, each holding those before it."""


def natural(value: Weak) -> DType:
    """The type that NumPy gives a number of Python's that meets no other."""
    return {int: INT64, float: FLOAT64, complex: COMPLEX128}[run_time(value).kind]


def dtype_name(dtype: DType) -> str:
    """The name of a type in the language; those of the components of a record."""
    components = components_of(dtype)
    if components:
        return f"({', '.join(map(dtype_name, components.values()))})"
    return _NAMES.get(dtype, str(dtype))


def record_of(components: Mapping[str, DType]) -> DType:
    """The type of values with these components, laid out as C does it."""
    kinds = [*components.values()]
    offsets, end = [], 0
    for size in (kind.itemsize for kind in kinds):  # a type is aligned to its size
        offsets.append(-(-end // size) * size)
        end = offsets[-1] + size
    widest = max(kind.itemsize for kind in kinds)
    layout: Any = {"names": [*components], "formats": kinds, "offsets": offsets}
    layout["itemsize"] = -(-end // widest) * widest
    found: DType = np.dtype(layout)
    return found


@lru_cache(maxsize=512)
def components_of(dtype: DType) -> Mapping[str, DType]:
    """The components of a record by name; none for other types."""
    fields: Any = dtype.fields or {}
    return {name: fields[name][0] for name in dtype.names or ()}


def as_dtype(spec: Any) -> DType:
    """The dtype for a type name, a NumPy dtype or a scalar class."""
    if isinstance(spec, str):
        name = spec.removeprefix("np.")
        found = DTYPES.get(_PYTHONS.get(name, name))
        if found is None:
            raise InvalidArgumentError(
                f"{shown(spec)} is not the name of a type", instead=like_types(name)
            )
        return found
    if spec is None:  # NumPy takes it for float64
        raise InvalidArgumentError("None is not a type", instead=_ALL)
    try:
        dtype = np.dtype(spec)
    except Exception:  # what NumPy asks a value from outside may raise anything
        raise InvalidArgumentError(f"{shown(spec)} is not a type", instead=_ALL) from None
    native: DType = dtype.newbyteorder("=")
    if native not in _NAMES:
        raise InvalidArgumentError(f"the type {dtype} is not supported", instead=_ALL)
    return native


_PYTHONS = {"int": "int64", "float": "float64", "complex": "complex128"}
"""Python's types by name, which NumPy takes for these."""

_ALL = "types: " + ", ".join(DTYPES)


def like_types(name: str) -> str:
    """The types whose names are like one that is none, or all types."""
    return nearest(name, DTYPES, _ALL)


def promote(a: Typed, b: Typed) -> DType:
    """The type in which two operands meet; at least one of them is a type."""
    if isinstance(a, np.dtype) and isinstance(b, np.dtype):
        return a if a is b else _promote_types(a, b)
    if isinstance(a, np.dtype):
        return _promote_weak(a, b)
    if isinstance(b, np.dtype):
        return _promote_weak(b, a)
    raise TypeError("two constants have no common type but Python's")


def _promote_weak(a: DType, b: Any) -> DType:
    kind = b.kind if isinstance(b, RunTime) else type(b)
    if kind is bool:
        return a
    if kind is int:
        return INT64 if a == BOOL else a
    if kind is float:
        return float_of(a)
    if isinstance(b, Choice):
        return _promote_weak(_promote_weak(a, b.then), b.else_)
    return _COMPLEX_OF[a]


@lru_cache(maxsize=512)
def _promote_types(a: DType, b: DType) -> DType:
    if a == b:
        return a
    if mine := components_of(a):
        its = components_of(b)
        return record_of({name: promote(kind, its[name]) for name, kind in mine.items()})
    if BFLOAT16 in (a, b):
        other = b if a == BFLOAT16 else a
        if other in (BOOL, INT8, UINT8):
            return BFLOAT16
        if other in (INT16, UINT16, FLOAT16):
            return FLOAT32
        return float_of(other)
    common: DType = np.result_type(a, b)
    return common


_COMPLEX_OF: dict[DType, DType] = {
    dtype: COMPLEX64 if dtype in (FLOAT16, BFLOAT16, FLOAT32, COMPLEX64) else COMPLEX128
    for dtype in DTYPES.values()
}
_REAL_OF = {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}


def real_of(dtype: DType) -> DType:
    """The type of the parts of a complex type; any other type itself."""
    return _REAL_OF.get(dtype, dtype)


def float_of(dtype: DType) -> DType:
    """The type in which a mathematical function of ``dtype`` is computed."""
    return FLOAT64 if dtype == BOOL or dtype in INTEGERS else dtype


def fits(value: int, dtype: DType) -> bool:
    """Whether an integer constant is a value of the integer type ``dtype``."""
    low, high = _LIMITS[dtype]
    return low <= value <= high


_LIMITS = {dtype: _intervals.of_dtype(dtype) for dtype in INTEGERS}


def check_constant(value: Typed, dtype: DType, asked: Callable[[], str]) -> None:
    """Raise where NumPy would: an integer constant too large for an integer type."""
    if isinstance(value, Choice):
        check_constant(value.then, dtype, asked)
        check_constant(value.else_, dtype, asked)
    elif type(value) is int and dtype in INTEGERS and not fits(value, dtype):
        low, high = _LIMITS[dtype]
        raise TypeInferenceError(
            f"the constant {value} is not a value of {dtype_name(dtype)} ({low} to {high})",
            asked=asked(),
            instead="cast an operand to a wider type, as in int64(x)",
        )


def check_operands(node: type, a: Typed, b: Typed, asked: Callable[[], str]) -> None:
    """:func:`check_constant` for both operands of an operation, of which one is typed at least."""
    if node is prim.Power:
        return
    if node is prim.Sum and type(b) is int and b < 0:
        b = -b  # x + (-2) is how a subtraction is written
    if node is not prim.Product or type(a) is not int or a != -1:  # -1*x: how a negation is
        check_constant(a, promote(a, b), asked)
        check_constant(b, promote(a, b), asked)


def no_bool(dtype: DType) -> DType:
    """The type in which NumPy computes ``//``, ``%``, ``**`` and shifts of booleans."""
    return INT8 if dtype == BOOL else dtype


def refuse(what: str, dtype: DType, asked: str, instead: str = "") -> TypeInferenceError:
    """The error that an operation is not defined for a type."""
    return TypeInferenceError(
        f"{what} is not defined for {dtype_name(dtype)}", asked=asked, instead=instead
    )


class Subtraction:
    """The key for ``a - b`` in tables of operations by node type; there is no such node."""


def operation_type(node: type, a: Typed, b: Typed, asked: Callable[[], str]) -> DType:
    """The type of an operation on two operands, of which at least one is typed."""
    if node is prim.Power:
        power = power_type(a, b, asked)
        assert isinstance(power, np.dtype)
        return power
    common = promote(a, b)
    if node is prim.Quotient:
        return float_of(common)
    if node in (prim.Sum, prim.Product):
        return common
    if node is Subtraction:
        if common == BOOL:
            raise refuse("'-'", common, asked(), "two booleans differ where a != b")
        return common
    what = f"'{SYMBOLS[node]}'"
    if node in (prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor):
        if common != BOOL and common not in INTEGERS:
            raise refuse(what, common, asked(), "it works on integers and booleans")
        return common
    if node in (prim.LeftShift, prim.RightShift):
        common = no_bool(common)
        if common not in INTEGERS:
            raise refuse(what, common, asked(), "it works on integers")
        return common
    if common in COMPLEXES:
        raise refuse(what, common, asked(), "complex numbers have no order")
    return common if node in (prim.Min, prim.Max) else no_bool(common)


def check_comparison(a: Typed, symbol: str, b: Typed, asked: Callable[[], str]) -> None:
    """Raise if two operands have no order and ``symbol`` asks for one."""
    if symbol in ("==", "!="):
        return
    for operand in (a, b):
        if type(operand) is complex:
            operand = COMPLEX128
        if isinstance(operand, np.dtype) and operand in COMPLEXES:
            raise refuse(f"'{symbol}'", operand, asked(), "complex numbers have no order")


FOLD: dict[type, Callable[[Any, Any], Any]] = {
    prim.Sum: operator.add,
    Subtraction: operator.sub,
    prim.Product: operator.mul,
    prim.Quotient: _folding.quotient,
    prim.FloorDiv: _folding.floor_division,
    prim.Remainder: _folding.remainder,
    prim.Power: _folding.power,
    prim.LeftShift: _folding.left_shift,
    prim.RightShift: _folding.right_shift,
    prim.BitwiseAnd: operator.and_,
    prim.BitwiseOr: operator.or_,
    prim.BitwiseXor: operator.xor,
    prim.Min: _folding.minimum,
    prim.Max: _folding.maximum,
}
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


LARGEST_BITS = 1024
"""Integers of more bits are no value of any type: float64 ends below 2**1024."""


def _is_huge(function: Callable[..., Any], *values: Any) -> bool:
    """Whether a power or shift of integers is too large to be worth computing."""
    if len(values) != 2 or not all(isinstance(v, int) for v in values):
        return False
    a, b = values
    if function is _folding.left_shift:
        return bool(b > LARGEST_BITS and a != 0)
    if function is _folding.power:
        return bool(b > 1 and abs(a) > 1 and (abs(a).bit_length() - 1) * b > LARGEST_BITS)
    return False


def fold(function: Callable[..., Any], *values: Any, asked: Callable[[], str]) -> Any:
    """``function`` of constants: of :mod:`loopkit._folding`, or Python's where they agree."""
    for at, value in enumerate(values):
        if isinstance(value, Choice):
            before, after = values[:at], values[at + 1 :]
            return Choice(
                value.condition,
                fold(function, *before, value.then, *after, asked=asked),
                fold(function, *before, value.else_, *after, asked=asked),
            )
    late = any(isinstance(value, RunTime) for value in values)
    if late:
        values = tuple(v.kind(1) if isinstance(v, RunTime) else v for v in values)
    try:
        result = None if _is_huge(function, *values) else function(*values)
        if result is None or (isinstance(result, int) and result.bit_length() > LARGEST_BITS):
            raise TypeInferenceError(
                "this constant is larger than all that any type can hold", asked=asked()
            )
        is_late = late and type(result) is not bool
        return run_time(result) if is_late else result
    except (ArithmeticError, ValueError, TypeError) as error:
        raise TypeInferenceError(
            f"this constant cannot be computed: {error}", asked=asked()
        ) from None


def power_type(base: Typed, exponent: Typed, asked: Callable[[], str]) -> Typed:
    """What ``base ** exponent`` gives."""
    if not isinstance(base, np.dtype) and not isinstance(exponent, np.dtype):
        return fold(_folding.power, base, exponent, asked=asked)  # type: ignore[no-any-return]
    common = no_bool(promote(base, exponent))
    if common in INTEGERS and type(exponent) is int and exponent < 0:
        raise TypeInferenceError(
            f"an integer to the power of {exponent} is no integer",
            asked=asked(),
            instead="cast the base to a floating type, as in float32(x)",
        )
    return common
