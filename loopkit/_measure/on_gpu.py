"""Launches of a kernel on a GPU, one like the other: what it writes lies in memory of our own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from loopkit._costs.devices import Device, attribute, device_here
from loopkit._errors import InvalidArgumentError
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._measure.events import Clock, flusher
from loopkit._measure.shares import Runner
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


def _described() -> Device | None:
    """The current device, if its rates are known."""
    try:
        return device_here()
    except InvalidArgumentError:
        return None


@contextmanager
def on_gpu(kernel: Kernel, arguments: Mapping[str, Any], *, flush_l2: bool) -> Iterator[Runner]:
    """A kernel ready to be launched: compiled, its arguments on the device.

    Arrays of the caller's are read where they are, if they are on a GPU, and never written.  Work
    of others on that device is over when this starts.
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
        kept = [home for home in homes if home.kept is not None]

        def start() -> None:
            for _, launch in starts:
                launch()

        def restore() -> None:
            for home in kept:
                driver.call("cuMemcpyDtoDAsync", home.low, home.kept, home.size, stream)

        def wait() -> None:
            device.wait(stream, "a launch that is measured")

        def fetched(home: Home) -> np.ndarray[Any, Any]:
            data = np.empty(max(home.size, 1), np.uint8)
            if home.size:
                driver.call("cuMemcpyDtoHAsync", data.ctypes.data, home.low, home.size, stream)
            wait()
            if 0 in home.shape:
                return np.empty(home.shape, home.dtype)
            return np.ndarray(home.shape, home.dtype, data, home.first - home.low, home.strides)

        def outputs() -> dict[str, np.ndarray[Any, Any]]:
            restore()
            start()
            return {home.name: fetched(home) for home in homes if home.is_written}

        made = Runner(
            *("cuda", start, lambda: starts, partial(Clock, stream), restore, outputs),
            in_place=tuple(home.name for home in kept),
            wait=wait,
            in_a_row=not flush_l2,
            parts=len(starts),
            described=_described(),
        )
        if flush_l2:
            l2 = attribute("L2_CACHE_SIZE", index)
            made = replace(made, flush=stack.enter_context(flusher(device, stream, l2)))
        yield made
        wait()


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
