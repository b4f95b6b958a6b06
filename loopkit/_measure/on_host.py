"""Runs of a kernel on the CPU, one like the other: what it writes are arrays of our own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from loopkit._execute import executor
from loopkit._kernel import Kernel
from loopkit._run.arrays import Layout, numpy_empty
from loopkit._run.host import HostExecutor
from loopkit._run.plan import ArgumentPlan


class OnHost:
    """A kernel, ready to be run again and again with the same arguments."""

    def __init__(
        self,
        name: str,
        run: Callable[[], Any],
        turns: Callable[[], Iterator[tuple[str, Callable[[], None]]]],
        written: dict[str, Any],
        read: tuple[str, ...],
    ) -> None:
        self.executor = name
        self._run = run
        self._turns = turns
        self._written = written
        self._kept = {name: written[name].copy() for name in read}
        self.in_place = read

    def restore(self) -> None:
        """Give arrays that a run reads and writes what they held at first."""
        for name, value in self._kept.items():
            self._written[name][...] = value

    def slot(self, launches: int) -> Callable[[], list[float]]:
        """Run; what is returned gives the seconds of each."""
        times = []
        for _ in range(launches):
            self.restore()
            begin = time.perf_counter()
            self._run()
            times.append(time.perf_counter() - begin)
        return lambda: times

    def each(self) -> Callable[[], list[tuple[str, float]]]:
        """Run once; what is returned gives the launches, by name, with the seconds of each."""
        self.restore()
        times = []
        for name, start in self._turns():
            begin = time.perf_counter()
            start()
            times.append((name, time.perf_counter() - begin))
        return lambda: times

    def wait(self) -> None:
        """Nothing is left to wait for."""

    def outputs(self) -> dict[str, np.ndarray[Any, Any]]:
        """What one run writes."""
        self.restore()
        self._run()
        return {name: value.copy() for name, value in self._written.items()}


@contextmanager
def on_host(kernel: Kernel, arguments: Mapping[str, Any], name: str) -> Iterator[OnHost]:
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
    both = tuple(n for n in plan.outputs if plan.arrays[n].is_read)
    yield OnHost(name, run, turns, {n: own[n] for n in plan.outputs}, both)


def _copy(array: np.ndarray[Any, Any], layout: Layout) -> np.ndarray[Any, Any]:
    """A copy, laid out as the kernel wants it if the array is."""
    wanted = layout.has(tuple(stride // array.itemsize for stride in array.strides))
    made = numpy_empty(layout, array.dtype) if wanted else np.empty_like(array)
    made[...] = array
    return made
