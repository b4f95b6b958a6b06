"""Every script in `examples/`: all schedules compute what NumPy does, at ragged sizes too."""

from __future__ import annotations

import functools
import importlib
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopkit as lk

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

# Sizes for each example: the smallest, some that fill tiles, some that do not.
SIZES: dict[str, list[dict[str, int]]] = {
    "argmin": [{"n": 1, "m": 1}, {"n": 128, "m": 64}, {"n": 133, "m": 37}],
    "axpy": [{"n": 1}, {"n": 1024}, {"n": 3001}],
    "batched_4x4": [{"count": 1}, {"count": 64}, {"count": 131}],
    "bitonic": [{"n": 1}, {"n": 0}, {"n": 3}],
    "convolution": [
        {"images": 1, "filters": 1, "height": 1, "width": 1, "channels": 1},
        {"images": 2, "filters": 11, "height": 20, "width": 35, "channels": 2},
    ],
    "dg_gradient": [{"ne": 1}, {"ne": 64}, {"ne": 77}],
    "full_sum": [{"n": 1}, {"n": 4096}, {"n": 20001}],
    "gather": [
        {"particles": 1, "n": 1, "m": 1},
        {"particles": 256, "n": 3, "m": 2},
        {"particles": 1001, "n": 20, "m": 35},
    ],
    "histogram": [{"n": 1}, {"n": 4096}, {"n": 10001}],
    "layernorm": [{"n": 1, "m": 1}, {"n": 4, "m": 256}, {"n": 5, "m": 301}],
    "matmul": [{"n": 1, "m": 1, "l": 1}, {"n": 32, "m": 16, "l": 48}, {"n": 33, "m": 50, "l": 21}],
    "matmul_fused": [{"n": 1, "m": 1, "l": 1}, {"n": 33, "m": 50, "l": 21}],
    "matmul_registers": [
        {"n": 1, "m": 1, "l": 1},
        {"n": 128, "m": 256, "l": 32},
        {"n": 131, "m": 70, "l": 19},
    ],
    "n_body": [{"n": 1}, {"n": 256}, {"n": 301}],
    "scan_rows": [{"n": 1, "m": 1}, {"n": 64, "m": 64}, {"n": 67, "m": 70}],
    "scan_rows_blocks": [{"n": 1, "m": 1}, {"n": 2, "m": 2048}, {"n": 3, "m": 1301}],
    "scan_vector": [{"n": 1}, {"n": 4096}, {"n": 5001}],
    "scatter": [
        {"particles": 1, "n": 1, "m": 1},
        {"particles": 256, "n": 3, "m": 2},
        {"particles": 1001, "n": 20, "m": 35},
    ],
    "segmented_sum": [
        {"segments": 1, "length": 1},
        {"segments": 128, "length": 64},
        {"segments": 133, "length": 37},
    ],
    "softmax": [{"n": 1, "m": 1}, {"n": 4, "m": 256}, {"n": 5, "m": 301}],
    "spmv": [{"n": 1, "m": 1}, {"n": 0, "m": 1}, {"n": 128, "m": 64}, {"n": 133, "m": 37}],
    "stencil_25": [
        {"n": 1, "m": 1, "l": 1},
        {"n": 8, "m": 32, "l": 64},
        {"n": 13, "m": 21, "l": 37},
    ],
    "stencil_5": [{"n": 1, "m": 1}, {"n": 64, "m": 32}, {"n": 70, "m": 45}],
    "transpose": [{"n": 1, "m": 1}, {"n": 64, "m": 32}, {"n": 70, "m": 45}],
    "triangular_solve": [{"n": 1, "sides": 1}, {"n": 20, "sides": 70}],
    "vector_add": [{"n": 1}, {"n": 1024}, {"n": 2049}],
    "wavefront": [{"n": 2, "m": 2}, {"n": 20, "m": 150}, {"n": 90, "m": 5}],
}
# Schedules that ask for more of the sizes than their text does.
DEMANDING = {("matmul_registers", "full tiles"), ("stencil_25", "planes, full tiles")}
ORDERS = ("ascending", "descending", "random")

load = functools.cache(importlib.import_module)


@functools.cache
def kernels(example: str) -> dict[str, lk.Kernel]:
    made: dict[str, lk.Kernel] = load(example).make()
    return made


def every_schedule() -> list[Any]:
    return [
        pytest.param(example, name, id=f"{example}-{name}")
        for example in SIZES
        for name in kernels(example)
    ]


