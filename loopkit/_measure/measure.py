"""``lk.measure``: the time of one launch, measured over many."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import field
from typing import Any

import numpy as np

from loopkit._arguments import flag, joined
from loopkit._cached import cached_property
from loopkit._called import fitting
from loopkit._costs.costs import Costs
from loopkit._costs.counted import costs_of
from loopkit._costs.devices import DEFAULT, DEVICES, Device
from loopkit._costs.roofline import Roofline, SequenceRoofline
from loopkit._costs.texts import rate_text, seconds_text
from loopkit._errors import InvalidArgumentError, LoopkitError
from loopkit._execute import chosen_executor
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._measure.measured_data import Prepared, prepared
from loopkit._measure.turns import (
    LaunchTime,
    Runner,
    launch_lines,
    launch_times,
    launches_for,
    middle,
)
from loopkit._printed import Printed
from loopkit._spelling import shown

Working = Callable[[str], AbstractContextManager[None]]
"""What shows that something is going on, named by a text."""

WARM_UP = 0.05
"""Seconds for which launches run before any is timed: clocks rise, caches and tables fill."""


@dataclass(frozen=True)
class Options:
    """How kernels are measured: see :func:`measure`; ``working`` shows what is going on."""

    seconds: float
    flush_l2: bool
    executor: str
    seed: int
    working: Working


def options_of(
    seconds: float,
    flush_l2: bool,
    executor: str | None,
    seed: int,
    working: Working = lambda text: nullcontext(),
) -> Options:
    """Options that can be; raises :class:`InvalidArgumentError` for others."""
    is_number = isinstance(seconds, int | float | np.floating | np.integer)
    if not is_number or not 0 < seconds < 3600:
        raise InvalidArgumentError(
            f"seconds is a number above 0 and below 3600, and {shown(seconds)} is none"
        )
    flush_l2 = flag("flush_l2", flush_l2)
    return Options(float(seconds), flush_l2, chosen_executor(executor), seed, working)


@dataclass(frozen=True)
class Measurement(Printed):
    """The time of a launch, in seconds, over many.

    ``times`` are single launches where L2 was flushed before each, and else averages over some in
    a row; on the CPU single runs.  ``device`` is None there, and for a GPU of which no rates are
    known.  ``in_place`` names arrays that launches read and write: each begins with their first
    values (each row of launches, where they were timed in a row).  ``made`` names those that were
    filled with random numbers.  ``launches`` says what each of several launches takes of a call,
    measured in further calls.
    """

    kernel: str
    sizes: tuple[tuple[str, int], ...]
    executor: str
    device: Device | None
    times: tuple[float, ...]
    flush_l2: bool
    in_place: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    launches: tuple[LaunchTime, ...] = ()
    source: Kernel = field(compare=False, repr=False, kw_only=True)

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(self.times)

    @property
    def middle(self) -> tuple[float, float]:
        """Between these lies the middle half of all times."""
        return middle(self.times)

    @property
    def fastest(self) -> float:
        """The least time."""
        return min(self.times)

    @cached_property
    def costs(self) -> Costs:
        """What a launch does, on its device; on the CPU, on one that is assumed."""
        return costs_of(self.source, dict(self.sizes), self.device or DEVICES[DEFAULT])

    @cached_property
    def roofline(self) -> Roofline | None:
        """The time that a call takes at least, beside the one measured; None on the CPU."""
        if self.device is None:
            return None
        return self.costs.roofline.beside(self.seconds)

    @property
    def share(self) -> float | None:
        """The share of the roofline that is reached; None where there is no roofline."""
        return None if self.roofline is None else self.roofline.share

    @property
    def bandwidth(self) -> float:
        """Bytes a second of what must be moved: inputs and outputs, each once."""
        return self.costs.roofline.moved / self.seconds

    @property
    def rate(self) -> float:
        """Arithmetic operations a second."""
        return self.costs.roofline.operations / self.seconds

    def launch_lines(self) -> list[str]:
        """A line for each of several launches: its time, its share, and that of its roofline."""
        bounds: dict[str, float] = {}
        with suppress(LoopkitError):
            if isinstance(self.roofline, SequenceRoofline):
                bounds = {name: one.seconds for name, one in self.roofline.launches}
        return [*launch_lines(self.launches, bounds)]

    def __str__(self) -> str:
        low, high = self.middle
        sizes = ", ".join(f"{name} = {value}" for name, value in self.sizes)
        times = (
            f"{seconds_text(self.seconds)}, the median of {len(self.times)} "
            f"(half of them from {seconds_text(low)} to {seconds_text(high)}, "
            f"the fastest {seconds_text(self.fastest)})"
        )
        lines = [self.kernel + (f" at {sizes}" if sizes else "") + f", {self.where}", times]
        lines += self.launch_lines()
        if self.executor != "cuda":
            lines.append("this does not show how fast a GPU would be")
        else:
            lines += self._rates()
        if self.made:
            lines.append(f"random numbers in {', '.join(self.made)}")
        if self.in_place:
            lines.append(f"updated in place, each time from the start: {', '.join(self.in_place)}")
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def where(self) -> str:
        """What it ran on, in words."""
        if self.executor == "reference":
            return "interpreted on the CPU"
        if self.executor == "host":
            return "on the CPU, its threads one after the other"
        on = "on a GPU of which no rates are known" if self.device is None else self.device.name
        return f"{on}, L2 {'flushed before each launch' if self.flush_l2 else 'left as it is'}"

    def _rates(self) -> list[str]:
        try:
            rates = f"{rate_text(self.rate, 'operations')}, {rate_text(self.bandwidth, 'bytes')}"
            lines = [f"{rates} of those that must be moved"]
            if self.roofline is not None:
                lines.append(
                    f"{self.share:.1%} of the roofline: at least "
                    f"{seconds_text(self.roofline.seconds)}, set by {self.roofline.set_by}"
                )
        except LoopkitError as error:
            return [f"no rates: {error.why}"]
        return lines


@fitting
def measure(
    kernel: Kernel,
    arguments: Mapping[str, Any] | None = None,
    /,
    *,
    flush_l2: bool = True,
    seconds: float = 0.5,
    executor: str | None = None,
    seed: int = 0,
    **more: Any,
) -> Measurement:
    """Measure the time of a launch: the median of many, after a warm-up.

    :arg arguments: arrays and sizes by name; ``more`` are such, too.  Arrays that the kernel reads
        and that are not there get random numbers, which obey what the kernel asserts of them.
        Nothing of the caller's is written: what the kernel writes goes to memory of our own, and
        what it updates in place begins each time with the values that were passed.
    :arg flush_l2: whether other data fill the GPU's L2 before each launch, and each is timed on its
        own.  Otherwise launches follow each other, and find there what the one before left.
    :arg seconds: about how long to measure, beside compiling and the warm-up.
    :arg executor: where: ``"cuda"`` (events on the GPU), ``"host"`` or ``"reference"`` (the CPU's
        clock; these say nothing of a GPU); the best there is, if it is left out.
    :arg seed: of the random numbers.
    :returns: a :class:`Measurement`.
    :raises InvalidArgumentError: for sizes that are missing, for index arrays of which nothing is
        asserted and that were not passed, and for options that cannot be.
    :raises MissingDependencyError: if ``"cuda"`` was asked for and there is no GPU.
    """
    given = together(arguments, more)
    return measured(kernel, given, options_of(seconds, flush_l2, executor, seed))


def measured(kernel: Kernel, given: Mapping[str, Any], options: Options) -> Measurement:
    """:func:`measure` with its options."""
    if not isinstance(kernel, Kernel):
        raise InvalidArgumentError(f"measure takes a kernel, and {shown(kernel)} is none")
    with options.working("making data"):
        ready = prepared(kernel, given, options.seed)
    with ExitStack() as stack:
        with options.working("compiling"):
            run = stack.enter_context(runner(ready, options))
        with options.working("measuring"):
            times = timed(run, options.seconds)
            launches = launch_times(run, ready.kernel, options.seconds / 4)
    return measurement(ready, run, times, options, launches)


def measurement(
    ready: Prepared,
    run: Runner,
    times: list[float],
    options: Options,
    launches: tuple[LaunchTime, ...],
) -> Measurement:
    """What was measured of a kernel."""
    return Measurement(
        kernel=ready.kernel.name,
        sizes=tuple(sorted(ready.sizes.items())),
        executor=run.executor,
        device=run.described,
        times=tuple(times),
        flush_l2=options.flush_l2 and run.executor == "cuda",
        in_place=run.in_place,
        made=ready.made,
        launches=launches,
        source=ready.kernel,
    )


def timed(run: Runner, seconds: float) -> list[float]:
    """Seconds of launches, for about so long, after a warm-up."""
    each = warm(run)
    launches = launches_for(each)
    found: list[float] = []
    begin = time.perf_counter()
    while not found or time.perf_counter() - begin < seconds:
        times = run.slot(launches)
        run.wait()
        found += times()
    return found


def warm(run: Runner) -> float:
    """Launch for a while; the seconds that one took, all that goes with it included."""
    begin = time.perf_counter()
    launches, each = 1, 0.0
    while True:
        start = time.perf_counter()
        times = run.slot(launches)
        run.wait()
        times()
        now = time.perf_counter()
        each = (now - start) / launches
        if now - begin >= WARM_UP:
            return each
        launches = launches_for(each)


def runner(ready: Prepared, options: Options) -> AbstractContextManager[Runner]:
    """A kernel that can be launched on an executor."""
    if options.executor == "cuda":
        from loopkit._measure.runners import on_gpu
        from loopkit._run import driver

        driver.api()  # says what is missing where there is no GPU
        return on_gpu(ready.kernel, ready.arguments, flush_l2=options.flush_l2)
    else:
        from loopkit._measure.runners import on_host

        return on_host(ready.kernel, ready.arguments, options.executor)


def together(arguments: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """All arguments, none of them twice."""
    if arguments is not None and not isinstance(arguments, Mapping):
        raise InvalidArgumentError(
            f"arguments maps names to arrays and sizes, and {shown(arguments)} does not"
        )
    return joined(arguments, more)
