"""``y = alpha x + y`` in place: full blocks run without a test, a slab of one block has it."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """``y += alpha * x``."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[i] = alpha * x[i] + y[i]",
        name="axpy",
        dtypes={"x, y, alpha": "float32"},
        assumptions="n >= 1",
    )


def scheduled() -> lk.Kernel:
    """Blocks of 128 threads, eight elements each; the last block is a slab of its own."""
    return (
        plain()
        .split_iname("i", 128 * 8, outer_tag="g.0", slabs=(0, 1))
        .split_iname("i_inner", 128, outer_tag="unr", inner_tag="l.0")
    )


def in_one_block() -> lk.Kernel:
    """One block that walks over the array, its last round apart from the others."""
    return plain().split_iname("i", 128, slabs=(0, 1), inner_tag="l.0")


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "scheduled": scheduled(), "in one block": in_one_block()}


def inputs(n: int = 3000, seed: int = 0) -> dict[str, Any]:
    """Random arguments."""
    rng = np.random.default_rng(seed)
    x, y = (rng.uniform(-1, 1, n).astype(np.float32) for _ in range(2))
    return {"x": x, "y": y, "alpha": np.float32(0.5)}


def expected(x: Any, y: Any, alpha: Any) -> Any:
    """The same by NumPy."""
    return alpha * x + y


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
