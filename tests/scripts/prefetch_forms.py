"""One array staged, asked for in many ways."""

import numpy as np

import loopkit.loopy as lp

knl = lp.make_kernel(
    "{ [i, k]: 0 <= i < n and 0 <= k < 16 }",
    "y[i] = sum(k, a[i]*b[k])  {id=all}",
    [lp.GlobalArg("a, b, y", np.float64), "..."],
    assumptions="n >= 1",
)
knl = lp.split_iname(knl, "i", 16, outer_tag="g.0", inner_tag="l.0")
a, b = np.random.default_rng(0).uniform(size=(2, 16))

variants = [
    lp.add_prefetch(knl, "a", ["i_inner"], default_tag="l.auto"),
    lp.add_prefetch(knl, "a", "i_inner", fetch_outer_inames=frozenset(["i_outer"])),
    lp.add_prefetch(knl, "b", ["k"], temporary_name="t", temporary_scope=lp.AddressSpace.PRIVATE),
    lp.add_prefetch(knl, "b", "k", default_tag=None, within="id:all"),
    lp.add_prefetch(knl, "b[:]", default_tag="l.auto", prefetch_insn_id="fetch"),
    lp.tag_inames(
        lp.add_prefetch(knl, "b", "k", ["kk"], None, fetch_outer_inames="i_outer"), {"kk": "l.0"}
    ),
]
for variant in variants:
    evt, (y,) = variant(None, a=a, b=b)
    assert np.allclose(y, a * b.sum())
