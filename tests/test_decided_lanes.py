"""A product whose lanes hold the accumulator layout of an mma: it is proven."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from lane_kernels import FRAGMENT, ROUNDS, SCHEDULES, STAGED, TILES, product
from pace import timed

import loopkit as lk


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEDULES)
def test_any_order_of_steps_is_proven(name: str) -> None:
    knl = product()
    times = []
    for step in [*SCHEDULES[name], *STAGED]:
        knl, taken = timed(partial(step, knl))
        times.append(taken)
        assert knl.history[-1].verdict == "proven"
    assert sorted(times)[len(times) // 2] < 0.2  # on a machine that does other things
    # As large as what is read: 64 rows and columns, 32 of what is summed over.
    assert {t.name: t.shape for t in knl.temporaries if t.name in ("a_s", "b_s")} == {
        "a_s": (64, 32),
        "b_s": (32, 64),
    }
    assert knl.prove().ok
    rng = np.random.default_rng(4)
    a = rng.integers(-4, 4, (64, 64)).astype(np.float32)
    b = rng.integers(-4, 4, (64, 128)).astype(np.float32)
    c = knl.executor("host", order="random", seed=5)(a=a, b=b)
    assert (np.asarray(c) == a @ b).all()


def test_what_starts_elsewhere_is_no_part_of_the_sum() -> None:
    knl = product()
    for step in [*TILES, *ROUNDS]:
        knl = step(knl)
    knl = knl.prioritize_loops(["ko", "kk", "mi", "nj", "i16", "j8", "k16"])
    knl = knl.map_domain(FRAGMENT, within="id:insn_init")
    assert "sum over ko, kk, k16" in str(knl)


def test_lanes_that_leave_rows_out_are_refused() -> None:
    """Row ``g + 8*r1`` of a lane whose ``g`` goes to 3 alone leaves half of the tile out."""
    knl = product()
    for step in TILES:
        knl = step(knl)
    wrong = FRAGMENT.replace("floor(lane/4)", "floor(lane/8)")
    with pytest.raises(lk.IllegalTransformError):
        knl.map_domain(wrong)
