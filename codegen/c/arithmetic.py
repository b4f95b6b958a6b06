"""C's conversions: what meets in an operation, and what becomes what unasked."""

from __future__ import annotations

from functools import lru_cache

from loopkit import _promotion as dt
from loopkit.codegen.c.errors import UnreadableError


def in_registers(dtype: dt.DType) -> dt.DType:
    """The type in which C computes with a value: ``int`` for what is narrower."""
    narrow = dtype == dt.BOOL or (dtype in dt.INTEGERS and dtype.itemsize < 4)
    return dt.INT32 if narrow else dtype


def converts(source: dt.DType, target: dt.DType) -> bool:
    """Whether C turns one type into another without a function."""
    own = dt.SMALL_FLOATS | dt.COMPLEXES
    return source == target or not (source in own or target in own)


@lru_cache(maxsize=1024)
def common(a: dt.DType, b: dt.DType) -> dt.DType:
    """The type in which C computes with two operands."""
    if a == b and (a in dt.FLOATS or a in dt.COMPLEXES):
        return a
    for kind in (a, b):
        if kind in dt.SMALL_FLOATS:
            raise UnreadableError(f"{a} and {b} do not meet in C")
    if a in dt.COMPLEXES or b in dt.COMPLEXES:
        if a in dt.COMPLEXES and b in dt.COMPLEXES:
            raise UnreadableError(f"{a} and {b} do not meet in C")
        return a if a in dt.COMPLEXES else b
    for kind in (dt.FLOAT64, dt.FLOAT32):
        if kind in (a, b):
            return kind
    a, b = in_registers(a), in_registers(b)
    if dt.UINT64 in (a, b):
        return dt.UINT64
    if dt.INT64 in (a, b):
        return dt.INT64
    return dt.UINT32 if dt.UINT32 in (a, b) else dt.INT32
