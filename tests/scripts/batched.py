"""Products of small matrices, one for each thread, whose data stay in registers."""

import numpy as np

import loopkit.loopy as lp

knl = lp.make_kernel(
    "{ [b, i, j, k]: 0 <= b < nb and 0 <= i, j, k < 6 }",
    """
    for b
        for i, j
            out[b, i, j] = sum(k, a[b, i, k]*a[b, j, k])  {id=gram}
        end
    end
    """,
    [lp.GlobalArg("a, out", np.float64, shape=("nb", 6, 6)), "..."],
    assumptions="nb >= 1",
)
ref_knl = knl
knl = lp.split_iname(knl, "b", 32, outer_tag="g.0", inner_tag="l.0")
knl = lp.tag_inames(knl, "k:unr")
knl = lp.add_prefetch(knl, "a", sweep_inames=["i", "j", "k"], default_tag=None)
lp.auto_test_vs_ref(ref_knl, None, knl, parameters={"nb": 45})
