"""The kinds of arrays of the GPU libraries: PyTorch, CuPy, Numba, and any other.

Each class asks its own library, and nothing else imports one.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np

from loopkit._errors import InvalidArgumentError
from loopkit._hidden import hidden
from loopkit._run.arrays import (
    BFLOAT16,
    HOST,
    NUMPY,
    ArrayInfo,
    ArrayKind,
    Location,
    contiguous_strides,
    element_strides,
    is_masked,
    span,
    unreadable,
)


class TorchKind(ArrayKind):
    """PyTorch's tensors, on a GPU or on the host."""

    name = "PyTorch"
    has_guard = True

    def __init__(self) -> None:
        import torch

        self._torch = torch
        # The private names save half a microsecond a call; the public ones stand behind them.
        self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)

    @functools.cache  # noqa: B019 - there is one instance
    def _numpy_dtype(self, dtype: Any) -> np.dtype[Any]:
        name = str(dtype).removeprefix("torch.")
        if name == "bfloat16":
            return BFLOAT16
        try:
            return np.dtype(name)
        except TypeError:
            import ml_dtypes

            found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
            return found

    def _torch_dtype(self, dtype: np.dtype[Any]) -> Any:
        return getattr(self._torch, "bfloat16" if dtype == BFLOAT16 else dtype.name)

    def describe(self, x: Any, name: str = "the array") -> ArrayInfo:
        if x.layout is not self._torch.strided or x.is_quantized:
            raise InvalidArgumentError(
                f"{name} is a sparse or quantized tensor", instead=f"pass {name}.to_dense()"
            )
        if x.is_conj() or x.is_neg():
            raise InvalidArgumentError(
                f"{name} is a view whose elements PyTorch conjugates or negates when it reads them",
                instead=f"pass {name}.resolve_conj().resolve_neg()",
            )
        device = x.device
        if device.type not in ("cpu", "cuda"):
            raise InvalidArgumentError(f"{name} is on the device '{device}', not on a CUDA device")
        try:
            dtype = self._numpy_dtype(x.dtype)
        except AttributeError:
            raise InvalidArgumentError(f"{name}: there is no NumPy type for {x.dtype}") from None
        location = Location("cuda", device.index) if device.type == "cuda" else HOST
        return ArrayInfo(self, x, x.data_ptr(), tuple(x.shape), x.stride(), dtype, location)

    def empty(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
        location: Location,
    ) -> Any:
        device = self._torch.device(
            "cpu" if location == HOST else f"cuda:{location.index}",
        )
        return self._torch.empty_strided(
            shape, strides, dtype=self._torch_dtype(dtype), device=device
        )

    def allocator(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
        location: Location,
    ) -> Callable[[], Any]:
        device = self._torch.device(f"cuda:{location.index}")
        name = self._torch_dtype(dtype)
        if strides == contiguous_strides(shape):
            return functools.partial(self._torch.empty, shape, dtype=name, device=device)
        return functools.partial(
            self._torch.empty_strided, shape, strides, dtype=name, device=device
        )

    def working_on(self, stream: int, index: int) -> AbstractContextManager[Any]:
        cuda = self._torch.cuda
        made: AbstractContextManager[Any] = cuda.stream(cuda.ExternalStream(stream, device=index))
        return made

    def as_numpy(self, x: Any) -> np.ndarray[Any, Any]:
        result: np.ndarray[Any, Any]
        x = x.detach()
        if x.dtype == self._torch.bfloat16:
            result = x.view(self._torch.int16).numpy().view(BFLOAT16)
        else:
            result = x.numpy()
        return result

    def from_numpy(self, x: np.ndarray[Any, Any]) -> Any:
        if x.dtype == BFLOAT16:
            return self._torch.from_numpy(x.view(np.int16)).view(self._torch.bfloat16)
        return self._torch.from_numpy(x)

    def current_stream(self, index: int) -> int:
        return int(self._torch.cuda.current_stream(index).cuda_stream)

    def stream_source(self, index: int, constants: dict[str, Any]) -> str:
        if self._raw_stream is None:
            return super().stream_source(index, constants)
        constants["_current_stream"] = self._raw_stream
        return f"_current_stream({index})"

    def guard(
        self, var: str, info: ArrayInfo, devices: int, constants: dict[str, Any]
    ) -> list[str]:
        constants[hidden("type", var)] = type(info.object)
        constants[hidden("shape", var)] = info.object.shape
        constants[hidden("strides", var)] = info.strides
        constants[hidden("dtype", var)] = info.object.dtype
        conditions = [
            f"type({var}) is {hidden('type', var)}",
            f"{var}.shape == {hidden('shape', var)}",
            f"{var}.stride() == {hidden('strides', var)}",
            f"{var}.dtype is {hidden('dtype', var)}",
            f"{var}.get_device() == {info.location.index}",
        ]
        if info.dtype.kind == "c":
            conditions.append(f"not {var}.is_conj()")
        elif info.strides != contiguous_strides(info.shape):
            conditions.append(f"not {var}.is_neg()")  # the imaginary part of a conjugate
        return conditions

    def pointer(self, var: str) -> str:
        return f"{var}.data_ptr()"


