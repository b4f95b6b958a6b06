"""Contestants in turns: short slots, each beside slots of the one that they are compared with.

A card at its power limit changes its clock within seconds, so times that were taken one after the
other are worth little. What counts is the median of the ratios of neighbouring slots.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from loopkit._frozen import dataclass

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
