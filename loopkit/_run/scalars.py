"""Scalar arguments: checks of their values, and their conversion to bytes."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np

from loopkit._errors import InvalidArgumentError
from loopkit._promotion import dtype_name, promote


def shown(number: Any) -> str:
    """How messages show a number, which may have more digits than Python prints."""
    try:
        return str(number)
    except ValueError:
        return f"an integer of {number.bit_length()} bits"


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Whether values of ``dtype`` are integers; booleans are not."""
    return dtype.kind in "iu"


def dtype_of_scalar(value: Any) -> np.dtype[Any] | None:
    """The type of a scalar that has one of its own: numbers of Python's have none."""
    found = getattr(value, "dtype", None)
    return found if isinstance(found, np.dtype) else None


def dtype_of_weak(name: str, value: Any, others: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """The type of a number of Python's beside arrays of types ``others``: it is weak.

    One that is no integer has the precision of the arrays of such numbers, if there are any.
    """
    if type(value) not in (bool, int, float, complex):
        raise _not_a(name, "a number", value)
    alike = [t for t in others if t.kind not in "biu"]
    if isinstance(value, int) or not alike:
        own = np.asarray(value).dtype
        if own.kind == "O":
            raise InvalidArgumentError(f"{name} = {shown(value)} fits no type of integers")
        return own
    return promote(reduce(promote, alike), value)


def check_scalar(name: str, value: Any, dtype: np.dtype[Any], origin: str = "") -> Any:
    """``value`` as a Python number that ``dtype`` can hold, or an error that names it."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if is_integer(dtype):
        return _check_integer(name, value, dtype, origin)
    if dtype.kind == "b":
        if isinstance(value, bool | np.bool_):
            return bool(value)
        raise _not_a(name, "True or False", value)
    is_complex = dtype.kind == "c"
    refused: Any = str | bytes if is_complex else str | bytes | complex | np.complexfloating
    try:
        if isinstance(value, refused):
            raise TypeError
        number: Any = complex(value) if is_complex else float(value)
        # A real number may have more bits than Python's.
        fits = is_complex or math.isfinite(number) or value == number or number != number
    except OverflowError:
        fits = False
    except Exception:  # whatever an object says that is no number
        raise _not_a(name, f"a number of type {dtype_name(dtype)}", value) from None
    if fits:
        part = np.dtype(f"f{dtype.itemsize // 2}") if is_complex else dtype
        fits = _fits(number.real, part) and _fits(number.imag, part)
    if not fits:
        raise InvalidArgumentError(f"{name} = {shown(value)} does not fit {dtype_name(dtype)}")
    return number


def _check_integer(name: str, value: Any, dtype: np.dtype[Any], origin: str) -> int:
    what = f"an integer ({dtype_name(dtype)})"
    if isinstance(value, bool):
        raise _not_a(name, what, value)
    try:
        number = operator.index(value)
    except Exception:  # whatever an object says that is no number
        if isinstance(value, float | np.floating):
            raise InvalidArgumentError(f"{name}: {what} is needed, but {value!s} came") from None
        raise _not_a(name, what, value) from None
    limits = np.iinfo(dtype)
    if not limits.min <= number <= limits.max:
        came = f" ({origin})" if origin else ""
        raise InvalidArgumentError(
            f"{name} = {shown(number)}{came} does not fit {dtype_name(dtype)} "
            f"({limits.min} to {limits.max}), the type that the code has for it"
        )
    return number


def _fits(value: float, dtype: np.dtype[Any]) -> bool:
    """Whether ``value`` does not become infinite in ``dtype``."""
    with np.errstate(over="ignore"):
        rounded = float(np.asarray(value).astype(dtype))
    return math.isfinite(rounded) or rounded != rounded or value == rounded


def _not_a(name: str, what: str, value: Any) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{name}: {what} is needed, but an object of type {type(value).__name__} came"
    )


def pack_scalar(value: Any, dtype: np.dtype[Any]) -> bytes:
    """The bytes of ``value`` as the generated function takes them."""
    return np.asarray(value).astype(dtype).tobytes()


# What `struct` can pack by itself, by the letters that it shares with NumPy; it raises where a
# value does not fit.
_CODES = {np.dtype(letter).name: letter for letter in "?bhiqBHIQefd"}


def struct_code(dtype: np.dtype[Any]) -> str:
    """The ``struct`` code for a value: a field of its own, or raw bytes from `pack_scalar`."""
    return _CODES.get(dtype.name, f"{dtype.itemsize}s")


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether `struct_code` packs Python's own numbers, and no bytes."""
    return dtype.name in _CODES
