"""Running on a GPU with arrays in host memory: copied in and out at every call.

A call has two halves.  The first arranges the arrays as the program wants them and
needs no GPU; its outcome is a list of `Buffer` objects and numbers.  The second,
`Transfer`, copies them in, launches, waits, and copies out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopkit._program import ArrayParam, Program
from loopkit._run import driver, launch
from loopkit._run.arrays import Layout, numpy_empty
from loopkit._run.fast import packable
from loopkit._run.module import LoadedProgram, Modules, check_grid
from loopkit._run.plan import Resolved


@dataclass(frozen=True, slots=True)
class Buffer:
    """One array of a launch: where its bytes are in host memory, and which way they go.

    One that goes neither way is memory that only the kernel uses.
    """

    address: int
    size: int
    goes_in: bool = False
    comes_out: bool = False


def run(resolved: Resolved, modules: Modules, stream: int | None) -> Any:
    """Copy in, launch, copy out, wait; returns what the call returns.

    A call that fails leaves the caller's arrays as they were.
    """
    device, transfer = driver.device(driver.current_device()), None
    try:
        with device.current():
            loaded = modules.on(frozenset(), device)
            check_grid(loaded.program, resolved.grid, device.target)
            staged = _stage(resolved, loaded.program)
            on_stream: Any = device.stream() if stream is None else contextlib.nullcontext(stream)
            with on_stream as handle:
                transfer = Transfer(loaded, resolved.grid, staged.arguments, handle)
                transfer.run()
    except driver.DriverError as error:
        is_ours = transfer is not None and transfer.launched
        failed = error if is_ours else device.blameless(error)
        raise device.recover(failed, resolved.plan.name) from None
    staged.hand_over()
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


@dataclass
class _Staged:
    """The arguments as the program wants them, and where its results must go."""

    arguments: list[Any]
    #: Results that are not in their arrays yet: the array, and where its elements are.
    elsewhere: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]
    #: Keeps the memory of ``arguments``.
    memory: list[np.ndarray[Any, Any]]

    def hand_over(self) -> None:
        """Bring the results into the arrays of the call."""
        for array, host in self.elsewhere:
            array[...] = host


def _stage(resolved: Resolved, program: Program) -> _Staged:
    arrays = resolved.numpy_arrays()
    staged = _Staged([], [], [])
    for param in program.params:
        if not isinstance(param, ArrayParam):
            staged.arguments.append(packable(param, resolved))
            continue
        layout = resolved.layouts[param.name]
        size = layout.span * param.dtype.itemsize
        if param.role == "scratch" or not size:
            staged.arguments.append(Buffer(0, size))
            continue
        array = arrays[param.name]
        host = _in_layout(array, layout)
        staged.memory.append(host)
        # A written array may be written in part: the rest of it comes back as it was.
        goes_in = param.is_read or param.name in resolved.arrays
        if host is not array:
            if goes_in:
                host[...] = array
            if param.is_written:
                staged.elsewhere.append((array, host))
        buffer = Buffer(int(host.ctypes.data), size, goes_in, param.is_written)
        staged.arguments.append(buffer)
    return staged


def _in_layout(array: np.ndarray[Any, Any], layout: Layout) -> np.ndarray[Any, Any]:
    """``array`` itself, or uninitialised memory of the layout that the program wants."""
    wanted = layout.byte_strides(array.dtype)
    same = all(
        have == want or extent <= 1
        for have, want, extent in zip(array.strides, wanted, array.shape, strict=True)
    )
    return array if same else numpy_empty(layout, array.dtype)
