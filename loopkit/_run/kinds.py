"""The array types of the supported libraries, and the recognition of objects.

Each class uses its own library, which nothing else imports.  Objects of unknown libraries are read
through the array protocols that they support.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from loopkit._errors import InvalidArgumentError
from loopkit._promotion import BFLOAT16, dtype_name
from loopkit._run import arrays, driver
from loopkit._run.arrays import HOST, NUMPY, ArrayInfo, ArrayKind, Layout, Location
from loopkit._run.nvrtc import cuda_core


class TorchKind(ArrayKind):
    """PyTorch's tensors, on a GPU or on the host."""

    name = "PyTorch"
    has_guard = True
    traits: ClassVar[Mapping[str, str]] = {
        **ArrayKind.traits,
        "strides": "{}.stride()",
        "device": "{}.get_device()",
    }
    address = "{}.data_ptr()"

    def __init__(self) -> None:
        import torch

        self._torch = torch
        # The private names save half a microsecond a call; the public ones stand behind them.
        self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)

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
            # ml_dtypes registers the types that NumPy lacks.
            dtype = np.dtype(str(x.dtype).removeprefix("torch."))
        except TypeError:
            raise InvalidArgumentError(f"{name}: there is no NumPy type for {x.dtype}") from None
        location = Location("cuda", device.index) if device.type == "cuda" else HOST
        return ArrayInfo(self, x, x.data_ptr(), tuple(x.shape), x.stride(), dtype, location)

    def allocator(
        self, layout: Layout, dtype: np.dtype[Any], location: Location
    ) -> Callable[[], Any]:
        device = self._torch.device(f"cuda:{location.index}")
        element = getattr(self._torch, "bfloat16" if dtype == BFLOAT16 else dtype.name)
        made = {"dtype": element, "device": device}
        if layout.is_contiguous:
            return functools.partial(self._torch.empty, layout.shape, **made)
        return functools.partial(self._torch.empty_strided, layout.shape, layout.strides, **made)

    def working_on(self, stream: int, index: int) -> AbstractContextManager[Any]:
        cuda = self._torch.cuda
        made: AbstractContextManager[Any] = cuda.stream(cuda.ExternalStream(stream, device=index))
        return made

    def as_numpy(self, x: Any) -> np.ndarray[Any, Any]:
        x, is_small = x.detach(), x.dtype == self._torch.bfloat16
        found: np.ndarray[Any, Any] = (x.view(self._torch.int16) if is_small else x).numpy()
        return found.view(BFLOAT16) if is_small else found

    def from_numpy(self, x: np.ndarray[Any, Any]) -> Any:
        if x.dtype == BFLOAT16:
            return self._torch.from_numpy(x.view(np.int16)).view(self._torch.bfloat16)
        return self._torch.from_numpy(x)

    def stream_source(self, index: int, constants: dict[str, Any]) -> str:
        if self._raw_stream is None:
            constants["_current_stream"] = self._torch.cuda.current_stream
            return f"_current_stream({index}).cuda_stream"
        constants["_current_stream"] = self._raw_stream
        return f"_current_stream({index})"

    def guard(
        self, var: str, info: ArrayInfo, devices: int, constants: dict[str, Any]
    ) -> list[str]:
        conditions = super().guard(var, info, devices, constants)
        if info.dtype.kind == "c":
            conditions.append(f"not {var}.is_conj()")
        elif info.strides != arrays.contiguous_strides(info.shape):
            conditions.append(f"not {var}.is_neg()")  # the imaginary part of a conjugate
        return conditions


class CupyKind(ArrayKind):
    """CuPy's arrays."""

    name = "CuPy"
    has_guard = True
    places: ClassVar[Mapping[str, str]] = {"device": "{}.data.device_id"}
    address = "{}.data.ptr"

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy

    def describe(self, x: Any, name: str = "the array") -> ArrayInfo:
        strides = arrays.element_strides(name, x.strides, x.shape, max(x.itemsize, 1))
        location = Location("cuda", int(x.device.id))
        return ArrayInfo(
            self, x, int(x.data.ptr), tuple(x.shape), strides, np.dtype(x.dtype), location
        )

    def empty(self, layout: Layout, dtype: np.dtype[Any], location: Location) -> Any:
        with self._cupy.cuda.Device(location.index):
            if layout.is_contiguous:
                return self._cupy.empty(layout.shape, dtype)
            flat = self._cupy.empty(layout.span, dtype)
        return self._cupy.ndarray(layout.shape, dtype, flat.data, layout.byte_strides(dtype))

    def working_on(self, stream: int, index: int) -> AbstractContextManager[Any]:
        made: AbstractContextManager[Any] = self._cupy.cuda.ExternalStream(stream, index)
        return made

    def stream_source(self, index: int, constants: dict[str, Any]) -> str:
        constants["_get_current_stream"] = self._cupy.cuda.get_current_stream
        return f"_get_current_stream({index}).ptr"


