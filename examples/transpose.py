"""Transpose through padded shared memory: rows are read whole, and rows are written whole."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """``out = a.T``."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "out[j, i] = a[i, j]",
        name="transpose",
        dtypes={"a, out": "float32"},
        assumptions="n, m >= 1",
    )


def scheduled(tile: int = 64, rows: int = 8) -> lk.Kernel:
    """A block of ``tile x rows`` threads moves a square of ``tile x tile`` elements.

    A row of the staged square is one element longer than the square, so that its
    columns, along which threads write, lie in different banks.
    """
    return (
        plain()
        .split_iname("i", tile, outer_tag="g.1", inner_tag="l.0")
        .split_iname("j", tile, outer_tag="g.0")
        .split_iname("j_inner", rows, outer_tag="unr", inner_tag="l.1")
        .add_prefetch("a", ["i_inner", "j_inner_outer", "j_inner_inner"], default_tag="l.auto")
        .pad_temporary("a_s", 1)
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "scheduled": scheduled()}


def inputs(n: int = 100, m: int = 75, seed: int = 0) -> dict[str, Any]:
    """Random arguments."""
    rng = np.random.default_rng(seed)
    return {"a": rng.uniform(-1, 1, (n, m)).astype(np.float32)}


def expected(a: Any) -> Any:
    """The same by NumPy."""
    return a.T


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
