"""C's types as the printer spells them, and C's implicit conversions."""

from __future__ import annotations

from functools import lru_cache

from loopkit import _promotion as dt
from loopkit.codegen.c.errors import UnreadableError


class _Types(dict[str, dt.DType]):
    """Types by name; the name of a record encodes the types of its components."""

    def __missing__(self, name: str) -> dt.DType:
        found = record_called(name)
        if found is None:
            raise KeyError(name)
        return found


class _Names(dict[dt.DType, str]):
    """The names of types; that of a record encodes its components: ``lk_value_f32_index_i64``."""

    def __missing__(self, dtype: dt.DType) -> str:
        parts = [f"{name}_{_SHORT[kind]}" for name, kind in dt.components_of(dtype).items()]
        if not parts:
            raise KeyError(dtype)
        return "_".join(("lk", *parts))


_SHORT = {
    **{dtype: f"{dtype.kind}{8 * dtype.itemsize}" for dtype in dt.DTYPES.values()},
    dt.BOOL: "bool",
    dt.BFLOAT16: "bf16",
}
_LONG = {short: dtype for dtype, short in _SHORT.items()}


def record_called(name: str) -> dt.DType | None:
    """The record type whose components a name encodes, or None if it encodes none."""
    first, *words = name.split("_")
    names, kinds = words[::2], words[1::2]
    if first != "lk" or len(kinds) < 2 or not _LONG.keys() >= {*kinds} or "" in names:
        return None
    found = dict(zip(names, (_LONG[kind] for kind in kinds), strict=False))
    return dt.record_of(found) if len(names) == len(kinds) == len(found) else None


TYPES: dict[str, dt.DType] = _Types(
    {
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
)
"""All types that are read; ``char`` and ``long``, which differ between systems, are none."""

C_TYPES: dict[dt.DType, str] = _Names((t, n) for n, t in TYPES.items() if n != "unsigned")
"""How each type is spelled."""

WHOLE = dt.INTEGERS | {dt.BOOL}
"""The types of whole numbers."""

WORDS = frozenset(word for name in TYPES for word in name.split()) | {"char", "long", "signed"}
"""The words that types are made of, but for those of records."""


def struct_of(dtype: dt.DType) -> str:
    """The definition of a record."""
    parts = (f"{C_TYPES[kind]} {name};" for name, kind in dt.components_of(dtype).items())
    return f"struct {C_TYPES[dtype]} {{ {' '.join(parts)} }};"


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
    """The type in which C computes with a value: types narrower than ``int`` are promoted to it."""
    narrow = dtype == dt.BOOL or (dtype in dt.INTEGERS and dtype.itemsize < 4)
    return dt.INT32 if narrow else dtype


def converts(source: dt.DType, target: dt.DType) -> bool:
    """Whether C converts one type to another implicitly."""
    own = dt.SMALL_FLOATS | dt.COMPLEXES
    return source == target or not any(t in own or dt.components_of(t) for t in (source, target))


@lru_cache(maxsize=1024)
def common(a: dt.DType, b: dt.DType) -> dt.DType:
    """The type in which C computes an operation on two operand types."""
    if dt.components_of(a) or dt.components_of(b):
        raise UnreadableError(f"nothing is computed of {dt.dtype_name(a)} and {dt.dtype_name(b)}")
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
