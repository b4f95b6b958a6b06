"""Vector addition, four elements a thread."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """``c = a + b``."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "c[i] = a[i] + b[i]",
        name="vector_add",
        dtypes={"a, b, c": "float32"},
        assumptions="n >= 1",
    )


def scheduled(threads: int = 256, per_thread: int = 4) -> lk.Kernel:
    """Neighbouring threads on neighbouring elements, several loads in flight in each.

    Only the last block, which may not be full, tests for the end of the arrays.
    """
    return (
        plain()
        .split_iname("i", threads * per_thread, outer_tag="g.0", slabs=(0, 1))
        .split_iname("i_inner", threads, outer_tag="unr", inner_tag="l.0")
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "scheduled": scheduled()}


def inputs(n: int = 1000, seed: int = 0) -> dict[str, Any]:
    """Random arguments."""
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(-1, 1, n).astype(np.float32) for name in "ab"}


def expected(a: Any, b: Any) -> Any:
    """The same by NumPy."""
    return a + b


def table() -> str:
    """``i + i`` for ``i`` below 512, eight to a row."""
    i = np.arange(512, dtype=np.float32)
    sums = np.asarray(scheduled()(a=i, b=i))
    rows = sums.astype(int).reshape(-1, 8)
    return "\n".join(
        f"{8 * number:3d}: " + " ".join(f"{value:4d}" for value in row)
        for number, row in enumerate(rows)
    )


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(f"i + i:\n{table()}")
