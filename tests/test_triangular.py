"""A blocked triangular solve: loops of a triangle are cut in tiles, and change places."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import loopkit as lk


def solve() -> lk.Kernel:
    """``L x = b`` in place, for many right-hand sides: row ``i`` takes off all rows above it."""
    return lk.make_kernel(
        ["{ [i, r]: 0 <= i < n and 0 <= r < s }", "{ [j]: 0 <= j <= i }"],
        """
        for i, j, r
            if j < i
                x[i, r] = x[i, r] - l[i, j]*x[j, r] {id=off}
            else
                x[i, r] = x[i, r]/l[i, i] {id=diag}
            end
        end
        """,
        dtypes={"l, x": "float32"},
        assumptions="n, s >= 1",
    )


def blocked(order: str = "i_outer, j_outer, i_inner, j_inner, r") -> lk.Kernel:
    return solve().split_iname("i", 8).split_iname("j", 8).prioritize_loops(order)


def assert_solves(knl: lk.Kernel, n: int = 21, s: int = 5) -> None:
    rng = np.random.default_rng(0)
    lower = (np.tril(rng.uniform(-1, 1, (n, n))) / n + 2 * np.eye(n)).astype(np.float32)
    b = rng.uniform(-1, 1, (n, s)).astype(np.float32)
    for order in ("ascending", "descending", "random"):
        x = b.copy()
        knl.executor("host", order=order)(l=lower, x=x)
        np.testing.assert_allclose(x, np.linalg.solve(lower, b), rtol=1e-4, atol=1e-5)


LEGAL = [
    "i_outer, j_outer, i_inner, j_inner, r",
    "i_outer, i_inner, j_outer, j_inner, r",
    "i_outer, j_outer, r, i_inner, j_inner",
    "r, i_outer, j_outer, i_inner, j_inner",
    "j_outer, i_outer, j_inner, i_inner, r",
    "j_outer, i_outer, i_inner, j_inner, r",
]


@pytest.mark.parametrize("order", LEGAL)
def test_tiles_of_a_triangle_change_places(order: str) -> None:
    knl = blocked(order)
    assert knl.history[-1].verdict == "proven"
    assert_solves(knl)
    assert knl.prove().ok


@pytest.mark.parametrize(
    "order",
    ["j_inner, i_outer, j_outer, i_inner, r", "i_inner, i_outer, j_outer, j_inner, r"],
)
def test_an_order_that_needs_rows_too_early_is_refused(order: str) -> None:
    with pytest.raises(lk.IllegalTransformError) as caught:
        blocked(order)
    assert caught.value.witness is not None


STEPS = {
    "sides": lambda k: k.split_iname("r", 32, outer_tag="g.0", inner_tag="l.0"),
    "rows": lambda k: k.split_iname("i", 8),
    "columns": lambda k: k.split_iname("j", 8),
}


@pytest.mark.parametrize("names", list(permutations(STEPS)))
def test_steps_of_a_blocked_solve_in_any_order(names: tuple[str, ...]) -> None:
    knl = solve()
    for name in names:
        knl = STEPS[name](knl)
    knl = knl.prioritize_loops("i_outer, j_outer, i_inner, j_inner")
    assert knl.history[-1].verdict == "proven"
    assert knl.prove().ok
    assert_solves(knl, n=19, s=40)
