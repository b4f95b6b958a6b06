"""Which kind of array an object is: a table of classes by library, and the protocols."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from loopkit._run.arrays import NUMPY, ArrayKind

_kinds: dict[type, ArrayKind | None] = {}


def kind_of(x: Any) -> ArrayKind | None:
    """The kind of ``x``, or None if it is no array."""
    cls = type(x)
    try:
        return _kinds[cls]
    except KeyError:
        kind = _kinds[cls] = _find_kind(cls)
        return kind


def _find_kind(cls: type) -> ArrayKind | None:
    if issubclass(cls, np.ndarray):
        return NUMPY
    for base in cls.__mro__:
        root = base.__module__.partition(".")[0]
        found = KINDS.get((root, base.__name__))
        if found is not None:
            return found()
    if issubclass(cls, np.generic):  # numbers, though they speak DLPack's language
        return None
    from loopkit._run import libraries

    if hasattr(cls, "__cuda_array_interface__"):
        return libraries.CudaArrayInterfaceKind()
    if hasattr(cls, "__dlpack__") and hasattr(cls, "__dlpack_device__"):
        return libraries.DLPackKind()
    return None


@functools.cache
def _torch() -> ArrayKind:
    from loopkit._run.libraries import TorchKind

    return TorchKind()


@functools.cache
def _cupy() -> ArrayKind:
    from loopkit._run.libraries import CupyKind

    return CupyKind()


@functools.cache
def _numba() -> ArrayKind:
    from loopkit._run.libraries import NumbaKind

    return NumbaKind()


@functools.cache
def _jax() -> ArrayKind:
    from loopkit._run.jax_arrays import JaxKind

    return JaxKind()


#: (package, class): how to get the kind.
KINDS: dict[tuple[str, str], Callable[[], ArrayKind]] = {
    ("torch", "Tensor"): _torch,
    ("cupy", "ndarray"): _cupy,
    ("numba", "DeviceNDArray"): _numba,
    ("numba_cuda", "DeviceNDArray"): _numba,
    ("jaxlib", "ArrayImpl"): _jax,
    ("jax", "ArrayImpl"): _jax,
    ("jaxlib", "Array"): _jax,
    ("jax", "Array"): _jax,
    ("jax", "Tracer"): _jax,
}
