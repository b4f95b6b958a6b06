"""Timing on the GPU: contestants in short slots, each between two slots of the reference.

A card at its power limit changes its clock within seconds, so times that were taken one after the
other are worth little. Here a slot is some launches in a row between two CUDA events; slots of the
reference and of a contestant alternate, and what counts is the median of the ratios of neighbours.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

SLOT = 0.015
"""Seconds of a slot; one launch where that takes longer."""


@dataclass(frozen=True)
class Contestant:
    """Who runs what: ``work`` of one run, in the unit of its case times seconds."""

    name: str
    run: Callable[[], Any]
    work: float


@dataclass
class Slots:
    """Milliseconds of one launch, and the rate beside that of the reference, slot by slot."""

    milliseconds: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)


def compare(
    reference: Contestant | None, contestants: Sequence[Contestant], seconds: float, rest: float
) -> dict[str, Slots]:
    """Slots by name, for about ``seconds`` a contestant; the reference is among them.

    ``rest`` is how long the card idles before each slot. With 0 it is busy throughout.
    """
    everybody = [*contestants, *([reference] if reference else [])]
    launches = {c.name: _launches(c) for c in everybody}
    a_slot = {c.name: SLOT if launches[c.name] > 1 else _seconds(c, 1) for c in everybody}
    rounds = max(5, round(seconds / max(a_slot.values())))
    events: list[tuple[Contestant, Any, Any]] = []
    for _ in range(rounds):
        for contestant in contestants:
            if reference is not None:
                events.append((reference, *_slot(reference, launches[reference.name], rest)))
            if contestant is not reference:
                events.append((contestant, *_slot(contestant, launches[contestant.name], rest)))
    if reference is not None:
        events.append((reference, *_slot(reference, launches[reference.name], rest)))
    torch.cuda.synchronize()
    times = [(c, float(start.elapsed_time(end)) / launches[c.name]) for c, start, end in events]
    return paired(reference, times)


def paired(
    reference: Contestant | None, times: Sequence[tuple[Contestant, float]]
) -> dict[str, Slots]:
    """Slots in order as times by name, and as ratios to the slots of the reference beside them."""
    found: dict[str, Slots] = {}
    for number, (contestant, milliseconds) in enumerate(times):
        slots = found.setdefault(contestant.name, Slots())
        slots.milliseconds.append(milliseconds)
        beside = [
            other_time
            for other, other_time in times[max(0, number - 1) : number + 2]
            if other is reference and contestant is not reference
        ]
        if reference is not None and beside:
            rate = contestant.work / milliseconds
            slots.ratios.append(rate / (reference.work / statistics.fmean(beside)))
    return found


def _seconds(contestant: Contestant, launches: int) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(launches):
        contestant.run()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def _launches(contestant: Contestant) -> int:
    """How many launches fill a slot; the first few warm up."""
    _seconds(contestant, 2)
    return max(1, min(500, round(SLOT / (_seconds(contestant, 3) / 3))))


def _slot(contestant: Contestant, launches: int, rest: float) -> tuple[Any, Any]:
    if rest:
        torch.cuda.synchronize()
        time.sleep(rest)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(launches):
        contestant.run()
    end.record()
    return start, end


CLOCKS = {
    "clocks.sm": "SM MHz",
    "clocks.mem": "memory MHz",
    "clocks.max.sm": "SM MHz at most",
    "power.draw": "W",
    "power.limit": "W at most",
    "temperature.gpu": "°C",
}


def clocks() -> dict[str, str]:
    """Clocks, power and temperature of the first GPU now; empty where nobody tells."""
    query = [
        "nvidia-smi",
        "--id=0",
        f"--query-gpu={','.join(CLOCKS)}",
        "--format=csv,noheader,nounits",
    ]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return {}
    values = [value.strip() for value in done.stdout.splitlines()[0].split(",")]
    return dict(zip(CLOCKS.values(), values, strict=True))


def told(state: dict[str, str]) -> str:
    """Clocks in one line."""
    return ", ".join(f"{value} {unit}" for unit, value in state.items()) or "clocks unknown"
