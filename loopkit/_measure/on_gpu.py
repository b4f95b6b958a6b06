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
from loopkit._kernel import Kernel
from loopkit._measure.events import Clock, flusher
from loopkit._measure.shares import Runner
from loopkit._program import ArrayParam, ValueParam
from loopkit._run import copies, driver
from loopkit._run.arrays import HOST
from loopkit._run.fast import packable
from loopkit._run.launch import launcher
from loopkit._run.module import Modules
from loopkit._run.plan import ArgumentPlan, Resolved
from loopkit._run.sequence import calls_of
from loopkit.codegen.lower import program_of


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
    resolved = ArgumentPlan(modules.program(frozenset())).resolve((), arguments)
    on_host = resolved.location == HOST
    index = driver.current_device() if on_host else resolved.location.index
    device = driver.device(index)
    with device.working(), ExitStack() as stack:
        driver.call("cuCtxSynchronize")
        loaded = modules.on(frozenset() if on_host else resolved.strided, device)
        stream = stack.enter_context(device.stream())
        params = loaded.program.params
        staged = [_staged(param, resolved) for param in params]
        own = [p for p in params if isinstance(p, ArrayParam) and p.role == "argument"]
        written = {p.name: params.index(p) for p in own if p.is_written}
        read = {p.name: written[p.name] for p in own if p.is_written and p.is_read}
        first = [copies.Buffer(staged[n].size) for n in read.values()]
        placed = stack.enter_context(copies.on_device([*staged, *first], stream))

        def begin(n: int) -> int:
            """Where the bytes of a parameter's array begin."""
            return int(placed[n] - staged[n].before)

        def copy(to: int, source: int, size: int) -> None:
            if size:
                driver.call("cuMemcpyDtoDAsync", to, source, size, stream)

        for name, n in written.items():
            if not on_host and name in resolved.arrays:
                copy(begin(n), resolved.arrays[name].byte_range()[0], staged[n].size)
        kept = [*zip(read.values(), placed[len(params) :], strict=True)]
        for n, to in kept:
            copy(to, begin(n), staged[n].size)
        starts = [
            (part.program.name, launcher(part, grid, stream, given, resolved.layouts))
            for part, grid, given in calls_of(loaded, resolved.values, placed[: len(params)])
        ]

        def start() -> None:
            for _, run in starts:
                run()

        def restore() -> None:
            for n, source in kept:
                copy(begin(n), source, staged[n].size)

        def wait() -> None:
            device.wait(stream, "a launch that is measured")

        def fetched(name: str, n: int) -> np.ndarray[Any, Any]:
            size, layout, dtype = staged[n].size, resolved.layouts[name], params[n].dtype
            data = np.empty(max(size, 1), np.uint8)
            if size:
                driver.call("cuMemcpyDtoHAsync", data.ctypes.data, begin(n), size, stream)
            wait()
            if 0 in layout.shape:
                return np.empty(layout.shape, dtype)
            there = None if on_host else resolved.arrays.get(name)
            strides = there.byte_strides if there else layout.byte_strides(dtype)
            return np.ndarray(layout.shape, dtype, data, staged[n].before, strides)

        def outputs() -> dict[str, np.ndarray[Any, Any]]:
            restore()
            start()
            return {name: fetched(name, n) for name, n in written.items()}

        made = Runner(
            *("cuda", start, lambda: starts, partial(Clock, stream), restore, outputs),
            in_place=tuple(read),
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


def _staged(param: ArrayParam | ValueParam, resolved: Resolved) -> Any:
    """What a parameter gets: a number, a buffer, or the place of an array that is only read."""
    if resolved.location == HOST:
        return copies.stage(param, resolved)
    if not isinstance(param, ArrayParam):
        return packable(param, resolved)
    info, layout = resolved.arrays.get(param.name), resolved.layouts[param.name]
    if info is None:
        item = param.dtype.itemsize
        return copies.Buffer(layout.span * item, before=layout.before * item)
    begin, end = info.byte_range()
    return (
        copies.Buffer(end - begin, before=info.pointer - begin)
        if param.is_written
        else info.pointer
    )
