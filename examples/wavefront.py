"""A wavefront: every cell needs the one above and the one to the left.

Cells on an antidiagonal need each other in no way.  ``map_domain`` makes the
antidiagonals a loop, and the cells along each a thread axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """The cheapest path from the edges to each cell, by steps down and to the right."""
    return lk.make_kernel(
        "{ [i, j]: 1 <= i < n and 1 <= j < m }",
        "t[i, j] = w[i, j] + min(t[i - 1, j], t[i, j - 1])",
        name="wavefront",
        dtypes={"t, w": "float32"},
        assumptions="n, m >= 2",
    )


def scheduled() -> lk.Kernel:
    """One block walks over the antidiagonals, 128 cells at a time."""
    return (
        plain()
        .map_domain("{ [i, j] -> [d, p]: d = i + j and p = j }")
        .split_iname("p", 128, inner_tag="l.0")
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "scheduled": scheduled()}


def inputs(n: int = 100, m: int = 150, seed: int = 0) -> dict[str, Any]:
    """Random weights, and the costs along the upper and the left edge."""
    rng = np.random.default_rng(seed)
    w = rng.uniform(0, 1, (n, m)).astype(np.float32)
    t = np.zeros_like(w)
    t[0] = np.cumsum(w[0])
    t[:, 0] = np.cumsum(w[:, 0])
    return {"w": w, "t": t}


def expected(w: Any, t: Any) -> Any:
    """The same by NumPy."""
    t = t.copy()
    for i in range(1, t.shape[0]):
        for j in range(1, t.shape[1]):
            t[i, j] = w[i, j] + min(t[i - 1, j], t[i, j - 1])
    return t


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
