"""C's types, as the printer spells them, and its conversions: what becomes what unasked."""

from __future__ import annotations

from functools import lru_cache

from loopkit import _promotion as dt
from loopkit.codegen.c.errors import UnreadableError

TYPES: dict[str, dt.DType] = {
    "bool": dt.BOOL,
    "signed char": dt.INT8,
    "unsigned char": dt.UINT8,
    "short": dt.INT16,
    "unsigned short": dt.UINT16,
    "int": dt.INT32,
    "unsigned int": dt.UINT32,
    "unsigned": dt.UINT32,
    "long long": dt.INT64,
    "unsigned long long": dt.UINT64,
    "__half": dt.FLOAT16,
    "__nv_bfloat16": dt.BFLOAT16,
    "float": dt.FLOAT32,
    "double": dt.FLOAT64,
    "lk_complex64": dt.COMPLEX64,
    "lk_complex128": dt.COMPLEX128,
}
"""All types that are read; ``char`` and ``long``, which differ between systems, are none."""

C_TYPES: dict[dt.DType, str] = {t: name for name, t in TYPES.items() if name != "unsigned"}
"""How each type is spelled."""

WHOLE = dt.INTEGERS | {dt.BOOL}
"""The types of whole numbers."""

WORDS = frozenset(word for name in TYPES for word in name.split()) | {"char", "long", "signed"}
"""The words that types are made of."""

PIECES: dict[dt.DType, str] = {
    dt.FLOAT16: "cuda_fp16.h",
    dt.BFLOAT16: "cuda_bf16.h",
    dt.COMPLEX64: "lk_complex64",
    dt.COMPLEX128: "lk_complex128",
}
"""The pieces of the preamble that stand above a function which names a type."""

LITERALS: dict[str, dt.DType] = {
    "bool": dt.BOOL,
    "int": dt.INT32,
    "uint": dt.UINT32,
    "long": dt.INT64,
    "ulong": dt.UINT64,
    "float": dt.FLOAT32,
    "double": dt.FLOAT64,
}
"""What the suffixes of literals say."""


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
    own = {a, b} & (dt.SMALL_FLOATS | dt.COMPLEXES)
    if a == b and (own or a in dt.FLOATS):
        return a
    if len(own) == 2 or own & dt.SMALL_FLOATS:
        raise UnreadableError(f"{a} and {b} do not meet in C")
    if own:
        return own.pop()
    a, b = in_registers(a), in_registers(b)
    ranked = (dt.FLOAT64, dt.FLOAT32, dt.UINT64, dt.INT64, dt.UINT32, dt.INT32)
    return next(kind for kind in ranked if kind in (a, b))
