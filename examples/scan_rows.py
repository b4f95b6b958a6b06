"""Running sums of the rows of a matrix: one accumulator runs through a row, a thread for each."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """``y[r, i]`` is the sum of row ``r`` up to column ``i``."""
    return lk.make_kernel(
        ["{ [r, i]: 0 <= r < n and 0 <= i < m }", "{ [j]: 0 <= j <= i }"],
        "y[r, i] = sum(j, x[r, j])",
        name="scan_rows",
        dtypes={"x, y": "float32"},
        assumptions="n, m >= 1",
    )


def by_threads(threads: int = 64, columns: int = 32) -> lk.Kernel:
    """A thread for each row, which passes through shared memory in pieces.

    There and back all threads move what lies side by side; padding puts the numbers of a
    column into different banks.
    """
    return (
        plain()
        .realize_reduction(force_scan=True)
        .split_iname("r", threads, outer_tag="g.0", inner_tag="l.0")
        .split_iname("i", columns)
        .add_prefetch("x", ["r_inner", "i_inner"], default_tag="l.auto")
        .buffer_array("y", ["r_inner", "i_inner"], default_tag="l.auto")
        .pad_temporary("x_s", 1)
        .pad_temporary("y_buf", 1)
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "a thread a row": by_threads()}


def inputs(n: int = 256, m: int = 3000, seed: int = 0) -> dict[str, Any]:
    """Numbers between 0 and 1."""
    return {"x": np.random.default_rng(seed).random((n, m), dtype=np.float32)}


def expected(x: Any) -> Any:
    """The same by NumPy, in double precision."""
    return x.cumsum(1, dtype=np.float64)


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
