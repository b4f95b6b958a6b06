"""Timed launches of a kernel under equal conditions, on a GPU or on the CPU.

The arrays that a kernel updates are private copies, whose contents are restored for each timing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from loopkit._costs.devices import Device, attribute, device_here
from loopkit._errors import InvalidArgumentError
from loopkit._execute import executor
from loopkit._kernel import Kernel
from loopkit._measure.turns import Runner
from loopkit._program import ArrayParam, Program, ValueParam
from loopkit._run import driver
from loopkit._run import host_copies as copies
from loopkit._run.arrays import HOST, Layout, numpy_empty
from loopkit._run.driver import memory
from loopkit._run.fast import packable
from loopkit._run.host import HostExecutor
from loopkit._run.launch_call import launcher
from loopkit._run.launch_sequence import calls_of
from loopkit._run.module import Modules, load
from loopkit._run.plan import ArgumentPlan, Resolved
from loopkit.codegen.lower import program_of


class Clock:
    """Marks on a stream, in pairs; the device must be current."""

    def __init__(self, stream: int, pairs: int) -> None:
        self._stream = stream
        self._events = [driver.call("cuEventCreate", 0) for _ in range(2 * pairs)]
        self._marked = 0

    def mark(self) -> None:
        """The next mark."""
        driver.call("cuEventRecord", self._events[self._marked], self._stream)
        self._marked += 1

    def seconds(self) -> list[float]:
        """The time of each pair, once all marks have been reached; asked for once."""
        events = self._events
        times = [
            float(driver.call("cuEventElapsedTime", *events[n : n + 2])) / 1e3
            for n in range(0, self._marked, 2)
        ]
        for event in events:
            driver.call("cuEventDestroy", event)
        return times


_READ_ALL = """\
extern "C" __global__ void read_all(int const n, float4 const *data, float *result)
{
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        float4 const one = data[i];
        sum += one.x + one.y + one.z + one.w;
    }
    if (sum == 0.123f)  // it is not; the compiler cannot know
        *result = sum;
}
"""
_FLOAT = np.dtype(np.float32)
_PROGRAM = Program(
    name="read_all",
    source=_READ_ALL,
    params=(
        ValueParam("n", np.dtype(np.int32)),
        ArrayParam("data", _FLOAT, (), (), True, False),
        ArrayParam("result", _FLOAT, (), (), False, True),
    ),
    grid=(2048, 1, 1),
    block=(256, 1, 1),
)


@contextmanager
def flusher(device: driver.Device, stream: int, l2: int) -> Iterator[Callable[[], None]]:
    """What fills L2 with other data: it reads four times as much as L2 holds.

    To read leaves nothing there that would have to be written back later, beside what is timed.
    """
    loaded = load(_PROGRAM, device)
    size = 4 * max(l2, 1 << 20) // 16 * 16
    with memory(stream, [size, 4]) as (data, result):
        driver.call("cuMemsetD8Async", data, 1, size, stream)
        yield launcher(loaded, (2048, 1, 1), stream, [size // 16, data, result], {})
        device.wait(stream, _PROGRAM.name)


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


class CpuClock:
    """The CPU's clock."""

    def __init__(self, pairs: int) -> None:
        self._marks: list[float] = []

    def mark(self) -> None:
        """The next mark."""
        self._marks.append(time.perf_counter())

    def seconds(self) -> list[float]:
        """The time between the marks of each pair."""
        ends = zip(self._marks[::2], self._marks[1::2], strict=True)
        return [end - begin for begin, end in ends]


@contextmanager
def on_host(kernel: Kernel, arguments: Mapping[str, Any], name: str) -> Iterator[Runner]:
    """A kernel ready to be run: compiled, with arrays of its own for what it writes."""
    plan = ArgumentPlan(kernel.program())
    own = dict(arguments)
    resolved = plan.resolve((), own)
    given = resolved.numpy_arrays()
    own |= {name: _copy(given[name], resolved.layouts[name]) for name in plan.outputs}
    runs = executor(kernel, name)
    run = runs.bind(**own)
    turns = partial(iter, ())
    if isinstance(runs, HostExecutor):
        turns = partial(runs.turns, runs.plan.resolve((), own))
    kept = {n: own[n].copy() for n in plan.outputs if plan.arrays[n].is_read}

    def restore() -> None:
        for name, value in kept.items():
            own[name][...] = value

    def outputs() -> dict[str, np.ndarray[Any, Any]]:
        restore()
        run()
        return {name: own[name].copy() for name in plan.outputs}

    yield Runner(name, run, turns, CpuClock, restore, outputs, tuple(kept))


def _copy(array: np.ndarray[Any, Any], layout: Layout) -> np.ndarray[Any, Any]:
    """A copy, laid out as the kernel wants it if the array is."""
    wanted = layout.has(tuple(stride // array.itemsize for stride in array.strides))
    made = numpy_empty(layout, array.dtype) if wanted else np.empty_like(array)
    made[...] = array
    return made
