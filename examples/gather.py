"""A field at particles, interpolated between the corners of the cells that they are in.

In the middle of a cell with 1, 2, 3 and 4 on its corners it is 2.5.
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
        <> south = (1 - u)*field[row[p], column[p]] + u*field[row[p], column[p] + 1]
        <> north = (1 - u)*field[row[p] + 1, column[p]] + u*field[row[p] + 1, column[p] + 1]
        found[p] = (1 - v)*south + v*north
    end
"""


def plain() -> lk.Kernel:
    """Particle ``p`` is at ``(x, y)``, in cell ``(column, row)`` of ``m`` by ``n``."""
    kernel = lk.make_kernel(
        "{ [p]: 0 <= p < particles }",
        CORNERS,
        [lk.GlobalArg("field", shape="n + 1, m + 1"), ...],
        name="interpolate",
        dtypes={"field, found, x, y": "float32", "row, column": "int32"},
        assumptions="particles, n, m >= 1",
    )
    return on_grid(kernel)


def scheduled(threads: int = 128) -> lk.Kernel:
    """A thread for each particle: many may read one corner, and none has to wait for another."""
    return plain().split_iname("p", threads, outer_tag="g.0", inner_tag="l.0")


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "scheduled": scheduled()}


def inputs(particles: int = 5000, n: int = 40, m: int = 50, seed: int = 0) -> dict[str, Any]:
    """Particles anywhere on a grid, and a random field."""
    rng = np.random.default_rng(seed)
    return {
        **anywhere(particles, n, m, rng),
        "field": rng.uniform(-1, 1, (n + 1, m + 1)).astype(np.float32),
    }


def expected(x: Any, y: Any, field: Any, row: Any, column: Any) -> Any:
    """The same by NumPy."""
    return sum(share * field[place] for place, share in corners(x, y, row, column))


def small() -> float:
    """The field in the middle of the example's cell: 2.5."""
    half, zero = np.full(1, 0.5, np.float32), np.zeros(1, np.int32)
    field = np.array([[1, 2], [3, 4]], np.float32)
    return float(scheduled()(x=half, y=half, row=zero, column=zero, field=field)[0])


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
