"""The benchmark on the GPU as far as it needs none: help, refusals, and its cases, small."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
NAMES = (
    *("softmax", "layernorm", "sum", "argmin", "scan-rows", "scan-vector"),
    *("scan-long-vector", "sort-rows", "histogram", "scatter", "spmv-short", "spmv-long"),
)


def benchmark(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, str(BENCHMARKS / "gpu.py"), *arguments]
    around = {**os.environ, "CUDA_VISIBLE_DEVICES": "", **more}
    return subprocess.run(call, capture_output=True, text=True, timeout=120, env=around)


def test_help() -> None:
    done = benchmark("--help")
    assert done.returncode == 0
    for option in ("--only", "--quick", "--variants", "--seconds", "--rest", "--json"):
        assert option in done.stdout


def test_without_a_gpu() -> None:
    """It says what is missing, and neither times nor writes anything."""
    done = benchmark("--only", "softmax", "--json", "/nowhere/at/all.json")
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.startswith("this benchmark needs") and "Traceback" not in done.stderr


def makers() -> dict[str, Callable[[], Any]]:
    """All cases in which threads work together, on the CPU, and as small as ragged sizes are."""
    pytest.importorskip("torch")
    sys.path.insert(0, str(BENCHMARKS))
    import _gpu_together as made

    assert (*made.CASES,) == NAMES
    return {
        "softmax": lambda: made.rows_softmax(3, 301, "cpu"),
        "layernorm": lambda: made.rows_layernorm(3, 301, "cpu"),
        "sum": lambda: made.whole_sum(9001, "cpu"),
        "argmin": lambda: made.rows_argmin(5, 301, "cpu"),
        "scan-rows": lambda: made.rows_scan(3, 2301, "cpu"),
        "scan-vector": lambda: made.vector_scan(9001, "cpu"),
        "scan-long-vector": lambda: made.vector_scan(12001, "cpu"),
        "sort-rows": lambda: made.rows_sort(3, 32, "cpu"),
        "histogram": lambda: made.bins(5001, "cpu"),
        "scatter": lambda: made.deposit(700, 9, "cpu"),
        "spmv-short": lambda: made.sparse(130, 40, 4, "cpu"),
        "spmv-long": lambda: made.sparse(5, 40, 200, "cpu"),
    }


@pytest.mark.host
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize("name", NAMES)
def test_all_who_take_part_are_right(name: str) -> None:
    """And what is wrong is seen: each check fails where nothing was computed."""
    case = makers()[name]()
    case.reset()
    assert not float(case.check(case.result())) <= case.tolerance
    for kernel in case.kernels.values():
        case.reset()
        kernel.executor("host").bind(**case.arrays)()
        assert float(case.check(case.result())) <= case.tolerance
    for rival in case.rivals.values():
        case.reset()
        returned = rival.run()
        result = case.result(returned if rival.returns else None)
        assert float(case.check(result)) <= case.tolerance
        assert rival.how()
    assert {*case.counts} <= {*case.kernels} and {*case.targets} <= {*case.kernels}
