"""A symmetric matrix as a triangle times its transpose, in place: in blocks of 16 columns.

``[[4, 2], [2, 5]]`` is ``[[2, 0], [1, 2]]`` times ``[[2, 1], [0, 2]]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """Column by column, of the lower triangle; what stands above the diagonal stays."""
    return lk.make_kernel(
        ["{ [k]: 0 <= k < n }", "{ [i]: k < i < n }", "{ [p, q]: k < q <= p < n }"],
        """
        for k
            a[k, k] = sqrt(a[k, k]) {id=root}
            for i
                a[i, k] = a[i, k] / a[k, k] {id=column}
            end
            for p, q
                a[p, q] = a[p, q] - a[p, k]*a[q, k] {id=rest}
            end
        end
        """,
        [lk.GlobalArg("a", "float32", "n, n"), ...],
        name="cholesky",
        assumptions="n >= 1",
    )


def blocked(block: int = 16) -> lk.Kernel:
    """Columns of a block, then one product of matrices right of them: two launches a block."""
    return (
        plain()
        .split_iname("k", block)
        .peel_iname("q", at=f"{block}*k_outer + {block}")
        .fission("k_inner", "id:rest")
        .duplicate_inames("k_inner, p, q", "id:rest", new_inames="l, i_below, j_right")
        .prioritize_loops("i_below, j_right, l")
        .add_barrier("id:rest_first", "id:rest", within_inames="k_outer")
    )


def tiled(block: int = 16) -> lk.Kernel:
    """A thread for each row of the columns, and for each cell of the triangle that is left."""
    return (
        blocked(block)
        .split_iname("i", 256, inner_tag="l.0")
        .split_iname("p", 256, inner_tag="l.0")
        .split_iname("i_below", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j_right", 16, outer_tag="g.0", inner_tag="l.0")
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "blocked": blocked(), "tiled": tiled()}


def inputs(n: int = 100, seed: int = 0) -> dict[str, Any]:
    """A symmetric matrix whose diagonal is larger than all beside it."""
    rng = np.random.default_rng(seed)
    half = rng.uniform(-1, 1, (n, n))
    return {"a": (half + half.T + 2 * n * np.eye(n)).astype(np.float32)}


def expected(a: Any) -> Any:
    """The same by NumPy."""
    factor = np.linalg.cholesky(a.astype(np.float64))
    return factor + np.triu(a, 1)


def small() -> list[list[float]]:
    """The triangle of the example, and what stood above it: [[2, 2], [1, 2]]."""
    found: list[list[float]] = tiled()(a=np.array([[4, 2], [2, 5]], np.float32)).tolist()
    return found


if __name__ == "__main__":
    from _gallery import present

    given = inputs()
    present(make(), given, expected(**given))
    print(small())
