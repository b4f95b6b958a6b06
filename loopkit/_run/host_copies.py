"""GPU execution with arrays in host memory, which are copied in and out at every call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from loopkit._frozen import dataclass
from loopkit._program import ArrayParam, ValueParam
from loopkit._run import driver
from loopkit._run import launch_call as launch
from loopkit._run.arrays import numpy_empty
from loopkit._run.fast import packable
from loopkit._run.launch_sequence import calls_of
from loopkit._run.module import Modules
from loopkit._run.plan import Resolved


@dataclass(frozen=True, slots=True)
class Buffer:
    """One array of a launch: its bytes in host memory, and the copies to make.

    The bytes are as the program needs them; ``host`` is the array of the call itself if it has that
    layout.  A buffer without copies is memory that only the kernel uses.  There are ``before``
    bytes in front of the first element, where strides are negative.
    """

    size: int
    array: Any = None
    host: Any = None
    goes_in: bool = False
    comes_out: bool = False
    before: int = 0

    @property
    def address(self) -> int:
        """Where its bytes begin in host memory."""
        return 0 if self.host is None else int(self.host.ctypes.data) - self.before


def run(resolved: Resolved, modules: Modules, stream: int | None) -> Any:
    """Copy in, launch, copy out, wait; returns what the call returns.

    A call that fails leaves the caller's arrays as they were: host memory is written only after
    the kernel has ended well.
    """
    device, launched = driver.device(driver.current_device()), False
    on_stream: Any = device.stream() if stream is None else contextlib.nullcontext(stream)
    try:
        with device.current():
            loaded = modules.on(frozenset(), device)
            name = loaded.program.name
            arguments = [stage(p, resolved) for p in loaded.program.params]
            with on_stream as handle, on_device(arguments, handle) as placed:
                launched = True  # from here on, a failure may be the kernel's own
                for part, grid, own in calls_of(loaded, resolved.values, placed):
                    launch.launcher(part, grid, handle, own, resolved.layouts)()
                device.wait(handle, name)
                doing = f"copying the results of {name} from {device!r}"
                for one, at in zip(arguments, placed, strict=True):
                    if isinstance(one, Buffer) and one.comes_out:
                        to, begin = one.address, at - one.before
                        driver.call("cuMemcpyDtoHAsync", to, begin, one.size, handle, doing=doing)
                device.wait(handle, name)
    except driver.DriverError as error:
        raise device.recover(error if launched else device.blameless(error)) from None
    for one in arguments:
        if isinstance(one, Buffer) and one.comes_out and one.host is not one.array:
            one.array[...] = one.host
    return resolved.result()


@contextlib.contextmanager
def on_device(arguments: Sequence[Any], stream: int) -> Iterator[list[Any]]:
    """The arguments, each `Buffer` as the place of its first element on the device."""
    buffers = [one for one in arguments if isinstance(one, Buffer)]
    with driver.memory(stream, (one.size for one in buffers)) as pointers:
        for one, pointer in zip(buffers, pointers, strict=True):
            if one.goes_in:
                driver.call("cuMemcpyHtoDAsync", pointer, one.address, one.size, stream)
        left = iter(pointers)
        yield [next(left) + a.before if isinstance(a, Buffer) else a for a in arguments]


def stage(param: ArrayParam | ValueParam, resolved: Resolved) -> Any:
    """What a parameter of the program gets: a number, or a `Buffer`."""
    if not isinstance(param, ArrayParam):
        return packable(param, resolved, copied=True)
    layout = resolved.layouts[param.name]
    size = layout.span * param.dtype.itemsize
    if param.is_scratch:
        return Buffer(size)
    array = resolved.numpy_arrays()[param.name]
    if not size:
        return Buffer(0)
    strides = tuple(stride // array.itemsize for stride in array.strides)
    host = array if layout.has(strides) else numpy_empty(layout, array.dtype)
    # A written array may be written in part: the rest of it comes back as it was.
    goes_in = param.is_read or param.name in resolved.arrays
    if goes_in and host is not array:
        host[...] = array
    before = layout.before * param.dtype.itemsize
    return Buffer(size, array, host, goes_in, param.is_written, before)
