"""Charge of particles, deposited on the corners of the cells that they are in.

A particle of charge 1 in the middle of cell (0, 0) leaves 0.25 on each of its four corners.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _particles import anywhere, corners, on_grid

import loopkit as lk

CORNERS = """
    for p
        <> u = x[p] - float32(column[p])
        <> v = y[p] - float32(row[p])
        rho[row[p], column[p]] += q[p]*(1 - v)*(1 - u)        {atomic, id=south_west}
        rho[row[p], column[p] + 1] += q[p]*(1 - v)*u          {atomic, id=south_east}
        rho[row[p] + 1, column[p]] += q[p]*v*(1 - u)          {atomic, id=north_west}
        rho[row[p] + 1, column[p] + 1] += q[p]*v*u            {atomic, id=north_east}
    end
"""


def plain() -> lk.Kernel:
    """Particle ``p`` is at ``(x, y)``, in cell ``(column, row)`` of ``m`` by ``n``."""
    kernel = lk.make_kernel(
        "{ [p]: 0 <= p < particles }",
        CORNERS,
        [lk.GlobalArg("rho", shape="n + 1, m + 1"), ...],
        name="deposit",
        dtypes={"rho, q, x, y": "float32", "row, column": "int32"},
        assumptions="particles, n, m >= 1",
    )
    return on_grid(kernel)


def scheduled(threads: int = 128) -> lk.Kernel:
    """A thread for each particle: which of them meet in a corner, data decide."""
    return plain().split_iname("p", threads, outer_tag="g.0", inner_tag="l.0")


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "scheduled": scheduled()}


def inputs(particles: int = 5000, n: int = 40, m: int = 50, seed: int = 0) -> dict[str, Any]:
    """Particles anywhere on a grid that holds some charge."""
    rng = np.random.default_rng(seed)
    return {
        **anywhere(particles, n, m, rng),
        "q": rng.uniform(-1, 1, particles).astype(np.float32),
        "rho": rng.uniform(-1, 1, (n + 1, m + 1)).astype(np.float32),
    }


def expected(x: Any, y: Any, q: Any, rho: Any, row: Any, column: Any) -> Any:
    """The same by NumPy."""
    found = rho.astype(np.float64)
    for place, share in corners(x, y, row, column):
        np.add.at(found, place, q * share)
    return found


def small() -> list[float]:
    """The corners of one cell with a particle in its middle: four times 0.25."""
    half, zero = np.full(1, 0.5, np.float32), np.zeros(1, np.int32)
    rho = scheduled()(
        x=half, y=half, q=2 * half, row=zero, column=zero, rho=np.zeros((2, 2), np.float32)
    )
    return [float(v) for v in np.ravel(rho)]


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
