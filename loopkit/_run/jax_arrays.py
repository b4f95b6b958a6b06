"""JAX's arrays, on a GPU or on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopkit._errors import InvalidArgumentError
from loopkit._run.arrays import HOST, ArrayInfo, ArrayKind, Location, contiguous_strides


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
        return ArrayInfo(
            self, x, pointer, shape, contiguous_strides(shape), np.dtype(x.dtype), location, True
        )

    def empty(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
        location: Location,
    ) -> Any:
        if strides != contiguous_strides(shape) and 0 not in shape:
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
            made = self._jax.numpy.empty(shape, dtype)
        return made.block_until_ready()

    def copy(self, x: Any) -> Any:
        return self._jax.numpy.array(x, copy=True).block_until_ready()

    def as_numpy(self, x: Any) -> np.ndarray[Any, Any]:
        return np.asarray(x)

    def from_numpy(self, x: np.ndarray[Any, Any]) -> Any:
        return self._jax.numpy.asarray(x)
