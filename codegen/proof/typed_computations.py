"""Typed computations in a common form for the printed text and the kernel.

A :class:`Term` is one operation of known type on terms; :mod:`.term_makers` builds them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from loopkit import _promotion as dt
from loopkit._intervals import contains, of_dtype
from loopkit._promotion import DType


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """``op`` of ``args`` in ``dtype``; ``data`` is what the operation is besides.

    ==========  =================================================
    const       ``data`` is the number
    name        a variable without a place in memory: ``data``
    read        ``data`` is the :class:`Read`
    neg add mul div power   ``power`` to the constant ``data``
    fdiv mod    quotient and remainder that round down
    shl shr and or xor inv  on integers
    min max     of any number of operands
    cast        from the operand's type
    complex, part   from two parts, and one of them (``data``)
    record      from its components, of which ``part`` is one
    choice      condition, then, else; ``data`` what the text asks
    cmp         ``data`` is ``<``, ``<=``, ``==`` or ``!=``
    all any not of conditions
    call        of the function ``data``
    ==========  =================================================
    """

    op: str
    dtype: DType
    args: tuple[Term, ...] = ()
    data: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """An element of an array, by subscripts of the text or of the kernel."""

    array: str
    indices: tuple[Any, ...]
    of_text: bool


@lru_cache(maxsize=1024)
def keeps_values(source: DType, target: DType) -> bool:
    """Whether every value of one type is a value of another."""
    if source in (target, dt.BOOL):
        return True
    if target == dt.BOOL or source in dt.COMPLEXES:
        return False
    if target in dt.COMPLEXES:
        return keeps_values(source, dt.real_of(target))
    if source in dt.INTEGERS:
        if target in dt.INTEGERS:
            return contains(of_dtype(target), of_dtype(source))
        return 8 * source.itemsize - (source.kind == "i") <= _DIGITS[target]
    if target in dt.INTEGERS or target in dt.SMALL_FLOATS:
        return False
    return source.itemsize < target.itemsize


_DIGITS = {dt.FLOAT16: 11, dt.BFLOAT16: 8, dt.FLOAT32: 24, dt.FLOAT64: 53}


def const(value: Any, dtype: DType) -> Term:
    """A number as a value of a type: integers wrap around, others are rounded."""
    if dtype == dt.BOOL:
        return Term("const", dtype, (), bool(value))
    if dtype in dt.INTEGERS:
        if isinstance(value, float) and not math.isfinite(value):
            return Term("cast", dtype, (Term("const", dt.FLOAT64, (), value),))
        bits = 8 * dtype.itemsize
        number = int(value) & ((1 << bits) - 1)
        if dtype.kind == "i" and number >> (bits - 1):
            number -= 1 << bits
        return Term("const", dtype, (), number)
    if dtype in dt.COMPLEXES:
        whole = complex(value)
        parts = (_rounded(part, dt.real_of(dtype)) for part in (whole.real, whole.imag))
        return Term("const", dtype, (), complex(*parts))
    return Term("const", dtype, (), _rounded(value, dtype))


def _rounded(value: Any, dtype: DType) -> float:
    with np.errstate(all="ignore"):
        return float(dtype.type(value))


def without_end(x: Term) -> Term:
    """What is computed of integers as if their types had no end: as 64 bits do."""
    if x.dtype not in dt.INTEGERS:
        return x
    if x.op not in _WITHOUT_END:
        return x if x.dtype == dt.INT64 else Term("cast", dt.INT64, (x,))
    asked, parts = (x.args[:1], x.args[1:]) if x.op == "choice" else ((), x.args)
    return Term(x.op, dt.INT64, (*asked, *map(without_end, parts)), x.data)


_WITHOUT_END = frozenset(
    ("neg", "add", "mul", "fdiv", "mod", "shr", "and", "or", "xor", "min", "max", "choice", "cast")
)


def numbers_in(x: Term) -> list[Any] | None:
    """The number that a constant is, or those that a choice is between; None for other terms."""
    if x.op == "const":
        return [x.data]
    if x.op != "choice":
        return None
    parts = [numbers_in(side) for side in x.args[1:]]
    return None if None in parts else [n for part in parts if part is not None for n in part]
