"""The launch itself: one call of the driver with arguments prepared in advance.

``cuLaunchKernelEx`` takes a structure with grid, block and stream, the function, and a table of
pointers to the arguments.  A *slot* is one piece of memory that holds the structure, the arguments
and the table, in this order; stream and arguments are written by a single ``struct.pack_into``.
The driver copies the arguments before it returns, so that a slot can be reused right after.

The global interpreter lock is released during the call.  A launch waits while the driver's queue is
full, and the queue may be blocked by a host function in Python that needs the lock.  Releasing it
costs less than a tenth of a microsecond.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopkit._program import ArrayParam
from loopkit._run import driver
from loopkit._run.arrays import Layout
from loopkit._run.module import LoadedProgram

# gridDim, blockDim, sharedMemBytes, padding; then hStream, attrs, numAttrs and padding.
_EXTENTS = "7I4x"
_STREAM = "Q16x"
#: Where the stream stands, and where the arguments begin.
STREAM_OFFSET = 32
ARGUMENTS_OFFSET = 64

#: The memory, the address of the structure, the address of the table.
Slot = tuple[Any, ctypes.c_void_p, ctypes.c_void_p]


@functools.cache
def _driver_function(name: str, loaded_by: type[ctypes.CDLL] = ctypes.CDLL) -> Any:
    """A function of the driver's own library."""
    driver.api()
    library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    return getattr(loaded_by(library), name)


def launch_function() -> Any:
    """``cuLaunchKernelEx(config, function, params, None)`` as a callable.

    It has no ``argtypes`` on purpose: those cost more than the rest of the call.  All
    its arguments must be ``c_void_p`` objects or None.
    """
    return _driver_function("cuLaunchKernelEx")


def call_format(loaded: LoadedProgram) -> str:
    """The ``struct`` format from the stream on: stream, then the arguments."""
    return f"<{_STREAM}8x{loaded.packing.format}"


def new_slot(loaded: LoadedProgram, grid: tuple[int, int, int]) -> Slot:
    """Memory for launches with this grid; stream and arguments are yet to be written."""
    layout = loaded.packing
    table = ARGUMENTS_OFFSET + -(-layout.size // 16) * 16
    memory = (ctypes.c_char * (table + 8 * max(len(layout.offsets), 1)))()
    start = ctypes.addressof(memory)
    block, shared = loaded.program.block, loaded.dynamic_shared
    struct.pack_into(f"<{_EXTENTS}", memory, 0, *grid, *block, shared)
    pointers = [start + ARGUMENTS_OFFSET + offset for offset in layout.offsets]
    struct.pack_into(f"<{len(pointers)}Q", memory, table, *pointers)
    return memory, ctypes.c_void_p(start), ctypes.c_void_p(start + table)


def filled_slot(
    loaded: LoadedProgram, grid: tuple[int, int, int], stream: int, arguments: Sequence[Any]
) -> Slot:
    """A slot ready to be launched with."""
    slot = new_slot(loaded, grid)
    struct.pack_into(call_format(loaded), slot[0], STREAM_OFFSET, stream, *arguments)
    return slot


def launcher(
    loaded: LoadedProgram,
    grid: tuple[int, int, int],
    stream: int,
    arguments: Sequence[Any],
    layouts: Mapping[str, Layout],
) -> Callable[[], None]:
    """A launch with everything laid out beforehand: it takes a microsecond or two.

    What must hold zeros when it begins is cleared before; ``layouts`` are those of the arrays.
    The device must be current.
    """
    if 0 in grid:
        return lambda: None
    slot = filled_slot(loaded, grid, stream, arguments)
    start, function = launch_function(), ctypes.c_void_p(loaded.function)
    found = cleared(loaded, arguments, layouts)

    def run() -> None:
        for pointer, size in found:
            doing = f"clearing {size} bytes for {loaded.program.name}"
            driver.call("cuMemsetD8Async", pointer, 0, size, stream, doing=doing)
        status = start(slot[1], function, slot[2], None)
        if status:
            check(status, loaded)

    return run


def allocated(param: ArrayParam, layout: Layout) -> tuple[Layout, np.dtype[Any]]:
    """How a library is asked for memory: what no caller sees is bytes, whatever they hold."""
    if not param.is_state:
        return layout, param.dtype
    size = max(layout.span * param.dtype.itemsize, 1)
    return Layout((size,), (1,)), np.dtype(np.uint8)


def cleared(
    loaded: LoadedProgram, arguments: Sequence[Any], layouts: Mapping[str, Layout]
) -> list[tuple[Any, int]]:
    """The arguments of a launch that must hold zeros when it begins, each with its bytes."""
    return [
        (argument, layouts[param.name].span * param.dtype.itemsize)
        for param, argument in zip(loaded.program.params, arguments, strict=True)
        if isinstance(param, ArrayParam) and param.role == "cleared"
    ]


def clear_function() -> Any:
    """``cuMemsetD8Async(pointer, value, bytes, stream)`` as a callable."""
    function = _driver_function("cuMemsetD8Async")
    function.argtypes = (ctypes.c_ulonglong, ctypes.c_ubyte, ctypes.c_size_t, ctypes.c_void_p)
    return function


def check(status: int, loaded: LoadedProgram) -> None:
    """Raise what a launch answered, unless it was success."""
    if status:
        raise driver.DriverError(
            f"{loaded.program.name} on {loaded.device!r} failed: {driver.describe_status(status)}",
            status,
        )


@functools.cache
def current_device_function() -> Callable[[], int]:
    """The number of the current device, or -1: quick enough for every call."""
    ask = _driver_function("cuCtxGetDevice", ctypes.PyDLL)

    def current_device() -> int:
        answer = ctypes.c_int(-1)
        return -1 if ask(ctypes.byref(answer)) else answer.value

    return current_device
