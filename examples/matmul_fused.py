"""A matrix product and two additions in one kernel: ``a @ b + c + d``."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """The product first, the sums when it is complete."""
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        """
        for i, j
            <> product = sum(k, a[i, k] * b[k, j])
            <> partial = product + c[i, j]
            out[i, j] = partial + d[i, j]
        end
        """,
        name="matmul_fused",
        dtypes={"a, b, c, d, out": "float32"},
        assumptions="n, m, l >= 1",
    )


def scheduled() -> lk.Kernel:
    """The product and its sums stay in registers; only the factors are staged."""
    return (
        plain()
        .split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", 16)
        .add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["k_inner", "j_inner"], default_tag="l.auto")
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "scheduled": scheduled()}


def inputs(n: int = 100, m: int = 75, l: int = 50, seed: int = 0) -> dict[str, Any]:
    """Random arguments."""
    rng = np.random.default_rng(seed)
    shapes = {"a": (n, l), "b": (l, m), "c": (n, m), "d": (n, m)}
    return {name: rng.uniform(-1, 1, s).astype(np.float32) for name, s in shapes.items()}


def expected(a: Any, b: Any, c: Any, d: Any) -> Any:
    """The same by NumPy."""
    return a.astype(np.float64) @ b + c + d


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
