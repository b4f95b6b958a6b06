"""The Mandelbrot set: how many steps each point takes to leave the circle of radius 2.

The point 0 never does, and 1 is outside of it after three steps. In double precision: near the
set's edge, rounding decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk

STEPS = """
    for i, j
        <> re = float64(0)
        <> im = float64(0)
        <int32> steps = 0
        for it while re*re + im*im <= 4
            <> next = re*re - im*im + x[j]
            im = 2*re*im + y[i]
            re = next
            steps = steps + 1
        end
        count[i, j] = steps
    end
"""


def plain() -> lk.Kernel:
    """Each pixel of ``h`` by ``w``, a loop that ends when its point is outside."""
    return lk.make_kernel(
        "{ [i, j, it]: 0 <= i < h and 0 <= j < w and 0 <= it < limit }",
        STEPS,
        name="mandelbrot",
        dtypes={"x, y": "float64", "count": "int32"},
        assumptions="h, w >= 1 and limit >= 0",
    )


def scheduled(rows: int = 4) -> lk.Kernel:
    """A thread for each pixel: each leaves the loop when it has to."""
    return (
        plain()
        .split_iname("i", rows, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 32, outer_tag="g.0", inner_tag="l.0")
    )


def unrolled(steps: int = 4) -> lk.Kernel:
    """The same, so many steps written out: the end leaves both loops."""
    return scheduled().split_iname("it", steps, inner_tag="unr")


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "scheduled": scheduled(), "unrolled": unrolled()}


def inputs(h: int = 90, w: int = 120, limit: int = 50, seed: int = 0) -> dict[str, Any]:
    """The plane around the set, a little to the side for each seed."""
    shift = np.random.default_rng(seed).uniform(0, 1e-2)
    y, x = np.linspace(-1.2, 1.2, h), np.linspace(-2, 0.6, w)
    return {"x": x + shift, "y": y + shift, "limit": limit}


def expected(x: Any, y: Any, limit: int) -> Any:
    """The same by NumPy: all points take all steps."""
    point = x + 1j * y[:, np.newaxis]
    z, steps = np.zeros_like(point), np.zeros(point.shape, np.int32)
    inside = np.ones(point.shape, bool)
    for _ in range(limit):
        inside &= z.real**2 + z.imag**2 <= 4
        steps += inside
        z = np.where(inside, z * z + point, z)
    return steps


def small() -> list[int]:
    """The steps of 0 and of 1: all 50 of them, and 3."""
    x, y = np.array([0.0, 1.0]), np.zeros(1)
    found: list[int] = scheduled()(x=x, y=y, limit=50)[0].tolist()
    return found


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
