"""Forward substitution, ``L x = b`` for many right-hand sides: a loop inside a triangle."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """Row ``i`` of the solution needs all rows before it."""
    return lk.make_kernel(
        ["{ [i, r]: 0 <= i < n and 0 <= r < sides }", "{ [j]: 0 <= j < i }"],
        "x[i, r] = (b[i, r] - sum(j, lower[i, j] * x[j, r])) / lower[i, i]",
        [lk.GlobalArg("x", is_input=False), ...],
        name="triangular_solve",
        dtypes={"lower, b, x": "float32"},
        assumptions="n, sides >= 1",
    )


def scheduled() -> lk.Kernel:
    """A thread per right-hand side; the rows one after the other."""
    return plain().split_iname("r", 64, outer_tag="g.0", inner_tag="l.0")


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "scheduled": scheduled()}


def inputs(n: int = 40, sides: int = 100, seed: int = 0) -> dict[str, Any]:
    """Random arguments; the diagonal is large enough for a stable solution."""
    rng = np.random.default_rng(seed)
    lower = np.tril(rng.uniform(-1, 1, (n, n))) / n + 2 * np.eye(n)
    b = rng.uniform(-1, 1, (n, sides))
    return {"lower": lower.astype(np.float32), "b": b.astype(np.float32)}


def expected(lower: Any, b: Any) -> Any:
    """The same by NumPy."""
    return np.linalg.solve(lower.astype(np.float64), b.astype(np.float64))


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
