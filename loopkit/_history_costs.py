"""The change in costs of a launch that each step of a history caused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from loopkit._costs.costs import Costs
from loopkit._costs.counted import costs_of
from loopkit._costs.counts import sum_of
from loopkit._costs.sizes import check_sizes, whole
from loopkit._costs.texts import bytes_text, lines_of, number_text
from loopkit._errors import InvalidArgumentError, LoopkitError, check_known
from loopkit._frozen import dataclass
from loopkit._history import History, Step
from loopkit._kernel import Kernel
from loopkit._printed import Printed


@dataclass(frozen=True)
class StepCosts:
    """The costs of the kernel after a step; ``step`` is None for the original kernel.

    ``costs`` is None where they cannot be counted, and ``why`` is the reason.
    """

    step: Step | None
    costs: Costs | None
    why: str = ""

    @property
    def operations(self) -> int | None:
        """All operations, of all kinds and types."""
        return None if self.costs is None else sum_of(n for _, n in self.costs.operations)

    @property
    def moved(self) -> int | None:
        """Bytes of the sectors that requests to global memory touch; None where data decide."""
        return None if self.costs is None else sum_of(self.costs.moved.values())

    @property
    def wavefronts(self) -> int | None:
        """Passes over the banks of shared memory; None where data decide."""
        if self.costs is None:
            return None
        shared = (a.counts for a in self.costs.accesses if a.space == "shared")
        return sum_of(None if counts is None else counts.pieces for counts in shared)


@dataclass(frozen=True)
class HistoryCosts(Printed):
    """The costs of the original kernel, and after each step, for one choice of sizes."""

    columns: ClassVar[tuple[str, ...]] = (
        *("", "step"),
        *("blocks x threads", "operations", "bytes moved", "wavefronts", "shared"),
    )
    """The heads of the columns of :meth:`rows`; numbers from the third on."""

    sizes: tuple[tuple[str, int], ...]
    stages: tuple[StepCosts, ...]

    def rows(self) -> list[tuple[str, ...]]:
        """A row of text for each stage, under ``columns``."""
        return [_row(number, stage) for number, stage in enumerate(self.stages, -1)]

    def __str__(self) -> str:
        cells = [self.columns, *((row[0], _short(row[1]), *row[2:]) for row in self.rows())]
        head = ", ".join(f"{name} = {value:,}" for name, value in self.sizes)
        return "\n".join(filter(None, [head, *lines_of(cells, names=2)]))

    def _html(self) -> Any:
        from loopkit._display.history import history_costs_html

        return history_costs_html(self)


SHORT = 46
"""Characters of a step in the table as text, which fits on 120 columns then."""


def _short(call: str) -> str:
    return call if len(call) <= SHORT else f"{call[: SHORT - 1]}…"


def _row(place: int, stage: StepCosts) -> tuple[str, ...]:
    step = stage.step
    number, name = ("", "the text") if step is None else (str(place), step.call()[1:])
    if stage.costs is None:
        return number, name, stage.why, *("",) * 4
    costs = stage.costs
    return (
        number,
        name,
        costs.grids,
        _shown(stage.operations, number_text),
        _shown(stage.moved, bytes_text),
        _shown(stage.wavefronts, number_text),
        bytes_text(costs.shared_bytes) if costs.shared_bytes else "",
    )


def _shown(value: int | None, text_of: Callable[[float], str]) -> str:
    return "not known" if value is None else text_of(value) if value else ""


def history_costs(steps: History, sizes: Mapping[str, int]) -> HistoryCosts:
    """The costs before and after each step.

    Raises for sizes that are unknown or missing, and for those that no call of the text may have.
    """
    if not steps:
        raise InvalidArgumentError(
            "no step was made so far, and so none has changed any costs",
            instead="knl.costs(...) counts those of the kernel itself",
        )
    kernels = [steps[0].before, *(step.kernel for step in steps)]
    known = {name for kernel in kernels for name in kernel.sizes}
    check_known("size", sizes, known)
    sizes = {name: whole(name, value) for name, value in sizes.items()}
    check_sizes(kernels[0], _among(kernels[0], sizes), "history.at")
    stages = zip((None, *steps), kernels, strict=True)
    found = tuple(_stage(step, kernel, sizes) for step, kernel in stages)
    return HistoryCosts(tuple(sorted(sizes.items())), found)


def _stage(step: Step | None, kernel: Kernel, sizes: Mapping[str, int]) -> StepCosts:
    try:
        return StepCosts(step, costs_of(kernel, _among(kernel, sizes)))
    except LoopkitError as error:
        return StepCosts(step, None, error.why)


def _among(kernel: Kernel, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes that a kernel has: a step may fix some, or bring some."""
    return {name: value for name, value in sizes.items() if name in kernel.sizes}
