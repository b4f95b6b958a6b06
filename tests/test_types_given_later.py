"""Types and sizes that are given later break no kernel; only rounding is checked."""

from __future__ import annotations

import numpy as np
import pytest
from data_kernels import run_on_host

import loopkit as lk


def steps_in_time(statements: int) -> lk.Kernel:
    """Loops over one array that each read what earlier loops, and earlier times, wrote."""
    names = [f"i{k}" for k in range(statements)]
    text = "\n".join(
        f"for {i}\n  y[t, {i}] = {k}*x[{i}] + y[t - 1, {i}]\nend" for k, i in enumerate(names)
    )
    bounds = " and ".join(f"0 <= {i} < n" for i in names)
    return lk.make_kernel(
        f"{{ [t, {', '.join(names)}]: 1 <= t < m and {bounds} }}", f"for t\n{text}\nend"
    )


def test_types_and_sizes_of_long_kernels() -> None:
    knl = steps_in_time(60)
    for step in (
        lambda k: k.add_dtypes({"x": "float32"}),
        lambda k: k.add_and_infer_dtypes({"x, y": "float64"}),
        lambda k: k.fix_parameters(n=100),
        lambda k: k.fix_parameters(n=100, m=3).add_dtypes({"x, y": "float32"}),
    ):
        assert {s.verdict for s in step(knl).history} == {"proven"}


def staged() -> lk.Kernel:
    """A kernel with a copy whose type is open."""
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "y[i] = x[i]", assumptions="n >= 1")
    knl = knl.split_iname("i", 16).add_prefetch("x", ["i_inner"], default_tag=None)
    assert knl.temporary_by_name["x_r"].dtype is None
    return knl


def test_a_type_that_rounds_is_refused() -> None:
    with pytest.raises(lk.LoopkitError, match="x_r"):
        staged().add_dtypes({"x, y": "float64", "x_r": "float32"})
    kept = staged().add_dtypes({"x, y, x_r": "float64"})
    assert kept.history[-1].verdict == "proven"


@pytest.mark.parametrize("n", [1, 5, 33])
def test_a_schedule_at_one_size(n: int) -> None:
    knl = staged().fix_parameters(n=n).add_dtypes({"x, y, x_r": "float32"})
    assert {s.verdict for s in knl.history} == {"proven"}
    x = np.arange(n, dtype=np.float32)
    assert np.array_equal(run_on_host(knl, {"x": x, "y": 0 * x}, {})["y"], x)
