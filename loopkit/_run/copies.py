"""Running on a GPU with arrays in host memory: copied in and out at every call."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopkit._program import ArrayParam
from loopkit._run import driver, launch
from loopkit._run.arrays import numpy_empty, span
from loopkit._run.fast import packable
from loopkit._run.module import Modules, check_grid
from loopkit._run.plan import Layout, Resolved


def run(resolved: Resolved, modules: Modules, stream: int | None) -> Any:
    """Copy in, launch, copy out, wait; returns what the call returns."""
    device = driver.device(driver.current_device())
    try:
        with device.current():
            loaded = modules.on(frozenset(), device)
            check_grid(loaded.program, resolved.grid, device.limits)
            if stream is not None:
                return _run(resolved, loaded, stream)
            with device.stream() as own:
                return _run(resolved, loaded, own)
    except driver.DriverError as error:
        raise device.recover(error, resolved.plan.name) from None


class _Memory:
    """Memory on the device in the order of one stream."""

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.pointers: list[Any] = []

    def allocate(self, size: int) -> int:
        doing = f"allocating {size} bytes on the device"
        pointer = driver.call("cuMemAllocAsync", max(size, 1), self.stream, doing=doing)
        self.pointers.append(pointer)
        return int(pointer)

    def free(self) -> None:
        for pointer in self.pointers:
            driver.call("cuMemFreeAsync", pointer, self.stream)


def _run(resolved: Resolved, loaded: Any, stream: int) -> Any:
    arrays = resolved.numpy_arrays()
    memory = _Memory(stream)
    staged: dict[str, np.ndarray[Any, Any]] = {}
    arguments: list[Any] = []
    try:
        for param in loaded.program.params:
            if not isinstance(param, ArrayParam):
                arguments.append(packable(param, resolved))
                continue
            layout = resolved.layouts[param.name]
            size = span(layout.shape, layout.strides) * param.dtype.itemsize
            pointer = memory.allocate(size)
            arguments.append(pointer)
            if param.role == "scratch" or not size:
                continue
            host = staged[param.name] = _in_layout(arrays[param.name], layout)
            # A written array may be written in part: the rest of it comes back as it was.
            if param.is_read or param.name in resolved.arrays:
                if host is not arrays[param.name]:
                    host[...] = arrays[param.name]
                driver.call("cuMemcpyHtoDAsync", pointer, host.ctypes.data, size, stream)
        launch.launch(loaded, resolved.grid, stream, arguments)
        for param, pointer in zip(loaded.program.params, arguments, strict=True):
            if isinstance(param, ArrayParam) and param.is_written and param.name in staged:
                host = staged[param.name]
                layout = resolved.layouts[param.name]
                size = span(layout.shape, layout.strides) * param.dtype.itemsize
                doing = f"{loaded.program.name} on {loaded.device!r}"  # copies wait for it
                driver.call(
                    "cuMemcpyDtoHAsync", host.ctypes.data, pointer, size, stream, doing=doing
                )
        loaded.device.wait(stream, loaded.program.name)
    finally:
        _free(memory)
    for param in resolved.plan.array_params:
        name = param.name
        if param.is_written and name in staged and staged[name] is not arrays[name]:
            arrays[name][...] = staged[name]
    return resolved.result()


def _free(memory: _Memory) -> None:
    try:
        memory.free()
    except driver.DriverError as error:
        # The context is lost, and the memory with it; the launch's own error says more.
        if error.status not in driver.STICKY:
            raise


def _in_layout(array: np.ndarray[Any, Any], layout: Layout) -> np.ndarray[Any, Any]:
    """``array`` itself, or uninitialised memory of the layout that the program wants."""
    itemsize = array.dtype.itemsize
    wanted = tuple(s * itemsize for s in layout.strides)
    same = all(
        have == want or extent <= 1
        for have, want, extent in zip(array.strides, wanted, array.shape, strict=True)
    )
    return array if same else numpy_empty(layout.shape, layout.strides, array.dtype)
