"""What scripts import from ``loopy.symbolic``, for expressions that they make by hand."""

from __future__ import annotations

from typing import Any

import pymbolic.primitives as prim
from pymbolic import parse

from loopkit._expression import variable_names as get_dependencies
from loopkit._promotion import as_dtype, dtype_name

_REDUCE = "reduce"  # a word of the language, and no name


def Reduction(operation: str, inames: Any, expr: Any, allow_simultaneous: bool = False) -> Any:
    """``reduce(operation, inames, expr)``."""
    names = inames.split(",") if isinstance(inames, str) else list(inames)
    over = tuple(prim.Variable(str(name).strip()) for name in names)
    swept = over[0] if len(over) == 1 else over
    terms = expr if isinstance(expr, tuple) else (expr,)
    return prim.Variable(_REDUCE)(prim.Variable(operation), swept, *terms)


def TypeCast(dtype: Any, child: Any) -> Any:
    """``float32(child)``."""
    return prim.Variable(dtype_name(as_dtype(dtype)))(child)


__all__ = ["Reduction", "TypeCast", "get_dependencies", "parse"]
