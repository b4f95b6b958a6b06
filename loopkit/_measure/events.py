"""Marks on a stream of a GPU, the time between them, and a cache that is emptied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from loopkit._program import ArrayParam, Program, ValueParam
from loopkit._run import driver
from loopkit._run.driver import memory
from loopkit._run.launch import launcher
from loopkit._run.module import load


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
