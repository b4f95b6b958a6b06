"""Substitution rules: an assignment made one, staged for a group, and expanded."""

import numpy as np

import loopkit.loopy as lp

knl = lp.make_kernel(
    "{ [i, j, k]: 0 <= i < n and 0 <= j, k < 16 }",
    """
    sq(x) := x*x
    for i
        for j
            <> norm[i, j] = sq(a[i, j]) + sq(b[i, j])
        end
        for k
            c[i, k] = norm[i, k] + norm[i, 15 - k]
        end
    end
    """,
    [
        lp.GlobalArg("a, b, c", np.float64, shape=("n", 16)),
        lp.TemporaryVariable("norm", np.float64, shape=("n", 16)),
        "...",
    ],
    assumptions="n >= 1",
)
ref_knl = knl
knl = lp.assignment_to_subst(knl, "norm")
knl = lp.split_iname(knl, "i", 8, outer_tag="g.0")
knl = lp.precompute(knl, "norm_subst", "k", temporary_name="norms", default_tag="l.auto")
knl = lp.tag_inames(knl, "k:l.0, i_inner:unr")
knl = lp.expand_subst(knl)
lp.auto_test_vs_ref(ref_knl, None, knl, parameters={"n": 19})
