"""C's conversions: what meets in an operation, and what becomes what unasked."""

from __future__ import annotations

from functools import lru_cache

from loopkit._promotion import (
    BOOL,
    COMPLEXES,
    FLOAT32,
    FLOAT64,
    FLOATS,
    INT32,
    INT64,
    INTEGERS,
    SMALL_FLOATS,
    UINT32,
    UINT64,
    DType,
)
from loopkit.codegen.c.errors import UnreadableError


def in_registers(dtype: DType) -> DType:
    """The type in which C computes with a value: ``int`` for what is narrower."""
    narrow = dtype == BOOL or (dtype in INTEGERS and dtype.itemsize < 4)
    return INT32 if narrow else dtype


def converts(source: DType, target: DType) -> bool:
    """Whether C turns one type into another without a function."""
    own = SMALL_FLOATS | COMPLEXES
    return source == target or not (source in own or target in own)


@lru_cache(maxsize=1024)
def common(a: DType, b: DType) -> DType:
    """The type in which C computes with two operands."""
    if a == b and (a in FLOATS or a in COMPLEXES):
        return a
    for kind in (a, b):
        if kind in SMALL_FLOATS:
            raise UnreadableError(f"{a} and {b} do not meet in C")
    if a in COMPLEXES or b in COMPLEXES:
        if a in COMPLEXES and b in COMPLEXES:
            raise UnreadableError(f"{a} and {b} do not meet in C")
        return a if a in COMPLEXES else b
    for kind in (FLOAT64, FLOAT32):
        if kind in (a, b):
            return kind
    a, b = in_registers(a), in_registers(b)
    if UINT64 in (a, b):
        return UINT64
    if INT64 in (a, b):
        return INT64
    return UINT32 if UINT32 in (a, b) else INT32
