"""What is counted from sets is what the hardware counted, as it was recorded."""

from __future__ import annotations

import functools
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import loopkit as lk
from loopkit._costs.costs import Costs

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

ROWS: list[dict[str, Any]] = json.loads(
    (ROOT / "benchmarks" / "results" / "counters.json").read_text(encoding="utf-8")
)["rows"]
KINDS = {
    "sectors loaded": ("global", False),
    "sectors stored": ("global", True),
    "wavefronts loaded": ("shared", False),
    "wavefronts stored": ("shared", True),
}


@functools.cache
def kernels(example: str) -> dict[str, lk.Kernel]:
    made: dict[str, lk.Kernel] = importlib.import_module(example).make()
    return made


def counted(costs: Costs, kind: str) -> int:
    space, is_write = KINDS[kind]
    found = [a.counts for a in costs.accesses if (a.space, a.is_write) == (space, is_write)]
    return sum(counts.pieces for counts in found if counts is not None)


@pytest.mark.parametrize("row", ROWS, ids=[f"{r['schedule']} {r['sizes']}" for r in ROWS])
def test_counts_are_the_hardwares(row: dict[str, Any]) -> None:
    example, title = row["schedule"].split(", ", 1)
    costs = kernels(example)[title].costs(**row["sizes"])
    for kind in KINDS:
        mine, its = counted(costs, kind), row["measured"][kind]["pieces"]
        if kind == "wavefronts loaded" and row["why"].get(kind):
            # The compiler joins loads of neighbours, and keeps in registers what is read again.
            assert mine >= its, kind
        else:
            assert mine == its, kind


def test_most_launches_agree_in_all() -> None:
    assert len(ROWS) == 40
    assert sum(not row["why"] for row in ROWS) > 20
