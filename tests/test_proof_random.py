"""Random schedules: what lowering prints of them is proven."""

from __future__ import annotations

import random

import pytest
from seams import prove
from test_random_schedules import KERNELS, random_schedule

import loopkit as lk


@pytest.mark.parametrize("first", range(20, 80, 20))
def test_random_schedules_are_proven(first: int) -> None:
    proven = 0
    for seed in range(first, first + 20):
        r = random.Random(seed)
        knl = random_schedule(r.choice(KERNELS)(), r)
        try:
            knl.program()
        except lk.LoopkitError:
            continue
        proof = prove(knl)
        assert proof.ok, f"seed {seed}: {proof}"
        proven += 1
    assert proven >= 5


def test_widening_of_a_sum_that_begins_with_a_product() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 1 <= i <= n and 1 <= j <= m }",
        "v[i-1, j-1] = u[i-1, j] + 2*u[i+1, j] + 3*u[i, j-1] + u[i, j+1] - 4*u[i, j]",
        dtypes={"u, v": "float32"},
        assumptions="n, m >= 1",
    )
    knl = (
        knl.split_iname("j", 2)
        .split_iname("j_outer", 3, outer_tag="g.1", inner_tag="l.1")
        .prioritize_loops("j_inner,i")
        .add_prefetch("u", ["j_outer_inner"], default_tag="l.auto")
    )
    assert prove(knl).ok, str(prove(knl))


def test_grid_of_an_iname_of_few_values() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "y[i] = x[i]", dtypes={"x, y": "float32"}, assumptions="n >= 1"
    )
    knl = knl.split_iname("i", 5, inner_tag="g.1")
    assert knl.launch_config(n=10**6).grid[1] == 5
    assert prove(knl).ok, str(prove(knl))