class CupyKind(ArrayKind):
    """CuPy's arrays."""

    name = "CuPy"
    has_guard = True

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy

    def describe(self, x: Any, name: str = "the array") -> ArrayInfo:
        strides = element_strides(name, x.strides, x.shape, max(x.itemsize, 1))
        location = Location("cuda", int(x.device.id))
        return ArrayInfo(
            self, x, int(x.data.ptr), tuple(x.shape), strides, np.dtype(x.dtype), location
        )

    def empty(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
        location: Location,
    ) -> Any:
        with self._cupy.cuda.Device(location.index):
            if strides == contiguous_strides(shape):
                return self._cupy.empty(shape, dtype)
            flat = self._cupy.empty(span(shape, strides), dtype)
        return self._cupy.ndarray(
            shape, dtype, flat.data, tuple(s * dtype.itemsize for s in strides)
        )

    def working_on(self, stream: int, index: int) -> AbstractContextManager[Any]:
        made: AbstractContextManager[Any] = self._cupy.cuda.ExternalStream(stream, index)
        return made

    def current_stream(self, index: int) -> int:
        return int(self._cupy.cuda.get_current_stream(index).ptr)

    def stream_source(self, index: int, constants: dict[str, Any]) -> str:
        constants["_get_current_stream"] = self._cupy.cuda.get_current_stream
        return f"_get_current_stream({index}).ptr"

    def guard(
        self, var: str, info: ArrayInfo, devices: int, constants: dict[str, Any]
    ) -> list[str]:
        constants[hidden("type", var)] = type(info.object)
        constants[hidden("shape", var)] = info.shape
        constants[hidden("strides", var)] = tuple(info.object.strides)
        constants[hidden("dtype", var)] = info.object.dtype
        conditions = [
            f"type({var}) is {hidden('type', var)}",
            f"{var}.shape == {hidden('shape', var)}",
            f"{var}.strides == {hidden('strides', var)}",
            f"{var}.dtype == {hidden('dtype', var)}",
        ]
        if devices > 1:
            conditions.append(f"{var}.data.device_id == {info.location.index}")
        return conditions

    def pointer(self, var: str) -> str:
        return f"{var}.data.ptr"


