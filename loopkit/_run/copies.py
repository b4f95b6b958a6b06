"""Running on a GPU with arrays in host memory: copied in and out at every call."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from loopkit._frozen import dataclass
from loopkit._program import ArrayParam, ValueParam, check_grid
from loopkit._run import driver, launch
from loopkit._run.arrays import Layout, numpy_empty
from loopkit._run.fast import packable
from loopkit._run.module import LoadedProgram, Modules
from loopkit._run.plan import Resolved


@dataclass(frozen=True, slots=True)
class Buffer:
    """One array of a launch: its bytes in host memory as the program wants them, and where they go.

    ``host`` is the array of the call itself where that is laid out so.  One that goes neither way
    is memory that only the kernel uses.
    """

    size: int
    array: Any = None
    host: Any = None
    goes_in: bool = False
    comes_out: bool = False

    @property
    def address(self) -> int:
        """Where its bytes are in host memory."""
        return 0 if self.host is None else int(self.host.ctypes.data)


def run(resolved: Resolved, modules: Modules, stream: int | None) -> Any:
    """Copy in, launch, copy out, wait; returns what the call returns.

    A call that fails leaves the caller's arrays as they were.
    """
    device, transfer = driver.device(driver.current_device()), None
    try:
        with device.current():
            loaded = modules.on(frozenset(), device)
            check_grid(loaded.program, resolved.grid, device.target)
            arguments = [_stage(param, resolved) for param in loaded.program.params]
            on_stream: Any = device.stream() if stream is None else contextlib.nullcontext(stream)
            with on_stream as handle:
                transfer = Transfer(loaded, resolved.grid, arguments, handle)
                transfer.run()
    except driver.DriverError as error:
        is_ours = transfer is not None and transfer.launched
        failed = error if is_ours else device.blameless(error)
        raise device.recover(failed) from None
    for one in arguments:
        if isinstance(one, Buffer) and one.comes_out and one.host is not one.array:
            one.array[...] = one.host
    return resolved.result()


class Transfer:
    """One launch with arguments that are in host memory; the device must be current.

    ``launched`` says whether the kernel may have begun.  Host memory is written only
    after the kernel has ended well.
    """

    def __init__(
        self,
        loaded: LoadedProgram,
        grid: tuple[int, int, int],
        arguments: Sequence[Any],
        stream: int,
    ) -> None:
        self.launched = False
        self._loaded = loaded
        self._grid = grid
        self._arguments = arguments
        self._stream = stream
        self._pointers: list[Any] = []

    def run(self) -> None:
        """Copy in, launch, wait, copy out."""
        device, name = self._loaded.device, self._loaded.program.name
        try:
            placed = [self._place(a) if isinstance(a, Buffer) else a for a in self._arguments]
            self.launched = True
            launch.launch(self._loaded, self._grid, self._stream, placed)
            device.wait(self._stream, name)
            for argument, pointer in zip(self._arguments, placed, strict=True):
                if isinstance(argument, Buffer) and argument.comes_out:
                    driver.call(
                        "cuMemcpyDtoHAsync",
                        argument.address,
                        pointer,
                        argument.size,
                        self._stream,
                        doing=f"copying the results of {name} from {device!r}",
                    )
            device.wait(self._stream, name)
        finally:
            self._free()

    def _place(self, buffer: Buffer) -> int:
        """Memory on the device for ``buffer``, filled if it goes in."""
        size, doing = buffer.size, f"allocating {buffer.size} bytes on the device"
        pointer = driver.call("cuMemAllocAsync", max(size, 1), self._stream, doing=doing)
        self._pointers.append(pointer)
        if buffer.goes_in:
            driver.call("cuMemcpyHtoDAsync", pointer, buffer.address, size, self._stream)
        return int(pointer)

    def _free(self) -> None:
        try:
            for pointer in self._pointers:
                driver.call("cuMemFreeAsync", pointer, self._stream)
        except driver.DriverError as error:
            # The context is lost, and the memory with it; the launch's own error says more.
            if error.status not in driver.STICKY and not self._loaded.device.lost:
                raise


def _stage(param: ArrayParam | ValueParam, resolved: Resolved) -> Any:
    """What a parameter of the program gets: a number, or a `Buffer`."""
    if not isinstance(param, ArrayParam):
        return packable(param, resolved)
    layout = resolved.layouts[param.name]
    size = layout.span * param.dtype.itemsize
    if param.role == "scratch" or not size:
        return Buffer(size)
    array = resolved.numpy_arrays()[param.name]
    host = _in_layout(array, layout)
    # A written array may be written in part: the rest of it comes back as it was.
    goes_in = param.is_read or param.name in resolved.arrays
    if goes_in and host is not array:
        host[...] = array
    return Buffer(size, array, host, goes_in, param.is_written)


def _in_layout(array: np.ndarray[Any, Any], layout: Layout) -> np.ndarray[Any, Any]:
    """``array`` itself, or uninitialised memory of the layout that the program wants."""
    wanted = layout.byte_strides(array.dtype)
    same = all(
        have == want or extent <= 1
        for have, want, extent in zip(array.strides, wanted, array.shape, strict=True)
    )
    return array if same else numpy_empty(layout, array.dtype)
