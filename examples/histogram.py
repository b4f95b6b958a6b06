"""Histograms: how often each of 256 values occurs, counted by many threads at once.

``[3, 1, 3, 3]`` adds 1 to bin 1, and 3 to bin 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk

BINS = 256


def plain() -> lk.Kernel:
    """``counts[b]`` grows by the number of ``b`` in ``values``."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "counts[values[i]] = counts[values[i]] + 1 {atomic, id=count}",
        [lk.GlobalArg("counts", shape=BINS), ...],
        name="histogram",
        dtypes={"counts, values": "int32"},
        assumptions="n >= 1",
    ).assume_within("values", 0, BINS)


def threads(each: int = 16) -> lk.Kernel:
    """A thread counts ``each`` values, all of them in global memory."""
    return (
        plain()
        .split_iname("i", BINS * each, outer_tag="g.0")
        .split_iname("i_inner", BINS, inner_tag="l.0")
    )


def privatised(each: int = 16) -> lk.Kernel:
    """Each block has counts of its own in shared memory, which it adds to all in the end."""
    return threads(each).buffer_array("counts", ["i_inner_outer", "i_inner_inner"], partial=True)


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "global atomics": threads(), "shared memory": privatised()}


def inputs(n: int = 10000, seed: int = 0) -> dict[str, Any]:
    """Random values, more of them small, and counts to begin with."""
    rng = np.random.default_rng(seed)
    values = np.minimum(rng.geometric(0.02, n) - 1, BINS - 1)
    return {"values": values.astype(np.int32), "counts": np.arange(BINS, dtype=np.int32)}


def expected(values: Any, counts: Any) -> Any:
    """The same by NumPy."""
    return counts + np.bincount(values, minlength=BINS)


def small() -> list[int]:
    """The first bins for four values: ``[0, 1, 0, 3]``."""
    values = np.array([3, 1, 3, 3], np.int32)
    return [int(c) for c in privatised()(values=values, counts=np.zeros(BINS, np.int32))[:4]]


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
