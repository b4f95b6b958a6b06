"""What C's types are, as the printer spells them."""

from __future__ import annotations

from loopkit import _promotion as dt

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

C_TYPES: dict[dt.DType, str] = {
    dtype: name for name, dtype in TYPES.items() if name not in ("unsigned",)
}
"""How each type is spelled."""

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
