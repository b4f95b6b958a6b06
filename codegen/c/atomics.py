"""Atomic updates: the device function for each reduction operation and cell type.

Functions without the prefix ``lk_`` are CUDA's own (CUDA C++ Programming Guide, "Atomic
Functions"). The others are defined in the preamble as compare-and-swap loops.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopkit import _promotion as dt
from loopkit._frozen import dataclass
from loopkit._promotion import DType
from loopkit.codegen.c.types import WHOLE


@dataclass(frozen=True)
class Atomic:
    """An atomic function ``f(&cell, value)``: the operator it applies, and the cell types it
    accepts.
    """

    operator: str
    dtypes: frozenset[DType]
    needs: tuple[str, ...]


_WIDE = frozenset((dt.INT32, dt.UINT32, dt.INT64, dt.UINT64))
_NARROW = dt.INTEGERS - _WIDE
_REAL = frozenset((dt.FLOAT32, dt.FLOAT64))
_BITS = {"And": "&=", "Or": "|=", "Xor": "^="}
_ENDS = {"Max": "max=", "Min": "min="}


PUBLISH = "lk_publish"
"""The function that sets a flag behind all that its thread has written."""
PUBLISH_WORD = "lk_publish_word"
"""The function that stores a word of a flag and a value, for others to see."""


def _table() -> Mapping[str, Atomic]:
    native = {
        "atomicAdd": ("+=", (_WIDE - {dt.INT64}) | _REAL | dt.SMALL_FLOATS),
        **{f"atomic{word}": (sign, _WIDE) for word, sign in _ENDS.items()},
        **{f"atomic{word}": (sign, _WIDE - {dt.INT64}) for word, sign in _BITS.items()},
    }
    swapped = {
        "lk_atomic_add": ("+=", _NARROW | {dt.INT64}),
        "lk_atomic_add_parts": ("+=", dt.COMPLEXES),
        "lk_atomic_mul": ("*=", dt.INTEGERS | _REAL),
        "lk_atomic_mul_half": ("*=", dt.SMALL_FLOATS),
        **{f"lk_atomic_{word.lower()}": (sign, _NARROW) for word, sign in _ENDS.items()},
        **{f"lk_atomic_{word.lower()}_real": (sign, _REAL) for word, sign in _ENDS.items()},
        **{
            f"lk_atomic_{word.lower()}_half": (sign, dt.SMALL_FLOATS)
            for word, sign in _ENDS.items()
        },
        **{
            f"lk_atomic_{word.lower()}": (sign, WHOLE - _WIDE | {dt.INT64})
            for word, sign in _BITS.items()
        },
    }
    return {
        **{name: Atomic(sign, frozenset(kinds), ()) for name, (sign, kinds) in native.items()},
        **{
            name: Atomic(sign, frozenset(kinds), (name,)) for name, (sign, kinds) in swapped.items()
        },
        PUBLISH: Atomic("=", frozenset((dt.UINT32,)), (PUBLISH,)),
        PUBLISH_WORD: Atomic("=", frozenset((dt.UINT64,)), (PUBLISH_WORD,)),
    }


ATOMICS = _table()
"""The functions by name."""

OPERATORS = {
    "sum": "+=",
    "product": "*=",
    "max": "max=",
    "min": "min=",
    "bit_and": "&=",
    "bit_or": "|=",
    "bit_xor": "^=",
    "any": "|=",
    "all": "&=",
}
"""C's operators of updates by the operations of reductions."""
_OF_TRUTH = {"sum": "|=", "product": "&=", "max": "|=", "min": "&="}


def operator_of(operation: str, dtype: DType) -> str:
    """The C operator of a reduction's operation; on truth values it is the bitwise one."""
    of_truth = _OF_TRUTH.get(operation) if dtype == dt.BOOL else None
    return of_truth or OPERATORS[operation]


def function_of(operator: str, dtype: DType) -> str | None:
    """The function that updates a cell of a type; None where there is none."""
    fitting = (n for n, a in ATOMICS.items() if a.operator == operator and dtype in a.dtypes)
    return next(fitting, None)
