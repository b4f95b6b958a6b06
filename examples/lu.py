"""A matrix as a product of two triangles, in place: elimination in blocks of 16 columns.

``[[4, 3], [6, 3]]`` is ``[[1, 0], [1.5, 1]]`` times ``[[4, 3], [0, -1.5]]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain() -> lk.Kernel:
    """Column by column; what is left of the matrix, below and right of it, is updated at once."""
    return lk.make_kernel(
        ["{ [k]: 0 <= k < n }", "{ [i]: k < i < n }", "{ [p, q]: k < p, q < n }"],
        """
        for k
            for i
                a[i, k] = a[i, k] / a[k, k] {id=column}
            end
            for p, q
                a[p, q] = a[p, q] - a[p, k]*a[k, q] {id=rest}
            end
        end
        """,
        [lk.GlobalArg("a", "float32", "n, n"), ...],
        name="lu",
        assumptions="n >= 1",
    )


def blocked(block: int = 16) -> lk.Kernel:
    """Columns of a block, then rows of it, then one product of matrices: three launches a block.

    What a column changes is parted where its block ends.  Columns right of the block wait for
    all of its columns: first its own rows, then those below, where the sum over ``k`` is the
    innermost loop.
    """
    end = f"{block}*k_outer + {block}"
    parted = (
        plain()
        .split_iname("k", block)
        .peel_iname("q", at=end)
        .fission("k_inner", "id:rest")
        .peel_iname("p", at=end)
        .fission("k_inner", "id:rest")
        .duplicate_inames("k_inner, p, q", "id:rest", new_inames="l, i_below, j_right")
        .prioritize_loops("i_below, j_right, l")
        .prioritize_loops("q, k_inner")
    )
    return parted.add_barrier(
        "id:rest_first", "id:rest_first_0", within_inames="k_outer"
    ).add_barrier("id:rest_first_0", "id:rest", within_inames="k_outer")


def tiled(block: int = 16) -> lk.Kernel:
    """A thread for each row of the columns, for each column of the rows, for each cell below."""
    return (
        blocked(block)
        .split_iname("i", 256, inner_tag="l.0")
        .split_iname("p", 256, inner_tag="l.0")
        .split_iname("q", 64, outer_tag="g.0", inner_tag="l.0")
        .split_iname("i_below", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j_right", 16, outer_tag="g.0", inner_tag="l.0")
        .split_iname("p_first", block, inner_tag="l.0")
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "blocked": blocked(), "tiled": tiled()}


def inputs(n: int = 100, seed: int = 0) -> dict[str, Any]:
    """A matrix that needs no exchange of rows: its diagonal is larger than all beside it."""
    rng = np.random.default_rng(seed)
    return {"a": (rng.uniform(-1, 1, (n, n)) + n * np.eye(n)).astype(np.float32)}


def expected(a: Any) -> Any:
    """The same by NumPy, a column at a time."""
    a = a.astype(np.float64)
    for k in range(len(a)):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def small() -> list[list[float]]:
    """The factors of the example in one matrix: [[4, 3], [1.5, -1.5]]."""
    found: list[list[float]] = tiled()(a=np.array([[4, 3], [6, 3]], np.float32)).tolist()
    return found


if __name__ == "__main__":
    from _gallery import present

    given = inputs()
    present(make(), given, expected(**given))
    print(small())
