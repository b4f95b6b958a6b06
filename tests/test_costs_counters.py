"""What is counted from sets is what the hardware counted, as it was recorded."""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from gallery import kernels, load

import loopkit as lk

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
counters: Any = importlib.import_module("counters")

ROWS: list[dict[str, Any]] = json.loads(
    (ROOT / "benchmarks" / "results" / "counters.json").read_text(encoding="utf-8")
)["rows"]


OPEN = {"argmin, a block for a row, loads ahead": "two runs counted 4,111 and 4,117 wavefronts"}
"""Schedules some of whose differences are not explained, and why."""


def costs_of(row: dict[str, Any]) -> Any:
    example, title = row["schedule"].split(", ", 1)
    inputs = load(example).inputs(**row["sizes"])
    return kernels(example)[title].costs(**inputs)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[f"{r['schedule']} {r['sizes']}" for r in ROWS])
def test_counts_are_the_hardwares(row: dict[str, Any]) -> None:
    found = counters.counted(costs_of(row))
    for kind in counters.KINDS:
        mine, its = found[kind]["pieces"], row["measured"][kind]["pieces"]
        assert (mine == its) == (kind not in row["why"]), kind


def test_the_machine_code_explains_all_differences() -> None:
    assert {row["schedule"].split(", ")[0] for row in ROWS} == {*counters.SIZES}
    for row in ROWS:
        is_open = any("not explained" in text for text in row["why"].values())
        assert not is_open or row["schedule"] in OPEN
        for kind in counters.KINDS:
            told = row["why"].get(kind, "")
            if isinstance(row["executed"], str):  # data decide where it goes
                is_by_data = told.startswith("conditions on data") or "look-back" in row["schedule"]
                assert is_open or not told or is_by_data
            elif "wait for one of their cell" not in told and "not explained" not in told:
                made = {key: row["executed"][kind][key] for key in ("pieces", "requests")}
                assert made == row["measured"][kind], (row["schedule"], kind)


@pytest.mark.slow
@pytest.mark.parametrize("example", counters.SIZES)
def test_only_data_keep_costs_open(example: str) -> None:
    for knl in kernels(example).values():
        for sizes in counters.SIZES[example]:
            with contextlib.suppress(lk.InvalidArgumentError):  # full tiles
                found = knl.costs(**sizes, device="H100")
                assert {a.why for a in found.accesses} <= {"", "data decide"}


def test_what_is_not_explained_is_named() -> None:
    found = {r["schedule"] for r in ROWS if any("not explained" in t for t in r["why"].values())}
    assert found == OPEN.keys()


AGAIN = ["matmul, tiled", "stencil_25, planes", "segmented_sum, scheduled", "n_body, scheduled"]


@pytest.mark.slow
@pytest.mark.parametrize("schedule", AGAIN)
def test_machine_code_executed_again(schedule: str) -> None:
    """What the compiler makes of the source that was measured is still what is told of it."""
    row = next(r for r in ROWS if r["schedule"] == schedule)
    example, title = schedule.split(", ", 1)
    kernel = kernels(example)[title]
    if counters.source_key(kernel) != row["source"]:
        pytest.skip("another source was measured")
    sizes = {n: row["sizes"][n] for n in kernel.sizes}
    inputs = load(example).inputs(**row["sizes"])
    assert counters.executed(kernel, sizes, "sm_90a", inputs) == row["executed"]
