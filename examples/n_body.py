"""Gravity among n bodies: positions pass through shared memory, tile by tile."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """The acceleration of each body; ``p[j]`` holds position and mass of body ``j``."""
    return lk.make_kernel(
        "{ [i, j, d]: 0 <= i, j < n and 0 <= d < 3 }",
        """
        sq(x) := x * x
        r2(i, j) := sq(p[j, 0] - q[i, 0]) + sq(p[j, 1] - q[i, 1]) + sq(p[j, 2] - q[i, 2]) + soft
        inv(i, j) := rsqrt(r2(i, j))
        acc[i, d] = sum(j, p[j, 3] * inv(i, j) * inv(i, j) * inv(i, j) * (p[j, d] - q[i, d]))
        """,
        [
            lk.GlobalArg("p", "float32", shape="n, 4"),
            lk.GlobalArg("q", "float32", shape="n, 4"),
            ...,
        ],
        name="n_body",
        dtypes={"acc, soft": "float32"},
        assumptions="n >= 1",
    )


def scheduled(threads: int = 256, bodies: int = 2) -> lk.Kernel:
    """Each thread keeps a few bodies in registers and meets all others, a tile at a time.

    The last tile, which may not be full, stands apart: in all others the number of
    bodies is a constant.
    """
    return (
        plain()
        .split_iname("i", threads * bodies, outer_tag="g.0")
        .split_iname("i_inner", threads, outer_tag="unr", inner_tag="l.0")
        .split_iname("j", threads)
        .tag_inames({"d": "unr"})
        .prioritize_loops(["j_outer", "j_inner", "i_inner_outer", "d"])
        .add_prefetch("p", ["j_inner", "d"], default_tag="l.auto")
        .add_prefetch("q", ["i_inner_outer", "d"], default_tag="unr")
        .peel_iname("j_outer", last=1)
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "scheduled": scheduled()}


def inputs(n: int = 300, seed: int = 0) -> dict[str, Any]:
    """Random arguments."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(-1, 1, (n, 4)).astype(np.float32)
    p[:, 3] = rng.uniform(0.5, 1, n)
    return {"p": p, "q": p.copy(), "soft": np.float32(0.01)}


def expected(p: Any, q: Any, soft: Any) -> Any:
    """The same by NumPy."""
    p, q = p.astype(np.float64), q.astype(np.float64)
    away = p[None, :, :3] - q[:, None, :3]
    inverse = 1 / np.sqrt((away**2).sum(axis=2) + soft)
    return (away * (p[:, 3] * inverse**3)[:, :, None]).sum(axis=1)


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
