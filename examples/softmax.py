"""Softmax of each row: its largest number, the sum of exponentials, and the quotients.

``[[0, 0]]`` gives ``[[0.5, 0.5]]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _rows import by_blocks, by_blocks_at_once, by_warps

import loopkit as lk


def plain() -> lk.Kernel:
    """``y[i, l] = exp(x[i, l]) / sum(exp(x[i, :]))``, of differences to the largest."""
    return lk.make_kernel(
        "{ [i, j, k, l]: 0 <= i < n and 0 <= j, k, l < m }",
        """
        for i
            <> top = max(j, x[i, j])
            <> total = sum(k, exp(x[i, k] - top))
            y[i, l] = exp(x[i, l] - top) / total
        end
        """,
        name="softmax",
        dtypes={"x, y": "float32"},
        assumptions="n, m >= 1",
    )


def make() -> dict[str, lk.Kernel]:
    """The text, and three schedules: each combination gives all threads of a row the whole."""
    return {
        "plain": plain(),
        "a block a row": by_blocks(plain(), "jkl"),
        "a warp a row": by_warps(plain(), "jkl"),
        "a block a row, read once": by_blocks_at_once(plain(), "jkl"),
    }


def inputs(n: int = 77, m: int = 300, seed: int = 0) -> dict[str, Any]:
    """Numbers on both sides of zero."""
    rng = np.random.default_rng(seed)
    return {"x": rng.normal(size=(n, m)).astype(np.float32)}


def expected(x: Any) -> Any:
    """The same by NumPy."""
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
