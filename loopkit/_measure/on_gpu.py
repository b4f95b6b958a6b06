"""Launches of a kernel on a GPU, one like the other: what it writes lies in memory of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np

from loopkit._costs.devices import Device, attribute, device_here
from loopkit._errors import InvalidArgumentError
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._measure.events import Clock, flusher
from loopkit._program import ArrayParam
from loopkit._run import copies, driver
from loopkit._run.arrays import HOST
from loopkit._run.driver import memory
from loopkit._run.launch import launcher
from loopkit._run.module import Modules
from loopkit._run.plan import ArgumentPlan, Resolved
from loopkit._run.sequence import calls_of
from loopkit.codegen.lower import program_of


@dataclass(frozen=True)
class Home:
    """Where an array's bytes lie on the device: from ``low`` on ``size`` of them.

    ``first`` is the address of element 0, ``kept`` a second copy of those bytes as they were, for
    arrays that a launch reads and writes.
    """

    name: str
    low: int
    size: int
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    is_written: bool
    kept: int | None = None


class OnGpu:
    """A kernel, ready to be launched again and again with the same arguments.

    Arrays of the caller's are read where they are, if they are on a GPU, and never written.
    """

    executor = "cuda"

    def __init__(
        self,
        device: driver.Device,
        stream: int,
        starts: Sequence[tuple[str, Callable[[], None]]],
        homes: list[Home],
        flush: Callable[[], None] | None,
    ) -> None:
        self.device = device
        #: What is known of it; None for a GPU of a kind of which no rates are known.
        self.described = _described()
        self.stream = stream
        self._starts = starts
        self._homes = homes
        self._flush = flush
        self.in_place = tuple(home.name for home in homes if home.kept is not None)

    def _start(self) -> None:
        """Launch all of a call, in order."""
        for _, start in self._starts:
            start()

    def each(self) -> Callable[[], list[tuple[str, float]]]:
        """Launch once; what is returned gives the launches, by name, with the seconds of each."""
        clock = Clock(self.stream, len(self._starts))
        self.restore()
        if self._flush is not None:
            self._flush()
        for _, start in self._starts:
            clock.mark()
            start()
            clock.mark()
        names = [name for name, _ in self._starts]
        return lambda: list(zip(names, clock.seconds(), strict=True))

    def restore(self) -> None:
        """Give arrays that a launch reads and writes what they held at first."""
        for home in self._homes:
            if home.kept is not None:
                driver.call("cuMemcpyDtoDAsync", home.low, home.kept, home.size, self.stream)

    def slot(self, launches: int) -> Callable[[], list[float]]:
        """Launch; what is returned gives the seconds of each, or of all on average, afterwards.

        Each is timed on its own where L2 is flushed before it.
        """
        clock = Clock(self.stream, 1 if self._flush is None else launches)
        if self._flush is None:
            self.restore()
            clock.mark()
            for _ in range(launches):
                self._start()
            clock.mark()
            return lambda: [seconds / launches for seconds in clock.seconds()]
        for _ in range(launches):
            self.restore()
            self._flush()
            clock.mark()
            self._start()
            clock.mark()
        return clock.seconds

    def wait(self) -> None:
        """Wait for all launches."""
        self.device.wait(self.stream, "a launch that is measured")

    def outputs(self) -> dict[str, np.ndarray[Any, Any]]:
        """What one launch writes."""
        self.restore()
        self._start()
        return {home.name: self._fetched(home) for home in self._homes if home.is_written}

    def _fetched(self, home: Home) -> np.ndarray[Any, Any]:
        data = np.empty(max(home.size, 1), np.uint8)
        if home.size:
            to = data.ctypes.data
            driver.call("cuMemcpyDtoHAsync", to, home.low, home.size, self.stream)
        self.wait()
        if 0 in home.shape:
            return np.empty(home.shape, home.dtype)
        return np.ndarray(home.shape, home.dtype, data, home.first - home.low, home.strides)


def _described() -> Device | None:
    """The current device, if its rates are known."""
    try:
        return device_here()
    except InvalidArgumentError:
        return None


@contextmanager
def on_gpu(kernel: Kernel, arguments: Mapping[str, Any], *, flush_l2: bool) -> Iterator[OnGpu]:
    """A kernel ready to be launched: compiled, its arguments on the device.

    Work of others on that device is over when this starts.
    """
    modules = Modules(partial(program_of, kernel))
    plan = ArgumentPlan(modules.program(frozenset()))
    resolved = plan.resolve((), arguments)
    on_host = resolved.location == HOST
    index = driver.current_device() if on_host else resolved.location.index
    device = driver.device(index)
    with device.working(), ExitStack() as stack:
        driver.call("cuCtxSynchronize")
        loaded = modules.on(frozenset() if on_host else resolved.strided, device)
        stream = stack.enter_context(device.stream())
        placed: list[Any] = []
        homes = []
        for param in loaded.program.params:
            if not isinstance(param, ArrayParam):
                placed.append(copies.stage(param, resolved))
                continue
            home = stack.enter_context(_home(param, resolved, stream))
            placed.append(home.first)
            if param.role == "argument":
                homes.append(home)
        calls = calls_of(loaded, resolved.values, placed)
        starts = [
            (part.program.name, launcher(part, grid, stream, own, resolved.layouts))
            for part, grid, own in calls
        ]
        flush = None
        if flush_l2:
            l2 = attribute("L2_CACHE_SIZE", index)
            flush = stack.enter_context(flusher(device, stream, l2))
        made = OnGpu(device, stream, starts, homes, flush)
        yield made
        made.wait()


@contextmanager
def _home(param: ArrayParam, resolved: Resolved, stream: int) -> Iterator[Home]:
    """Memory for an array, filled with what goes in; the caller's own if it is only read there."""
    info, layout = resolved.arrays.get(param.name), resolved.layouts[param.name]
    there = info if resolved.location != HOST else None
    item = param.dtype.itemsize
    begin, size, offset = 0, layout.span * item, layout.before * item
    strides = layout.byte_strides(param.dtype)
    if there is not None:
        begin, end = there.byte_range()
        size, offset, strides = end - begin, there.pointer - begin, there.byte_strides
    argument = param.role == "argument"

    def home(low: int, kept: int | None = None) -> Home:
        shape, written = layout.shape, param.is_written
        return Home(param.name, low, size, low + offset, shape, strides, param.dtype, written, kept)

    if there is not None and not param.is_written:
        yield home(begin)
        return
    both = param.is_read and param.is_written and argument
    with memory(stream, [size] * (1 + both)) as (low, *kept):
        if there is not None and size:
            driver.call("cuMemcpyDtoDAsync", low, begin, size, stream)
        elif argument and size and resolved.location == HOST:
            staged = copies.stage(param, resolved)
            if staged.goes_in:
                driver.call("cuMemcpyHtoDAsync", low, staged.address, size, stream)
                # What is copied stays there until it has arrived.
                driver.call("cuStreamSynchronize", stream)
        for to in kept:
            if size:
                driver.call("cuMemcpyDtoDAsync", to, low, size, stream)
        yield home(low, *kept)