def cases(example: str, name: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Arguments and what NumPy makes of them, for all sizes that the schedule takes."""
    module = load(example)
    found = False
    for number, sizes in enumerate(SIZES[example]):
        given = module.inputs(**sizes, seed=number)
        if (example, name) in DEMANDING and not takes(kernels(example)[name], given):
            continue
        found = True
        yield copied(given), module.expected(**given)
    assert found


def takes(kernel: lk.Kernel, given: dict[str, Any]) -> bool:
    try:
        kernel.executor("host")(**copied(given))
    except lk.AssumptionError:
        return False
    return True


def copied(given: dict[str, Any]) -> dict[str, Any]:
    """Kernels may update their arguments in place."""
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in given.items()}


def assert_same(result: Any, expected: Any) -> None:
    got, want = np.asarray(result, np.float64), np.asarray(expected, np.float64)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, atol=1e-4 * np.abs(want).max(initial=1.0), rtol=0)


def test_every_example_is_tested() -> None:
    scripts = {p.stem for p in EXAMPLES.glob("*.py") if not p.stem.startswith("_")}
    assert scripts == set(SIZES)


@pytest.mark.host
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("example", "name"), every_schedule())
def test_on_the_host(example: str, name: str, order: str) -> None:
    run = kernels(example)[name].executor("host", order=order, seed=7)
    for given, expected in cases(example, name):
        assert_same(run(**given), expected)


@pytest.mark.parametrize("example", SIZES)
def test_reference(example: str) -> None:
    """The text, instance by instance, at the smallest size."""
    module = load(example)
    given = module.inputs(**SIZES[example][0])
    run = kernels(example)["plain"].executor("reference")
    assert_same(run(**copied(given)), module.expected(**given))


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
@pytest.mark.parametrize(("example", "name"), every_schedule())
def test_compiles(example: str, name: str, arch: str) -> None:
    found = kernels(example)[name].resources(arch)
    for used in found if isinstance(found, tuple) else (found,):
        assert used.spill_stores == used.spill_loads == 0


@pytest.mark.host
@pytest.mark.parametrize("example", SIZES)
def test_script(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{example}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    launches = sum(kernel.cuda().count("__global__") for kernel in kernels(example).values())
    assert printed.count("__global__") == launches
    assert printed.count("agrees with NumPy") == len(kernels(example))


@pytest.mark.host
def test_sums_of_three_segments() -> None:
    assert load("segmented_sum").small() == [10, 26, 42]


@pytest.mark.host
def test_places_of_the_smallest_numbers() -> None:
    assert load("argmin").small() == [1, 0]


@pytest.mark.host
def test_what_examples_say_of_themselves() -> None:
    assert load("spmv").small() == [605, 0, 70]
    assert load("gather").small() == 2.5
    assert load("bitonic").small() == [1, 1, 3, 4]


@pytest.mark.host
@pytest.mark.parametrize("size", [2, 1024])
def test_a_sort_of_any_power_of_two(size: int) -> None:
    knl = load("bitonic").by_blocks(size)
    assert knl.launch_config(n=3).block == (size, 1, 1) and knl.prove().ok
    x = load("bitonic").inputs(n=3 * 1024 // 64)["x"].reshape(-1, size)[:3]
    for order in ORDERS:
        assert_same(knl.executor("host", order=order, seed=7)(x=x), np.sort(x, axis=1))
    with pytest.raises(ValueError, match="a power of two, not 12"):
        load("bitonic").by_blocks(12)


@pytest.mark.host
@pytest.mark.parametrize("size", [2, 32])
def test_a_sort_in_launches(size: int) -> None:
    knl = load("bitonic").by_launches(size, threads=4)
    assert knl.prove().ok
    x = load("bitonic").inputs(n=6)["x"].reshape(-1, size)
    for order in ORDERS:
        assert_same(knl.executor("host", order=order, seed=7)(x=x), np.sort(x, axis=1))


@pytest.mark.host
def test_table_of_sums() -> None:
    numbers = [int(w) for line in load("vector_add").table().splitlines() for w in line.split()[1:]]
    assert numbers == [2 * i for i in range(512)]


def test_grids_follow_sizes() -> None:
    """Also where assumptions bound them."""
    assert kernels("stencil_25")["tiled"].launch_config(n=13, m=21, l=37).grid == (2, 3, 4)


def test_full_steps_test_nothing() -> None:
    """The ragged product multiplies whole tiles; only its last step along k looks at its length."""
    source = kernels("matmul_registers")["any size"].cuda()
    steps = source[: source.index("k_outer_last")].split("__syncthreads")
    assert "if (" not in steps[1]


@pytest.mark.gpu
@pytest.mark.parametrize(("example", "name"), every_schedule())
def test_on_the_gpu(example: str, name: str) -> None:
    run = kernels(example)[name].executor("cuda")
    for given, expected in cases(example, name):
        assert_same(run(**given), expected)
