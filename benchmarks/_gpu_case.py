"""What a case of `gpu.py` is: one problem, those who solve it, and how results are checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import loopkit as lk

Run = Callable[[], Any]


@dataclass(frozen=True)
class Rival:
    """Somebody else's way: what is run, and ``how`` it was tuned, if it was, asked after a run.

    It writes into the case's output, or ``returns`` what it has computed.
    """

    run: Run
    how: Callable[[], str]
    returns: bool = False


@dataclass(frozen=True)
class Target:
    """At least ``share`` of what the reference reaches in the same run; ``origin`` says why."""

    share: float
    origin: str


@dataclass
class Case:
    """One problem and those who solve it.

    ``kernels`` are loopkit's schedules; those whose names ``counts`` holds are always timed,
    the others with ``--variants``.  A name says for which sizes a schedule is right.  ``arrays``
    are their arguments, the one called ``output`` the result, or several with commas between; it
    holds ``start`` before a run that is checked, if nothing is said NaN, or -1 in integers.
    ``rivals`` write into ``output`` too, or return what they have.  ``work`` is in ``unit`` times
    seconds.  ``against`` are the references, the first that is there counts: a limit of the
    hardware that is measured in the same run (``copy``, ``read``), or a rival.  ``targets`` are of
    the kernels of these names.
    """

    name: str
    size: str
    work: float
    unit: str
    kernels: Mapping[str, lk.Kernel]
    counts: tuple[str, ...]
    arrays: Mapping[str, Any]
    output: str
    check: Callable[[Any], float]
    tolerance: float
    against: tuple[str, ...]
    rivals: Mapping[str, Rival] = field(default_factory=dict)
    targets: Mapping[str, Target] = field(default_factory=dict)
    start: float | None = None

    @property
    def outputs(self) -> tuple[Any, ...]:
        """The arrays that hold the result."""
        return tuple(self.arrays[name.strip()] for name in self.output.split(","))

    def reset(self) -> None:
        """Let nothing stand in the outputs that a run might pass off as its own."""
        for array in self.outputs:
            missing = float("nan") if array.is_floating_point() else -1
            array.fill_(missing if self.start is None else self.start)

    def result(self, returned: Any = None) -> Any:
        """What is checked after a run: one array, or all, or what was returned in their place."""
        if returned is not None:
            return returned
        return self.outputs if len(self.outputs) > 1 else self.outputs[0]


def error(result: Any, expected: Any) -> float:
    """The largest difference, relative to the largest value; not finite where anything is not."""
    difference = (result.double() - expected.double()).abs().max() / expected.double().abs().max()
    return float(difference)


def untuned(run: Run, what: str) -> Rival:
    return Rival(run, lambda: f"untuned: {what}")
