"""Products of many 4 by 4 matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """``c[e] = a[e] @ b[e]``."""
    return lk.make_kernel(
        "{ [e, i, j, k]: 0 <= e < count and 0 <= i, j, k < 4 }",
        "c[e, i, j] = sum(k, a[e, i, k] * b[e, k, j])",
        name="batched_4x4",
        dtypes={"a, b, c": "float32"},
        assumptions="count >= 1",
    )


def scheduled() -> lk.Kernel:
    """A thread per element of a result, 64 matrices a block, four of them in each thread."""
    return (
        plain()
        .split_iname("e", 64, outer_tag="g.0", slabs=(0, 1))
        .split_iname("e_inner", 16, outer_tag="unr", inner_tag="l.2")
        .tag_inames({"i": "l.1", "j": "l.0", "k": "unr"})
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "scheduled": scheduled()}


def inputs(count: int = 150, seed: int = 0) -> dict[str, Any]:
    """Random arguments."""
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(-1, 1, (count, 4, 4)).astype(np.float32) for name in "ab"}


def expected(a: Any, b: Any) -> Any:
    """The same by NumPy."""
    return a.astype(np.float64) @ b


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
