"""Products of many matrices, with a bias and GELU on them: a layer, for each of a batch.

Of 2*3 - 6 it is 0, and of 2*4 - 6 it is 2 times the share of a normal distribution below 2: 1.9545.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """``y[e, i, j]``, GELU of row ``i`` of ``x[e]`` times column ``j`` of ``w[e]`` and a bias."""
    return lk.make_kernel(
        "{ [e, i, j, k]: 0 <= e < batch and 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        """
        gelu(v) := 0.5*v*(1 + erf(0.70710677*v))
        for e, i, j
            <> v = sum(k, x[e, i, k]*w[e, k, j]) + bias[e, j]
            y[e, i, j] = gelu(v)
        end
        """,
        name="batched_gemm_gelu",
        dtypes={"x, w, bias, y": "float32"},
        assumptions="batch, n, m, l >= 1",
    )


def tiled(tile: int = 16) -> lk.Kernel:
    """A block for a tile of one result; what is done to the product never leaves its register."""
    return (
        plain()
        .tag_inames("e: g.2")
        .split_iname("i", tile, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", tile, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", tile)
        .add_prefetch("x", ["i_inner", "k_inner"], default_tag="l.auto")
        .add_prefetch("w", ["k_inner", "j_inner"], default_tag="l.auto")
    )


def registers(tile: int = 64, each: int = 4, depth: int = 16) -> lk.Kernel:
    """Four by four elements a thread: each of its loads from shared memory serves four products."""
    threads = tile // each
    knl = plain().tag_inames("e: g.2")
    for iname, axis in (("i", 1), ("j", 0)):
        knl = knl.split_iname(iname, tile, outer_tag=f"g.{axis}").split_iname(
            f"{iname}_inner", threads, outer_tag="unr", inner_tag=f"l.{axis}"
        )
    return (
        knl.split_iname("k", depth)
        .prioritize_loops("k_outer, k_inner, i_inner_outer, j_inner_outer")
        .add_prefetch("x", ["i_inner_outer", "i_inner_inner", "k_inner"], default_tag="l.auto")
        .add_prefetch("w", ["k_inner", "j_inner_outer", "j_inner_inner"], default_tag="l.auto")
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "tiled": tiled(), "registers": registers()}


def inputs(batch: int = 3, n: int = 70, m: int = 45, l: int = 33, seed: int = 0) -> dict[str, Any]:
    """Random arguments."""
    rng = np.random.default_rng(seed)
    shapes = {"x": (batch, n, l), "w": (batch, l, m), "bias": (batch, m)}
    return {name: rng.uniform(-1, 1, s).astype(np.float32) for name, s in shapes.items()}


def expected(x: Any, w: Any, bias: Any) -> Any:
    """The same by NumPy."""
    v = x.astype(np.float64) @ w + bias[:, None, :]
    return 0.5 * v * (1 + np.vectorize(math.erf)(v * math.sqrt(0.5)))


def small() -> list[float]:
    """The layer of the example, rounded: 0 and 1.9545."""
    x, w = np.full((1, 1, 1), 2, np.float32), np.array([[[3, 4]]], np.float32)
    found = registers()(x=x, w=w, bias=np.full((1, 2), -6, np.float32))
    return [round(float(v), 4) for v in found.ravel()]


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
