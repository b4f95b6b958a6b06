"""Derivatives on elements: the number of nodes is fixed later, and is declared nowhere."""

import numpy as np

import loopkit.loopy as lp

knl = lp.make_kernel(
    "{ [n, m, k]: 0 <= n, m < Np and 0 <= k < K }",
    """
    for k, n
        <> du_dr = sum(m, Dr[n, m]*u[k, m])
        <> du_ds = sum(m, Ds[n, m]*u[k, m])
        rhs[k, n] = rx[k]*du_dr + sx[k]*du_ds  {id=store}
    end
    """,
    [
        lp.GlobalArg("u, rhs", np.float64, shape="K, Np", order="C"),
        lp.GlobalArg("Dr, Ds", np.float64, shape="Np, Np", order="C"),
        lp.GlobalArg("rx, sx", np.float64, shape="K"),
        lp.ValueArg("K", np.int32, approximately=1000),
    ],
    assumptions="K >= 1",
)
knl = lp.fix_parameters(knl, Np=10)
ref_knl = knl
knl = lp.split_iname(knl, "k", 4, outer_tag="g.0", slabs=(0, 1))
knl = lp.tag_inames(knl, {"n": "l.0", "k_inner": "l.1"})
for name, sweep in (("u", ["m", "k_inner"]), ("Dr", ["m", "n"])):
    knl = lp.add_prefetch(knl, name, sweep, fetch_outer_inames="k_outer", default_tag="l.auto")
lp.auto_test_vs_ref(ref_knl, None, knl, parameters={"K": 37})
