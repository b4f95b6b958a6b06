"""Matrix product, tiled 16 by 16 through shared memory; of any sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """``c = a @ b``."""
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        name="matmul",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
    )


def threads() -> lk.Kernel:
    """A thread per element of the result, which reads its row and its column."""
    return (
        plain()
        .split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
    )


def tiled() -> lk.Kernel:
    """A thread per element of the result; the tiles of both factors in shared memory."""
    return (
        threads()
        .split_iname("k", 16)
        .add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["k_inner", "j_inner"], default_tag="l.auto")
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "tiled": tiled()}


def inputs(n: int = 100, m: int = 75, l: int = 50, seed: int = 0) -> dict[str, Any]:
    """Random arguments."""
    rng = np.random.default_rng(seed)
    return {
        "a": rng.uniform(-1, 1, (n, l)).astype(np.float32),
        "b": rng.uniform(-1, 1, (l, m)).astype(np.float32),
    }


def expected(a: Any, b: Any) -> Any:
    """The same by NumPy."""
    return a.astype(np.float64) @ b


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
