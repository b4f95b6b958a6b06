"""The smallest number of each row and where it stands, by a thread or by a block for a row.

``[[3, 1, 2], [0, 5, 0]]`` gives ``[1, 0]`` at ``[1, 0]``: of equal numbers the first counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _rows import by_blocks, by_blocks_ahead

import loopkit as lk


def plain() -> lk.Kernel:
    """``least[i]`` is ``x[i, place[i]]``, the smallest of row ``i``."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "least[i], place[i] = argmin(j, x[i, j], int32(j))",
        name="argmin",
        dtypes={"x, least": "float32", "place": "int32"},
        assumptions="n, m >= 1",
    )


def scheduled(threads: int = 128, piece: int = 32) -> lk.Kernel:
    """Pieces of a block's rows pass through shared memory, read along the rows by all threads.

    Padding puts the numbers that threads then compare at the same time into different banks.
    """
    return (
        plain()
        .split_iname("i", threads, outer_tag="g.0", inner_tag="l.0")
        .split_iname("j", piece)
        .add_prefetch("x", ["i_inner", "j_inner"], default_tag="l.auto")
        .pad_temporary("x_s", 1)
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first; threads that share a row combine what each has found."""
    return {
        "plain": plain(),
        "scheduled": scheduled(),
        "a block for a row": by_blocks(plain(), "j"),
        "a block for a row, loads ahead": by_blocks_ahead(plain(), "j"),
    }


def inputs(n: int = 300, m: int = 75, seed: int = 0) -> dict[str, Any]:
    """Whole numbers, so that some are equal."""
    rng = np.random.default_rng(seed)
    return {"x": rng.integers(0, 40, (n, m)).astype(np.float32)}


def expected(x: Any) -> Any:
    """The same by NumPy."""
    return x.min(axis=1), x.argmin(axis=1)


def small() -> list[int]:
    """Where the numbers of the example stand."""
    numbers = np.array([[3, 1, 2], [0, 5, 0]], np.float32)
    return [int(place) for place in scheduled()(x=numbers).place]


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
