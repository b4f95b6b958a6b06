"""The schedule of a measurement: time slots of several kernels in turns, and times per launch.

A card at its power limit changes its clock within seconds, so that times measured one after the
other are not comparable.  Therefore the result is the median of the ratios of neighbouring slots.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

import numpy as np

from loopkit._costs.devices import Device
from loopkit._costs.texts import seconds_text
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._launches import is_one_launch
from loopkit._relations import grouped

SLOT = 0.015
"""Seconds of a slot; one launch where that takes longer."""

MOST_LAUNCHES = 500
"""Of a slot, so that the driver's queue never is full."""


@dataclass
class Slots:
    """Seconds of one launch, slot by slot, and how fast it is beside the reference: 2 is twice."""

    seconds: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)


def launches_for(seconds: float, slot: float = SLOT) -> int:
    """How many launches of so many seconds fill a slot."""
    return max(1, min(MOST_LAUNCHES, round(slot / max(seconds, 1e-9))))


def middle(values: Sequence[float]) -> tuple[float, float]:
    """Between these lies the middle half of some values."""
    low, _, high = statistics.quantiles([*values] * (1 + (len(values) == 1)), method="inclusive")
    return low, high


def order(names: Sequence[str], reference: str | None, rounds: int) -> Iterator[str]:
    """Whose slot is next: each contestant's stands between two of the reference."""
    for _ in range(rounds):
        for name in names:
            if reference is not None:
                yield reference
            if name != reference:
                yield name
    if reference is not None:
        yield reference


def paired(
    reference: str | None, times: Sequence[tuple[str, float]], work: Mapping[str, float]
) -> dict[str, Slots]:
    """Slots in order, as seconds by name, and as ratios to those of the reference beside them.

    A ratio is one of rates: ``work`` is how much each one does.
    """
    found: dict[str, Slots] = {}
    for number, (name, seconds) in enumerate(times):
        slots = found.setdefault(name, Slots())
        slots.seconds.append(seconds)
        if reference is None or name == reference:
            continue
        beside = [t for other, t in times[max(0, number - 1) : number + 2] if other == reference]
        if beside:
            rate = work[name] / seconds
            slots.ratios.append(rate / (work[reference] / statistics.fmean(beside)))
    return found


LEAST = 3
"""Calls whose launches are timed one by one, at least."""


@dataclass(frozen=True)
class LaunchTime:
    """A launch of a call: its name, how often the call runs it, and the seconds of all these.

    The median of several calls, in which each launch is timed on its own: on a GPU that takes
    a little longer than launches in a row.  ``share`` is that of all launches' times.
    """

    name: str
    times: int
    seconds: float
    share: float


Start = Callable[[], Any]
"""What launches something."""


class Clock(Protocol):
    """Marks in time, in pairs."""

    def mark(self) -> None:
        """The next mark."""

    def seconds(self) -> list[float]:
        """The time between the marks of each pair, once all have been reached."""


@dataclass(frozen=True, eq=False)
class Runner:
    """A kernel that can be launched again and again: on a GPU, or on the CPU.

    ``start`` launches a call, and ``turns`` gives its launches, in order, with their names;
    ``parts`` of them are told apart.  ``clock`` makes a clock for so many pairs of marks.
    ``restore`` gives arrays that a launch reads and writes, ``in_place``, what they held at first;
    ``flush`` fills caches with other data.  Launches of a slot are timed together if they are
    ``in_a_row``.  ``wait`` waits for all launches, and ``outputs`` gives what one launch writes.
    """

    executor: str
    start: Start
    turns: Callable[[], Iterable[tuple[str, Start]]]
    clock: Callable[[int], Clock]
    restore: Start
    outputs: Callable[[], dict[str, np.ndarray[Any, Any]]]
    in_place: tuple[str, ...]
    wait: Start = lambda: None
    flush: Start = lambda: None
    in_a_row: bool = False
    parts: int = 0
    described: Device | None = None

    def slot(self, launches: int) -> Callable[[], list[float]]:
        """Launch so often; after :meth:`wait`, what is returned gives the seconds of each.

        It is their average where they are timed in a row.
        """
        rows = [launches] if self.in_a_row else [1] * launches
        clock = self.clock(len(rows))
        for row in rows:
            self.restore()
            self.flush()
            clock.mark()
            for _ in range(row):
                self.start()
            clock.mark()
        return lambda: [seconds / rows[0] for seconds in clock.seconds()]

    def each(self) -> Callable[[], list[tuple[str, float]]]:
        """Launch a call once; after :meth:`wait`, what is returned gives its launches' seconds.

        Each by the name of its launch, in order; none where they cannot be told apart.
        """
        clock, names = self.clock(self.parts), []
        self.restore()
        self.flush()
        for name, start in self.turns():
            names.append(name)
            clock.mark()
            start()
            clock.mark()
        return lambda: [*zip(names, clock.seconds(), strict=True)]


def launch_times(run: Runner, kernel: Kernel, seconds: float) -> tuple[LaunchTime, ...]:
    """The times of launches, measured for about so long; none of a call that is one launch."""
    if is_one_launch(kernel):
        return ()
    calls: list[dict[str, float]] = []
    counts: dict[str, int] = {}
    begin = time.perf_counter()
    while len(calls) < LEAST or time.perf_counter() - begin < seconds:
        found = run.each()
        run.wait()
        by_name = grouped(found())
        if not by_name:
            return ()
        calls.append({name: sum(times) for name, times in by_name.items()})
        counts = {name: len(times) for name, times in by_name.items()}
    medians = {name: statistics.median(call[name] for call in calls) for name in counts}
    total = sum(medians.values()) or 1.0
    return tuple(
        LaunchTime(name, count, medians[name], medians[name] / total)
        for name, count in counts.items()
    )


def launch_lines(launches: Sequence[LaunchTime], bounds: Mapping[str, float]) -> Iterator[str]:
    """A line for each launch; ``bounds`` are seconds that some take at least, by name."""
    width = max((len(one.name) for one in launches), default=0)
    for one in launches:
        times = f", {one.times:,} times" if one.times > 1 else ""
        roof = (
            f", {bounds[one.name] / one.seconds:.1%} of its roofline" if one.name in bounds else ""
        )
        said = f"{seconds_text(one.seconds):>10}  {one.share:>6.1%} of all{times}{roof}"
        yield f"  {one.name:<{width}}  {said}"