class JaxKind(ArrayKind):
    """JAX's arrays, which cannot be written: every result is a new array.

    JAX has no stream that others could order their work on, so arguments are waited
    for before the launch, and the results before they are handed out.
    """

    name = "JAX"
    immutable = True
    stream_ordered = False

    def __init__(self) -> None:
        import jax

        self._jax = jax

    def describe(self, x: Any, name: str = "the array") -> ArrayInfo:
        if isinstance(x, self._jax.core.Tracer):
            raise InvalidArgumentError(
                f"{name} is being traced by JAX and has no memory yet",
                instead="call the kernel outside jax.jit, jax.grad and the like",
            )
        devices = list(x.devices())
        if len(devices) != 1:
            raise InvalidArgumentError(
                f"{name} is spread over {len(devices)} devices",
                instead="call the kernel with one device's part of it",
            )
        x.block_until_ready()
        device = devices[0]
        if device.platform not in ("cpu", "gpu", "cuda"):
            raise InvalidArgumentError(f"{name} is on the device '{device}', not a CUDA device")
        location = HOST
        if device.platform != "cpu":
            index = getattr(device, "local_hardware_id", None)
            location = Location("cuda", int(device.id if index is None else index))
        pointer = int(x.addressable_data(0).unsafe_buffer_pointer())
        shape = tuple(x.shape)
        strides = arrays.contiguous_strides(shape)
        return ArrayInfo(self, x, pointer, shape, strides, np.dtype(x.dtype), location, True)

    def empty(self, layout: Layout, dtype: np.dtype[Any], location: Location) -> Any:
        if not layout.is_contiguous and 0 not in layout.shape:
            raise InvalidArgumentError(
                "JAX arrays are row-major without padding, but the kernel's output is not"
            )
        device = next(
            d
            for d in self._jax.local_devices(backend="gpu")
            if getattr(d, "local_hardware_id", d.id) == location.index
        )
        wide = dtype.itemsize > (8 if dtype.kind == "c" else 4)
        if wide and dtype.kind in "iufc" and not self._jax.config.jax_enable_x64:
            raise InvalidArgumentError(
                f"JAX makes no arrays of {dtype.name} unless asked to",
                instead='jax.config.update("jax_enable_x64", True)',
            )
        with self._jax.default_device(device):
            made = self._jax.numpy.empty(layout.shape, dtype)
        return made.block_until_ready()

    def copy(self, x: Any) -> Any:
        return self._jax.numpy.array(x, copy=True).block_until_ready()

    def as_numpy(self, x: Any) -> np.ndarray[Any, Any]:
        return np.asarray(x)

    def from_numpy(self, x: np.ndarray[Any, Any]) -> Any:
        return self._jax.numpy.asarray(x)


class CudaArrayInterfaceKind(ArrayKind):
    """Any object with ``__cuda_array_interface__``."""

    name = "an object with __cuda_array_interface__"

    def describe(self, x: Any, name: str = "the array") -> ArrayInfo:
        try:
            interface = dict(x.__cuda_array_interface__)
            shape, (pointer, readonly) = interface["shape"], interface["data"]
            pointer, strides = operator.index(pointer or 0), interface.get("strides")
            view = arrays.as_if_here(
                shape, interface["typestr"], pointer, strides, readonly=bool(readonly)
            )
        except Exception as error:  # whatever somebody else's object does
            raise arrays.unreadable(name, x, "__cuda_array_interface__", error) from error
        if interface.get("mask") is not None:
            raise arrays.is_masked(name)
        info = NUMPY.describe(view, name)
        index = driver.pointer_device(pointer) if pointer else driver.current_device()
        where, stream = Location("cuda", index), interface.get("stream")
        return replace(info, kind=self, object=x, pointer=pointer, location=where, stream=stream)


