"""Reading a DLPack capsule: for arrays of libraries that loopkit does not know.

The capsule is only looked at, never consumed; its own destructor gives it back.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from loopkit._errors import InvalidArgumentError
from loopkit._run.arrays import (
    BFLOAT16,
    HOST,
    ArrayInfo,
    ArrayKind,
    Location,
    contiguous_strides,
    unreadable,
)


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


# Of the DLPack header: what memory of these devices the CPU or the GPU reads.
_HOST_DEVICES = (1, 3, 11)
_CUDA_DEVICES = (2, 13)
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c"}


def _dtype(name: str, tensor: _Tensor) -> np.dtype[Any]:
    code, bits = int(tensor.code), int(tensor.bits)
    if tensor.lanes == 1:
        if code == 4 and bits == 16:
            return BFLOAT16
        if code == 6 and bits == 8:
            return np.dtype(np.bool_)
        if code in _KINDS and bits % 8 == 0:
            return np.dtype(f"{_KINDS[code]}{bits // 8}")
    raise InvalidArgumentError(
        f"{name} has elements of DLPack type {code} with {bits} bits and {tensor.lanes} lanes, "
        f"which loopkit has no name for"
    )


def describe(kind: ArrayKind, x: Any, name: str) -> ArrayInfo:
    """What ``x`` says of itself through ``__dlpack__``."""
    try:
        device_type, device_id = (int(v) for v in x.__dlpack_device__())
    except Exception as error:  # whatever somebody else's object does
        raise unreadable(name, x, "__dlpack__", error) from error
    if device_type in _HOST_DEVICES:
        location = HOST
    elif device_type in _CUDA_DEVICES:
        location = Location("cuda", device_id)
    else:
        raise InvalidArgumentError(f"{name} is neither on the host nor on a CUDA device")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    try:
        # The legacy default stream (1): the work of the producer is ordered before ours there.
        capsule = x.__dlpack__() if location == HOST else x.__dlpack__(stream=1)
        tensor = _Tensor.from_address(get(capsule, b"dltensor"))
    except Exception as error:
        raise unreadable(name, x, "__dlpack__", error) from error
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = (
        tuple(tensor.strides[i] for i in range(tensor.ndim))
        if tensor.strides
        else contiguous_strides(shape)
    )
    pointer = int(tensor.data or 0) + int(tensor.byte_offset)
    stream = None if location == HOST else 1
    return ArrayInfo(
        kind, x, pointer, shape, strides, _dtype(name, tensor), location, False, stream, capsule
    )
