"""Types drawn for the arrays of a kernel, such that its results compare exactly."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
SMALL_UNSIGNED = UNSIGNED[:3]
HALVES = ("float16", "bfloat16")
FLOATS = (*HALVES, "float32", "float64")
COMPLEX = ("complex64", "complex128")
INDICES = ("int32", "int32", "int32", "int8", "int16", "int64", "uint8", "uint16", "uint32")

#: Whole numbers up to there have no rounding, and sums of some more have none either.
EXACT = {
    "float16": 2**9,
    "bfloat16": 2**6,
    "float32": 2**22,
    "float64": 2**45,
    "complex64": 2**20,
    "complex128": 2**40,
}


@dataclass(frozen=True)
class Theme:
    """Which types the arrays of a kernel may have.

    ``read`` are those of arrays that are only read, ``written`` of all others: no
    floating-point number is written into an integer that cannot hold it.
    """

    read: tuple[str, ...]
    written: tuple[str, ...]
    is_integer: bool
    is_unsigned: bool = False
    is_complex: bool = False

    @property
    def has_halves(self) -> bool:
        """Whether there may be types in which products overflow in some orders of their factors."""
        return not {*HALVES}.isdisjoint((*self.read, *self.written))


_ONE = {t: Theme((t,), (t,), t == "int32") for t in ("int32", "float64")}
_MIXED = Theme((*SIGNED, *SMALL_UNSIGNED), (*SIGNED, *SMALL_UNSIGNED), True)
_UNSIGNED = Theme(UNSIGNED, UNSIGNED, True, is_unsigned=True)
_FLOATS = Theme(FLOATS, FLOATS, False)
_ALL = Theme((*SIGNED, *SMALL_UNSIGNED, *FLOATS), ("float32", "float64"), False)
_COMPLEX = Theme((*COMPLEX, "float32", "int32"), COMPLEX, False, is_complex=True)


def draw_theme(r: random.Random) -> Theme:
    """One type for all arrays, or a mixture."""
    kind = r.random()
    for chance, theme in (
        (0.30, _ONE["int32"]),
        (0.42, _ONE["float64"]),
        (0.66, _MIXED),
        (0.76, _UNSIGNED),
        (0.87, _FLOATS),
        (0.95, _ALL),
        (1.00, _COMPLEX),
    ):
        if kind < chance:
            return theme
    raise AssertionError


def dtype(name: str) -> np.dtype[Any]:
    """NumPy's type of that name; bfloat16 is one of ml_dtypes'."""
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def small_numbers(dtype: np.dtype[Any], rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Whole numbers whose sums and products are exact in ``dtype``."""
    low, high = (0, 14) if dtype.kind == "u" else (-4, 10)
    if dtype.name in HALVES:
        low, high = -1, 3
    values = rng.integers(low, high, shape)
    if dtype.kind == "c":
        return values + 1j * rng.integers(-2, 3, shape)
    return values


def is_exact(values: np.ndarray[Any, np.dtype[Any]], inside: Iterable[str] = ()) -> bool:
    """Whether results are whole numbers far below where their type rounds.

    Or far below where the types of sums ``inside`` do that they are computed of.
    """
    limit = EXACT.get(values.dtype.name)
    if limit is None or not values.size:
        return True
    limit = min(limit, *(EXACT[name] for name in inside if name in EXACT), limit)
    wide = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
    return bool(np.abs(wide).max() < limit)  # not a number compares false
