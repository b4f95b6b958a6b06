"""A 5-point stencil in two dimensions, its tile and halo staged in shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """The discrete Laplacian of the inner points of ``u``."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "v[i, j] = u[i, j+1] + u[i+2, j+1] + u[i+1, j] + u[i+1, j+2] - 4 * u[i+1, j+1]",
        [lk.GlobalArg("u", "float32", shape="n + 2, m + 2"), ...],
        name="stencil_5",
        dtypes={"v": "float32"},
        assumptions="n, m >= 1",
    )


def scheduled() -> lk.Kernel:
    """Tiles of 32 by 32, four points a thread."""
    return (
        plain()
        .split_iname("i", 32, outer_tag="g.1")
        .split_iname("i_inner", 8, outer_tag="unr", inner_tag="l.1")
        .split_iname("j", 32, outer_tag="g.0", inner_tag="l.0")
        .add_prefetch("u", ["i_inner_outer", "i_inner_inner", "j_inner"], default_tag="l.auto")
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "scheduled": scheduled()}


def inputs(n: int = 100, m: int = 75, seed: int = 0) -> dict[str, Any]:
    """Random arguments."""
    rng = np.random.default_rng(seed)
    return {"u": rng.uniform(-1, 1, (n + 2, m + 2)).astype(np.float32)}


def expected(u: Any) -> Any:
    """The same by NumPy."""
    u = u.astype(np.float64)
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
