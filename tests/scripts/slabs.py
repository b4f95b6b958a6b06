"""Tiles with code of their own at the end, staged; what holds of the sizes is said late."""

import numpy as np

import loopkit.loopy as lp

knl = lp.make_kernel(
    "{ [i, k]: 0 <= i < n and 0 <= k < l }",
    "y[i] = sum(k, a[i, k]*x[k])",
    [
        lp.GlobalArg("a", np.float64, shape=(64, 64)),
        lp.GlobalArg("x, y", np.float64, shape=64),
        "...",
    ],
)
knl = lp.assume(knl, "1 <= n, l and n <= 64 and l <= 64")
ref_knl = knl

knl = lp.split_iname(knl, "i", 16, outer_tag="g.0", inner_tag="l.0")
knl = lp.split_iname(knl, "k", 16, slabs=(0, 1))
knl = lp.add_prefetch(knl, "x", ["k_inner"], default_tag="l.auto")
code = lp.generate_code_v2(knl).device_code()
assert "k_outer_last" in code

lp.auto_test_vs_ref(ref_knl, None, knl, parameters={"n": 41, "l": 23})
