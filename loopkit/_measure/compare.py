"""``lk.compare``: interleaved measurement of several kernels, after a check of their results."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from loopkit._assertions.assertion_values import in_order
from loopkit._called import fitting
from loopkit._compare import check_same, checked_tolerance
from loopkit._costs.texts import lines_of, seconds_text
from loopkit._errors import InvalidArgumentError, LoopkitError, UnknownNameError, check_known
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._measure.measure import (
    Measurement,
    Options,
    measurement,
    options_of,
    runner,
    together,
    warm,
)
from loopkit._measure.measured_data import Prepared, prepared
from loopkit._measure.turns import (
    SLOT,
    Runner,
    Slots,
    launch_times,
    launches_for,
    middle,
    order,
    paired,
)
from loopkit._printed import Printed
from loopkit._spelling import shown


@dataclass(frozen=True)
class Entry:
    """One of several kernels: its name, its times, and how fast it is beside the first.

    ``ratio`` is the median over neighbouring slots, 2 being twice as fast; the middle half of those
    ratios is ``middle``.  ``errors`` are those of its arrays against the first kernel's,
    ``|this - first| / |first|``.
    """

    name: str
    measurement: Measurement
    ratio: float
    middle: tuple[float, float]
    errors: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Contest(Printed):
    """Measured times of several kernels, relative to the first one."""

    entries: tuple[Entry, ...]

    def __getitem__(self, name: str) -> Entry:
        for entry in self.entries:
            if isinstance(name, str) and entry.name == name:
                return entry
        raise UnknownNameError("kernel", name, [entry.name for entry in self.entries])

    @property
    def fastest(self) -> Entry:
        """The one with the highest ratio."""
        return max(self.entries, key=lambda entry: entry.ratio)

    def __str__(self) -> str:
        first = self.entries[0]
        rows: list[tuple[str, ...]] = [
            ("", "a call", f"beside {first.name}", "of the roofline", "largest error")
        ]
        for entry in self.entries:
            low, high = entry.middle
            ratio = f"{entry.ratio:.3f} ({low:.3f} to {high:.3f})"
            rows.append(
                (
                    entry.name,
                    seconds_text(entry.measurement.seconds),
                    "1" if entry is first else ratio,
                    _share(entry.measurement),
                    "" if entry is first else f"{max(e for _, e in entry.errors):.1e}",
                )
            )
        if not any(row[3] for row in rows[1:]):
            rows = [(*row[:3], *row[4:]) for row in rows]
        lines = [*lines_of(rows, names=1)]
        for entry in self.entries:
            if entry.measurement.launches:
                lines += [f"launches of {entry.name}:", *entry.measurement.launch_lines()]
        return "\n".join([first.measurement.where, *lines])

    __repr__ = __str__


def _share(found: Measurement) -> str:
    try:
        return "" if found.share is None else f"{found.share:.1%}"
    except LoopkitError:
        return ""


@fitting
def compare(
    kernels: Mapping[str, Kernel],
    arguments: Mapping[str, Any] | None = None,
    /,
    *,
    flush_l2: bool = True,
    seconds: float = 0.5,
    executor: str | None = None,
    seed: int = 0,
    tolerance: float | None = None,
    **more: Any,
) -> Contest:
    """Compare the results of kernels, and then their speed.

    They take turns in short slots, each slot beside slots of the first kernel, and what counts is
    the median of the ratios of neighbours: a card that changes its clock changes both.

    :arg kernels: by name; the first is what the others are compared with.
    :arg arguments: as of :func:`measure`, and the other arguments, too; all kernels get the same.
    :arg seconds: about how long each kernel runs.
    :arg flush_l2: as of :func:`measure`.
    :arg executor: as of :func:`measure`.
    :arg seed: as of :func:`measure`.
    :arg more: arguments by name.
    :arg tolerance: the largest relative error of a result; by default what its type allows for.
    :returns: a :class:`Contest`.
    :raises LoopkitError: if results differ, naming the kernel, the array and its worst element; and
        whatever :func:`measure` raises.
    """
    checked = _checked(kernels)
    given = together(arguments, more)
    options = options_of(seconds, flush_l2, executor, seed)
    return compared(checked, given, options, checked_tolerance(tolerance))


def _checked(kernels: Mapping[str, Kernel]) -> dict[str, Kernel]:
    if not isinstance(kernels, Mapping) or len(kernels) < 2:
        raise InvalidArgumentError(
            "compare takes two kernels or more, by name",
            instead='compare({"before": knl, "after": other}, n=4096)',
        )
    for name, kernel in kernels.items():
        if not isinstance(name, str) or not isinstance(kernel, Kernel):
            raise InvalidArgumentError(
                f"compare takes kernels by name, and {shown(name)} names {shown(kernel)}"
            )
    return dict(kernels)


def compared(
    kernels: Mapping[str, Kernel],
    given: Mapping[str, Any],
    options: Options,
    tolerance: float | None = None,
) -> Contest:
    """:func:`compare` with its options."""
    working = options.working
    with working("making data"):
        ready = _prepared(kernels, given, options.seed)
    with ExitStack() as stack:
        runs: dict[str, Runner] = {}
        for name, one in ready.items():
            with working(f"compiling {name}"):
                runs[name] = stack.enter_context(runner(one, options))
        with working("comparing results"):
            errors = _same_results(runs, tolerance)
        with working("measuring"):
            slots = _slots(runs, options.seconds)
            launches = {name: launch_times(run, kernels[name], 0.0) for name, run in runs.items()}
    entries = []
    for name in kernels:
        found = slots[name]
        ratios = found.ratios or [1.0]
        told = measurement(ready[name], runs[name], found.seconds, options, launches[name])
        off = tuple(errors[name].items())
        entries.append(Entry(name, told, statistics.median(ratios), middle(ratios), off))
    return Contest(tuple(entries))


def _prepared(
    kernels: Mapping[str, Kernel], given: Mapping[str, Any], seed: int
) -> dict[str, Prepared]:
    """The arguments of all: each array is the same for all that have it."""
    assertions = in_order((*{a for k in kernels.values() for a in k.assertions},))
    names = {name for kernel in kernels.values() for name in kernel.arg_by_name}
    check_known("argument", given, names)
    shared, found = dict(given), {}
    for name, kernel in kernels.items():
        own = {n: value for n, value in shared.items() if n in kernel.arg_by_name}
        found[name] = prepared(kernel, own, seed, assertions, outputs=True)
        shared |= found[name].arguments
    return found


def _same_results(
    runs: Mapping[str, Runner], tolerance: float | None
) -> dict[str, dict[str, float]]:
    """The errors of all arrays against the first kernel's."""
    (first, run), *others = runs.items()
    expected = run.outputs()
    errors = {first: dict.fromkeys(expected, 0.0)}
    for name, other in others:
        got = other.outputs()
        if got.keys() != expected.keys():
            raise LoopkitError(
                f"'{first}' writes {_listed(expected)}, and '{name}' writes {_listed(got)}"
            )
        try:
            errors[name] = {
                array: check_same(array, value, got[array], tolerance)
                for array, value in expected.items()
            }
        except LoopkitError as error:
            raise LoopkitError(
                f"'{name}' does not compute what '{first}' computes: {error.why}"
            ) from error
    return errors


def _listed(arrays: Mapping[str, np.ndarray[Any, Any]]) -> str:
    return ", ".join(arrays) or "nothing"


def _slots(runs: Mapping[str, Runner], seconds: float) -> dict[str, Slots]:
    """Slots of all, in turns."""
    first = next(iter(runs))
    each = {name: warm(run) for name, run in runs.items()}
    launches = {name: launches_for(one) for name, one in each.items()}
    longest = max(max(SLOT, one) for one in each.values())
    times = []
    for name in order(list(runs), first, max(5, round(seconds / longest))):
        found = runs[name].slot(launches[name])
        runs[name].wait()
        times.append((name, statistics.median(found())))
    return paired(first, times, dict.fromkeys(runs, 1.0))
