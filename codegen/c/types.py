"""What C's types are, as the printer spells them."""

from __future__ import annotations

from loopkit._promotion import (
    BFLOAT16,
    BOOL,
    COMPLEX64,
    COMPLEX128,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
)

TYPES: dict[str, DType] = {
    "bool": BOOL,
    "signed char": INT8,
    "unsigned char": UINT8,
    "short": INT16,
    "unsigned short": UINT16,
    "int": INT32,
    "unsigned int": UINT32,
    "unsigned": UINT32,
    "long long": INT64,
    "unsigned long long": UINT64,
    "__half": FLOAT16,
    "__nv_bfloat16": BFLOAT16,
    "float": FLOAT32,
    "double": FLOAT64,
    "lk_complex64": COMPLEX64,
    "lk_complex128": COMPLEX128,
}
"""All types that are read; ``char`` and ``long``, which differ between systems, are none."""

C_TYPES: dict[DType, str] = {
    dtype: name for name, dtype in TYPES.items() if name not in ("unsigned",)
}
"""How each type is spelled."""

WORDS = frozenset(word for name in TYPES for word in name.split()) | {"char", "long", "signed"}
"""The words that types are made of."""

PIECES: dict[DType, str] = {
    FLOAT16: "cuda_fp16.h",
    BFLOAT16: "cuda_bf16.h",
    COMPLEX64: "lk_complex64",
    COMPLEX128: "lk_complex128",
}
"""The pieces of the preamble that stand above a function which names a type."""

LITERALS: dict[str, DType] = {
    "bool": BOOL,
    "int": INT32,
    "uint": UINT32,
    "long": INT64,
    "ulong": UINT64,
    "float": FLOAT32,
    "double": FLOAT64,
}
"""What the suffixes of literals say."""