class NumbaKind(ArrayKind):
    """Numba's device arrays."""

    name = "Numba"
    has_guard = True

    def describe(self, x: Any, name: str = "the array") -> ArrayInfo:
        from loopkit._run import driver

        pointer = int(x.device_ctypes_pointer.value or 0)
        dtype = np.dtype(x.dtype)
        strides = element_strides(name, x.strides, x.shape, max(dtype.itemsize, 1))
        location = Location("cuda", driver.pointer_device(pointer))
        handle = getattr(x.stream, "handle", 0)
        stream = int(getattr(handle, "value", handle) or 0)
        return ArrayInfo(self, x, pointer, tuple(x.shape), strides, dtype, location, stream=stream)

    def empty(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
        location: Location,
    ) -> Any:
        from numba import cuda

        with cuda.gpus[location.index]:
            return cuda.device_array(
                shape, dtype, strides=tuple(s * dtype.itemsize for s in strides)
            )

    def stream_source(self, index: int, constants: dict[str, Any]) -> str:
        return "0"

    def guard(
        self, var: str, info: ArrayInfo, devices: int, constants: dict[str, Any]
    ) -> list[str]:
        constants[hidden("type", var)] = type(info.object)
        constants[hidden("shape", var)] = info.shape
        constants[hidden("strides", var)] = tuple(info.object.strides)
        constants[hidden("dtype", var)] = info.object.dtype
        conditions = [
            f"type({var}) is {hidden('type', var)}",
            f"{var}.shape == {hidden('shape', var)}",
            f"{var}.strides == {hidden('strides', var)}",
            f"{var}.dtype == {hidden('dtype', var)}",
            f"{var}.stream == {hidden('stream', var)}",
        ]
        constants[hidden("stream", var)] = info.object.stream
        if devices > 1:
            from loopkit._run import driver

            constants["_pointer_device"] = driver.pointer_device
            conditions.append(f"_pointer_device({self.pointer(var)}) == {info.location.index}")
        return conditions

    def pointer(self, var: str) -> str:
        return f"{var}.device_ctypes_pointer.value"


class CudaArrayInterfaceKind(ArrayKind):
    """Any object with ``__cuda_array_interface__``."""

    name = "an object with __cuda_array_interface__"

    def describe(self, x: Any, name: str = "the array") -> ArrayInfo:
        from loopkit._run import driver

        try:
            interface = dict(x.__cuda_array_interface__)
            shape = tuple(operator.index(extent) for extent in interface["shape"])
            pointer, readonly = interface["data"]
            pointer = operator.index(pointer or 0)
            dtype = np.dtype(interface["typestr"])
            strides = interface.get("strides")
            if strides is not None:
                strides = tuple(operator.index(stride) for stride in strides)
        except Exception as error:  # whatever somebody else's object does
            raise unreadable(name, x, "__cuda_array_interface__", error) from error
        if interface.get("mask") is not None:
            raise is_masked(name)
        if strides is None:
            strides = contiguous_strides(shape)
        else:
            strides = element_strides(name, strides, shape, max(dtype.itemsize, 1))
        index = driver.pointer_device(pointer) if pointer else driver.current_device()
        return ArrayInfo(
            self,
            x,
            pointer,
            shape,
            strides,
            dtype,
            Location("cuda", index),
            bool(readonly),
            interface.get("stream"),
        )


# Of the DLPack header: what memory of these devices the CPU or the GPU reads.
_HOST_DEVICES = (1, 3, 11)
_CUDA_DEVICES = (2, 13)


class DLPackKind(ArrayKind):
    """Any object that speaks DLPack and nothing better."""

    name = "an object with __dlpack__"

    def describe(self, x: Any, name: str = "the array") -> ArrayInfo:
        try:
            device_type, index = (int(number) for number in x.__dlpack_device__())
            view: Any = None
            if device_type in _HOST_DEVICES:
                view = np.from_dlpack(x)
            elif device_type in _CUDA_DEVICES:
                from cuda.core.utils import StridedMemoryView

                # The legacy default stream (1): the producer's work is ordered before ours there.
                view = StridedMemoryView.from_dlpack(x, 1)
            dtype: Any = getattr(view, "dtype", None)
        except Exception as error:  # whatever somebody else's object does
            raise unreadable(name, x, "__dlpack__", error) from error
        if view is None:
            raise InvalidArgumentError(f"{name} is neither on the host nor on a CUDA device")
        if device_type in _HOST_DEVICES:
            return replace(NUMPY.describe(view, name), kind=self, object=x)
        shape = tuple(view.shape)
        strides = contiguous_strides(shape) if view.strides is None else tuple(view.strides)
        location = Location("cuda", index)
        return ArrayInfo(
            self, x, view.ptr, shape, strides, dtype, location, view.readonly, stream=1, keep=view
        )
