"""Sparse matrix times vector, rows compressed (CSR): how long a row is, data decide.

Row ``i`` of ``[[5, 0, 6], [0, 0, 0], [0, 7, 0]]`` stands from ``start[i]`` to ``start[i + 1]`` in
``value = [5, 6, 7]`` and ``column = [0, 2, 1]``; ``start`` is ``[0, 2, 2, 3]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _rows import by_blocks, by_warps

import loopkit as lk


def plain() -> lk.Kernel:
    """``y[i]`` is the sum of ``value[k]*x[column[k]]`` over row ``i``.

    What is said of the data makes all accesses lie in their arrays.
    """
    kernel = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k]: first <= k < last }"],
        """
        for i
            <> first = start[i]
            <> last = start[i + 1]
            y[i] = sum(k, value[k]*x[column[k]])
        end
        """,
        [
            lk.GlobalArg("start", shape="n + 1"),
            lk.GlobalArg("column", shape="nnz"),
            lk.GlobalArg("value", shape="nnz"),
            lk.GlobalArg("x", shape="m"),
            ...,
        ],
        name="spmv",
        dtypes={"value, x, y": "float32", "start, column": "int32"},
    )
    kernel = kernel.assume_increasing("start").assume_within("start", 0, "nnz + 1")
    return kernel.assume_within("column", 0, "m")


def by_threads(threads: int = 128) -> lk.Kernel:
    """A thread for each row: good for short rows, about as long as their neighbours."""
    return plain().split_iname("i", threads, outer_tag="g.0", inner_tag="l.0")


def make() -> dict[str, lk.Kernel]:
    """The text; a thread, some lanes, a warp, or a block for each row: they read neighbours."""
    return {
        "plain": plain(),
        "a thread a row": by_threads(),
        "8 lanes a row": by_warps(plain(), "k", rows=16, lanes=8),
        "a warp a row": by_warps(plain(), "k"),
        "a block a row": by_blocks(plain(), "k", threads=128),
    }


def inputs(n: int = 300, m: int = 200, seed: int = 0) -> dict[str, Any]:
    """Rows of any length: some are empty, one is long; some columns come twice in a row."""
    rng = np.random.default_rng(seed)
    lengths = np.minimum(rng.geometric(0.1, n) - 1, 100)
    lengths[n // 2 : n // 2 + 1] += 500
    start = np.concatenate([[0], lengths.cumsum()]).astype(np.int32)
    return {
        "start": start,
        "column": rng.integers(0, m, start[-1]).astype(np.int32),
        "value": rng.normal(size=start[-1]).astype(np.float32),
        "x": rng.normal(size=m).astype(np.float32),
    }


def expected(start: Any, column: Any, value: Any, x: Any) -> Any:
    """The same by NumPy, in double precision."""
    n = len(start) - 1
    return np.bincount(np.repeat(np.arange(n), np.diff(start)), value * x[column], n)


def small() -> list[float]:
    """The matrix of the example times ``[1, 10, 100]``: ``[605, 0, 70]``."""
    arrays = {"start": [0, 2, 2, 3], "column": [0, 2, 1]}
    given = {name: np.array(numbers, np.int32) for name, numbers in arrays.items()}
    value, x = np.array([5, 6, 7], np.float32), np.array([1, 10, 100], np.float32)
    return [float(v) for v in make()["a warp a row"](**given, value=value, x=x)]


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
