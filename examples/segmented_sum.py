"""Sums of segments of equal length, a thread per segment.

``[1, ..., 12]`` in three segments gives ``[10, 26, 42]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """``out[s]`` is the sum of row ``s``."""
    return lk.make_kernel(
        "{ [s, j]: 0 <= s < segments and 0 <= j < length }",
        "out[s] = sum(j, x[s, j])",
        name="segmented_sum",
        dtypes={"x, out": "float32"},
        assumptions="segments, length >= 1",
    )


def scheduled(threads: int = 128, piece: int = 32) -> lk.Kernel:
    """Pieces of a block's rows pass through shared memory.

    A thread alone would read its own row, far away from its neighbours' rows.
    Staged, pieces of rows are read along the rows by all threads; padding puts
    the elements that threads then add at the same time into different banks.
    """
    return (
        plain()
        .split_iname("s", threads, outer_tag="g.0", inner_tag="l.0")
        .split_iname("j", piece)
        .add_prefetch("x", ["s_inner", "j_inner"], default_tag="l.auto")
        .pad_temporary("x_s", 1)
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "scheduled": scheduled()}


def inputs(segments: int = 300, length: int = 75, seed: int = 0) -> dict[str, Any]:
    """Random arguments."""
    rng = np.random.default_rng(seed)
    return {"x": rng.uniform(-1, 1, (segments, length)).astype(np.float32)}


def expected(x: Any) -> Any:
    """The same by NumPy."""
    return x.sum(axis=1, dtype=np.float64)


def small() -> list[float]:
    """Three segments of four: ``[10, 26, 42]``."""
    numbers = np.arange(1, 13, dtype=np.float32)
    return [float(v) for v in scheduled()(x=numbers.reshape(3, 4))]


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
