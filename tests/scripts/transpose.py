"""A transposition through a padded tile."""

import numpy as np

import loopkit.loopy as lp

knl = lp.make_kernel(
    "{ [i, j]: 0 <= i, j < n }",
    "out[i, j] = a[j, i]",
    [
        lp.GlobalArg("out", np.float32, shape=("n", "n")),
        lp.GlobalArg("a", np.float32, shape=("n", "n")),
        "...",
    ],
)
knl = lp.assume(knl, "n >= 1")
ref_knl = knl
knl = lp.split_iname(knl, "i", 16, outer_tag="g.0", inner_tag="l.1")
knl = lp.split_iname(knl, "j", 16, outer_tag="g.1", inner_tag="l.0")
knl = lp.add_prefetch(knl, "a", ["i_inner", "j_inner"], default_tag="l.auto")
knl = lp.add_padding_to_avoid_bank_conflicts(knl, None, n=64)
assert any(temp.padding for temp in knl.temporary_variables.values())

a = np.random.default_rng(0).uniform(size=(50, 50)).astype(np.float32)
knl = lp.set_options(knl, return_dict=True)
evt, outs = knl(None, a=a, out_host=True)
assert np.array_equal(outs["out"], a.T)
