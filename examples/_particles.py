"""Particles in the cells of a grid: what depositing and interpolating share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import loopkit as lk


def on_grid(kernel: lk.Kernel) -> lk.Kernel:
    """All particles are in one of the ``m`` by ``n`` cells."""
    return kernel.assume_within("row", 0, "n").assume_within("column", 0, "m")


def anywhere(particles: int, n: int, m: int, rng: np.random.Generator) -> dict[str, Any]:
    """Where particles are, and in which cells."""
    x, y = (rng.uniform(0, end, particles).astype(np.float32) for end in (m, n))
    cells = {"row": np.minimum(y, n - 1), "column": np.minimum(x, m - 1)}
    return {"x": x, "y": y, **{name: cell.astype(np.int32) for name, cell in cells.items()}}


def corners(x: Any, y: Any, row: Any, column: Any) -> Iterator[tuple[tuple[Any, Any], Any]]:
    """The corners of the particles' cells, one after another: its place, and its share."""
    u, v = x - column.astype(np.float64), y - row.astype(np.float64)
    for up in (0, 1):
        for right in (0, 1):
            yield (row + up, column + right), (v if up else 1 - v) * (u if right else 1 - u)
