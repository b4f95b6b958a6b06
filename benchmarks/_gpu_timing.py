"""Timing on the GPU: contestants in short slots, each between two slots of the reference.

A slot is some launches in a row between two CUDA events; whose slot is next, and which slots are
compared, :mod:`loopkit._measure.turns` says.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from loopkit._measure.turns import SLOT, Slots, launches_for, order, paired


@dataclass(frozen=True)
class Contestant:
    """Who runs what: ``work`` of one run, in the unit of its case times seconds."""

    name: str
    run: Callable[[], Any]
    work: float


def compare(
    reference: Contestant | None, contestants: Sequence[Contestant], seconds: float, rest: float
) -> dict[str, Slots]:
    """Slots by name, for about ``seconds`` a contestant; the reference is among them.

    ``rest`` is how long the card idles before each slot. With 0 it is busy throughout.
    """
    everybody = {c.name: c for c in (*contestants, *([reference] if reference else []))}
    launches = {name: _launches(c) for name, c in everybody.items()}
    a_slot = [SLOT if launches[n] > 1 else _seconds(c, 1) for n, c in everybody.items()]
    first = None if reference is None else reference.name
    names = order([c.name for c in contestants], first, max(5, round(seconds / max(a_slot))))
    events = [(name, *_slot(everybody[name], launches[name], rest)) for name in names]
    torch.cuda.synchronize()
    times = [(n, start.elapsed_time(end) / 1e3 / launches[n]) for n, start, end in events]
    return paired(first, times, {name: c.work for name, c in everybody.items()})


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
    return launches_for(_seconds(contestant, 3) / 3)


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
