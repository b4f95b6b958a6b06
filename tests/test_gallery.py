"""Every script in `examples/`: all schedules compute what NumPy does, at ragged sizes too."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gallery import EXAMPLES, LISTED, NAMES, SCHEDULES, kernels, listed, load

import loopkit as lk

# Sizes for each example: the smallest, some that fill tiles, some that do not.
SIZES: dict[str, list[dict[str, int]]] = {
    "argmin": [{"n": 1, "m": 1}, {"n": 128, "m": 64}, {"n": 133, "m": 37}],
    "attention": [
        {"heads": 1, "n": 1, "m": 1},
        {"heads": 2, "n": 128, "m": 32},
        {"heads": 2, "n": 133, "m": 37},
    ],
    "axpy": [{"n": 1}, {"n": 1024}, {"n": 3001}],
    "batched_4x4": [{"count": 1}, {"count": 64}, {"count": 131}],
    "batched_gemm_gelu": [
        {"batch": 1, "n": 1, "m": 1, "l": 1},
        {"batch": 2, "n": 64, "m": 64, "l": 16},
        {"batch": 2, "n": 33, "m": 70, "l": 21},
    ],
    "bitonic": [{"n": 1}, {"n": 0}, {"n": 3}],
    "cholesky": [{"n": 1}, {"n": 32}, {"n": 37}],
    "convolution": [
        {"images": 1, "filters": 1, "height": 1, "width": 1, "channels": 1},
        {"images": 2, "filters": 11, "height": 20, "width": 35, "channels": 2},
    ],
    "dg_gradient": [{"ne": 1}, {"ne": 64}, {"ne": 77}],
    "einsum": [
        {"Ni": 1, "Nj": 1, "Nk": 1, "Nl": 1},
        {"Ni": 32, "Nj": 16, "Nk": 2, "Nl": 32},
        {"Ni": 33, "Nj": 21, "Nk": 3, "Nl": 19},
    ],
    "fft": [{"n": 1}, {"n": 64}, {"n": 67}],
    "full_sum": [{"n": 1}, {"n": 4096}, {"n": 20001}],
    "fused_pair": [{"n": 1}, {"n": 1024}, {"n": 3001}],
    "gather": [
        {"particles": 1, "n": 1, "m": 1},
        {"particles": 256, "n": 3, "m": 2},
        {"particles": 1001, "n": 20, "m": 35},
    ],
    "heat": [{"n": 1, "m": 1}, {"n": 32, "m": 16}, {"n": 37, "m": 21}],
    "histogram": [{"n": 1}, {"n": 4096}, {"n": 10001}],
    "layernorm": [{"n": 1, "m": 1}, {"n": 4, "m": 256}, {"n": 5, "m": 301}],
    "mandelbrot": [
        {"h": 1, "w": 1, "limit": 0},
        {"h": 8, "w": 64, "limit": 12},
        {"h": 13, "w": 37, "limit": 50},
    ],
    "lu": [{"n": 1}, {"n": 32}, {"n": 37}],
    "matmul": [{"n": 1, "m": 1, "l": 1}, {"n": 32, "m": 16, "l": 48}, {"n": 33, "m": 50, "l": 21}],
    "matmul_fused": [{"n": 1, "m": 1, "l": 1}, {"n": 33, "m": 50, "l": 21}],
    "matmul_registers": [
        {"n": 1, "m": 1, "l": 1},
        {"n": 128, "m": 256, "l": 32},
        {"n": 131, "m": 70, "l": 19},
    ],
    "n_body": [{"n": 1}, {"n": 256}, {"n": 301}],
    "neighbours": [
        {"n": 1, "m": 1, "sources": 1},
        {"n": 128, "m": 32, "sources": 50},
        {"n": 133, "m": 37, "sources": 7},
    ],
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
    "stencil_sweep": [
        {"l": 1, "n": 1, "m": 1},
        {"l": 4, "n": 16, "m": 32},
        {"l": 5, "n": 13, "m": 37},
    ],
    "transpose": [{"n": 1, "m": 1}, {"n": 64, "m": 32}, {"n": 70, "m": 45}],
    "triangular_solve": [{"n": 1, "sides": 1}, {"n": 20, "sides": 70}],
    "vector_add": [{"n": 1}, {"n": 1024}, {"n": 2049}],
    "wavefront": [{"n": 2, "m": 2}, {"n": 20, "m": 150}, {"n": 90, "m": 5}],
}
# Schedules that ask for more of the sizes than their text does.
DEMANDING = {("matmul_registers", "full tiles"), ("stencil_25", "planes, full tiles")}
ORDERS = ("ascending", "descending", "random")

precise = load("_gallery").precise
every_schedule = pytest.mark.parametrize(
    ("example", "name"), [pytest.param(*s, id="-".join(s)) for s in SCHEDULES]
)


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
    got, want = precise(result), precise(expected)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, atol=1e-4 * np.abs(want).max(initial=1.0), rtol=0)


def test_every_example_is_tested() -> None:
    assert set(NAMES) == set(SIZES)


def test_every_schedule_is_listed(golden: Any) -> None:
    golden(LISTED, listed())


@pytest.mark.host
@pytest.mark.parametrize("order", ORDERS)
@every_schedule
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


@pytest.mark.share(5)
@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
@every_schedule
def test_compiles(example: str, name: str, arch: str) -> None:
    found = kernels(example)[name].resources(arch)
    for used in found if isinstance(found, tuple) else (found,):
        assert used.spill_stores == used.spill_loads == 0


@pytest.mark.slow
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
    assert load("neighbours").small() == 0.016
    assert load("bitonic").small() == [1, 1, 3, 4]
    assert load("mandelbrot").small() == [50, 3]
    assert load("heat").small() == 61
    assert load("lu").small() == [[4, 3], [1.5, -1.5]]
    assert load("cholesky").small() == [[2, 2], [1, 2]]
    assert load("stencil_sweep").small() == [6, 6]
    assert load("fft").small() == [1, 1]
    assert load("attention").small() == 2
    assert load("fused_pair").small() == 0.8
    assert load("batched_gemm_gelu").small() == [0, 1.9545]
    assert load("einsum").small() == 11


@pytest.mark.parametrize(
    ("example", "name"),
    [
        ("heat", "four steps"),
        ("lu", "tiled"),
        ("cholesky", "tiled"),
        ("stencil_sweep", "planes"),
        ("fft", "shared"),
        ("attention", "staged"),
        ("fused_pair", "threads"),
        ("batched_gemm_gelu", "registers"),
        ("einsum", "tiled"),
    ],
)
def test_what_is_derived_from_plain_texts(example: str, name: str, golden: Any) -> None:
    knl = kernels(example)[name]
    golden(f"example_{example}.txt", f"{knl}\n{knl.cuda()}")


def test_steps_in_time_are_staged_in_any_order() -> None:
    knl = load("heat").tiled(order=(2, 0, 3, 1))
    shapes = [knl.temporary_by_name[f"u{t}_s"].shape for t in range(4)]
    assert shapes == [(24, 24), (22, 22), (20, 20), (18, 18)] and knl.prove().ok


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
@every_schedule
def test_on_the_gpu(example: str, name: str) -> None:
    run = kernels(example)[name].executor("cuda")
    for given, expected in cases(example, name):
        assert_same(run(**given), expected)
