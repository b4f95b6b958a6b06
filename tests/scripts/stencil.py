"""A stencil of five points with its halo in local memory."""

import numpy as np

import loopkit.loopy as lp

knl = lp.make_kernel(
    "{ [i, j]: 0 <= i, j < n }",
    "z[i, j] = -2*u[i + 1, j + 1] + u[i, j + 1] + u[i + 1, j] + u[i + 2, j + 1] + u[i + 1, j + 2]",
    [
        lp.GlobalArg("u", np.float64, shape=("n + 2", "n + 2")),
        lp.GlobalArg("z", np.float64, shape=("n", "n")),
        "...",
    ],
)
knl = lp.assume(knl, "n >= 1")
ref_knl = knl


def variant(knl):
    knl = lp.split_iname(knl, "i", 16, outer_tag="g.1", inner_tag="l.1")
    knl = lp.split_iname(knl, "j", 16, outer_tag="g.0", inner_tag="l.0")
    return lp.add_prefetch(
        knl, "u", ["i_inner", "j_inner"], fetch_bounding_box=True, default_tag="l.auto"
    )


lp.auto_test_vs_ref(ref_knl, None, variant(knl), parameters={"n": 41})
