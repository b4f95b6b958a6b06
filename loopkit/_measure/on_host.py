"""Runs of a kernel on the CPU, one like the other: what it writes are arrays of our own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from loopkit._execute import executor
from loopkit._kernel import Kernel
from loopkit._measure.shares import Runner
from loopkit._run.arrays import Layout, numpy_empty
from loopkit._run.host import HostExecutor
from loopkit._run.plan import ArgumentPlan


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
