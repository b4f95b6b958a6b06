"""Steps in time whose halos overlap, by chained precompute: in space of each dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import loopkit as lk


def heat(axes: str, steps: int) -> lk.Kernel:
    """``steps`` in time of a heat equation, of a space with a rim that is no result."""

    def at(axis: str = "", by: int = 0) -> str:
        return ", ".join(f"{a} + {by}" if a == axis else a for a in axes)

    rules = [f"u0({at()}) := start[{at()}]"]
    for t in range(steps):
        around = " + ".join(f"u{t}({at(a, by)})" for a in axes for by in (-1, 1))
        rules.append(f"u{t + 1}({at()}) := u{t}({at()}) + rate*({around} - 6*u{t}({at()}))")
    bounds = " and ".join(f"{steps} <= {a} < n{a} + {steps}" for a in axes)
    cell = ", ".join(f"{a} - {steps}" for a in axes)
    last = rules.pop().split(" := ")[1]
    return lk.make_kernel(
        f"{{ [{at()}]: {bounds} }}",
        "\n".join([*rules, f"left[{cell}] = {last}"]),
        [lk.GlobalArg("start", shape=", ".join(f"n{a} + {2 * steps}" for a in axes)), ...],
        name="heat",
        dtypes={"start, left, rate": "float32"},
        assumptions=" and ".join(f"n{a} >= 1" for a in axes),
    )


def expected(start: np.ndarray, rate: float, steps: int) -> np.ndarray:
    u = start.astype(float)
    for _ in range(steps):
        inner = (slice(1, -1),) * u.ndim
        around = sum(np.roll(u, by, axis)[inner] for axis in range(u.ndim) for by in (-1, 1))
        u = u[inner] + rate * (around - 6 * u[inner])
    return u


def tiles(kernel: lk.Kernel, axes: str, lengths: Sequence[int]) -> lk.Kernel:
    for number, (axis, length) in enumerate(zip(axes, lengths, strict=True)):
        place = len(axes) - 1 - number
        kernel = kernel.split_iname(axis, length, outer_tag=f"g.{place}", inner_tag=f"l.{place}")
    return kernel


def chained(kernel: lk.Kernel, axes: str, steps: int) -> lk.Kernel:
    swept = [f"{a}_inner" for a in axes]
    for t in range(steps - 1, -1, -1):
        kernel = kernel.precompute(f"u{t}", swept)
        swept = [f"u{t}_dim_{number}" for number in range(len(axes))]
    return kernel


CASES = {
    "line": ("i", (128,), 4, (300,)),
    "plane": ("ij", (16, 16), 3, (20, 35)),
    "space": ("ijk", (4, 8, 16), 2, (5, 9, 17)),
}


def check(kernel: lk.Kernel, case: str) -> None:
    axes, lengths, steps, sizes = CASES[case]
    for t in range(steps):
        halo = 2 * (steps - t)
        assert kernel.temporary_by_name[f"u{t}_s"].shape == tuple(n + halo for n in lengths)
    assert kernel.prove().ok
    rng = np.random.default_rng(0)
    for shape in (sizes, (1,) * len(axes)):
        if kernel.sizes or shape == sizes:
            start = rng.uniform(0, 1, [n + 2 * steps for n in shape]).astype(np.float32)
            found = kernel.executor("host", order="random")(start=start, rate=np.float32(0.1))
            np.testing.assert_allclose(found, expected(start, 0.1, steps), rtol=1e-4, atol=1e-5)


@pytest.mark.host
@pytest.mark.parametrize("case", CASES)
def test_threads_come_first(case: str) -> None:
    """An axis of a copy that its threads have in two parts is still called what it was."""
    axes, lengths, steps, _ = CASES[case]
    check(chained(tiles(heat(axes, steps), axes, lengths), axes, steps), case)


@pytest.mark.host
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_sizes_are_fixed(case: str, first: bool) -> None:
    axes, lengths, steps, sizes = CASES[case]
    numbers = {f"n{axis}": number for axis, number in zip(axes, sizes, strict=True)}
    kernel = heat(axes, steps)
    kernel = kernel.fix_parameters(**numbers) if first else kernel
    kernel = chained(tiles(kernel, axes, lengths), axes, steps)
    check(kernel if first else kernel.fix_parameters(**numbers), case)


@pytest.mark.host
@pytest.mark.parametrize("case", CASES)
def test_tags_come_last(case: str) -> None:
    """Without an order of loops, too: what the copies depend on moves out of what is swept."""
    axes, lengths, steps, _ = CASES[case]
    kernel = heat(axes, steps)
    for axis, length in zip(axes, lengths, strict=True):
        kernel = kernel.split_iname(axis, length)
    kernel = chained(kernel, axes, steps)
    for number, axis in enumerate(reversed(axes)):
        kernel = kernel.tag_inames(f"{axis}_outer: g.{number}, {axis}_inner: l.{number}")
    check(kernel, case)