class NumbaKind(CudaArrayInterfaceKind):
    """Numba's device arrays."""

    name = "Numba"
    has_guard = True
    address = "{}.device_ctypes_pointer.value"
    traits: ClassVar[Mapping[str, str]] = {**ArrayKind.traits, "stream": "{}.stream"}
    places: ClassVar[Mapping[str, str]] = {"device": f"_pointer_device({address})"}

    def describe(self, x: Any, name: str = "the array") -> ArrayInfo:
        info = super().describe(x, name)  # whose strides are as if no axis had one of 0
        item = max(info.dtype.itemsize, 1)
        return replace(info, strides=arrays.element_strides(name, x.strides, info.shape, item))

    def empty(self, layout: Layout, dtype: np.dtype[Any], location: Location) -> Any:
        from numba import cuda

        with cuda.gpus[location.index]:
            return cuda.device_array(layout.shape, dtype, strides=layout.byte_strides(dtype))

    def guard(
        self, var: str, info: ArrayInfo, devices: int, constants: dict[str, Any]
    ) -> list[str]:
        constants["_pointer_device"] = driver.pointer_device
        return super().guard(var, info, devices, constants)


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
                # The legacy default stream (1): the producer's work is ordered before ours there.
                view = cuda_core().utils.StridedMemoryView.from_dlpack(x, 1)
            dtype: Any = getattr(view, "dtype", None)
        except Exception as error:  # whatever somebody else's object does
            raise arrays.unreadable(name, x, "__dlpack__", error) from error
        if view is None:
            raise InvalidArgumentError(f"{name} is neither on the host nor on a CUDA device")
        if device_type in _HOST_DEVICES:
            return replace(NUMPY.describe(view, name), kind=self, object=x)
        shape = tuple(view.shape)
        strides = arrays.contiguous_strides(shape) if view.strides is None else tuple(view.strides)
        location = Location("cuda", index)
        return ArrayInfo(
            self, x, view.ptr, shape, strides, dtype, location, view.readonly, stream=1, keep=view
        )


#: (package, class): the kind of its objects.
KINDS: dict[tuple[str, str], Callable[[], ArrayKind]] = {
    ("torch", "Tensor"): TorchKind,
    ("cupy", "ndarray"): CupyKind,
    ("numba", "DeviceNDArray"): NumbaKind,
    ("numba_cuda", "DeviceNDArray"): NumbaKind,
    ("jax", "Tracer"): JaxKind,
    **dict.fromkeys(itertools.product(("jax", "jaxlib"), ("ArrayImpl", "Array")), JaxKind),
}
_kinds: dict[type, ArrayKind | None] = {}


def kind_of(x: Any) -> ArrayKind | None:
    """The kind of ``x``, or None if it is no array."""
    cls = type(x)
    try:
        return _kinds[cls]
    except KeyError:
        kind = _kinds[cls] = _find_kind(cls)
        return kind


def info_of(name: str, x: Any, dtype: np.dtype[Any] | None = None) -> ArrayInfo:
    """What ``x`` is, which must be an array; ``dtype`` is what its elements should be."""
    kind = kind_of(x)
    if kind is None:
        wanted = "" if dtype is None else dtype_name(dtype)
        raise InvalidArgumentError(
            f"{name}: an array{wanted and f' of {wanted}'} is needed, but an object of type "
            f"{type(x).__name__} came",
            instead=f"for example, numpy.asarray({name}{wanted and f', dtype={wanted!r}'})",
        )
    return kind.describe(x, name)


def _find_kind(cls: type) -> ArrayKind | None:
    if issubclass(cls, np.ndarray):
        return NUMPY
    for base in cls.__mro__:
        kind = KINDS.get((base.__module__.partition(".")[0], base.__name__))
        if kind is not None:
            return _the(kind)
    if issubclass(cls, np.generic):  # numbers, though they speak DLPack's language
        return None
    if hasattr(cls, "__cuda_array_interface__"):
        return _the(CudaArrayInterfaceKind)
    if hasattr(cls, "__dlpack__") and hasattr(cls, "__dlpack_device__"):
        return _the(DLPackKind)
    return None


@functools.cache
def _the(kind: Callable[[], ArrayKind]) -> ArrayKind:
    return kind()
