"""What scripts name that is no function of a kernel: targets, types, options, parts of texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymbolic.primitives as prim

import loopkit
from loopkit._promotion import as_dtype, dtype_name


class TargetBase:
    """A target, whatever it was made with: the code is CUDA C in any case."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class CudaTarget(TargetBase):
    """CUDA C, which is what there is."""


class OpenCLTarget(TargetBase):
    """OpenCL in Loopy; CUDA C here."""


class PyOpenCLTarget(OpenCLTarget):
    """OpenCL in Loopy; CUDA C here."""


class CTarget(TargetBase):
    """C in Loopy; CUDA C here, which the host executor compiles for the CPU."""


class ExecutableCTarget(CTarget):
    """C in Loopy; CUDA C here, which the host executor compiles for the CPU."""


class ISPCTarget(TargetBase):
    """ISPC in Loopy; CUDA C here."""


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


def to_loopy_type(dtype: Any, *args: Any, **kwargs: Any) -> np.dtype[Any]:
    """NumPy's type."""
    return as_dtype(dtype)


def Options(**given: Any) -> Any:
    """Options for :func:`make_kernel` and :func:`set_options`: Loopy's, or loopkit's own."""
    own = loopkit.Options.__dataclass_fields__
    return loopkit.Options(**given) if given and given.keys() <= own.keys() else dict(given)


VERSION = (2025, 2)
"""The version of Loopy whose interface this follows."""
MOST_RECENT_LANGUAGE_VERSION = (2018, 2)
"""The version of the language, of which there is one here."""
