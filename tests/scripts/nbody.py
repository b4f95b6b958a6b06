"""Potentials of particles: tiles of places in local memory, filled by the threads of a group."""

import numpy as np

import loopkit.loopy as lp

knl = lp.make_kernel(
    "[N] -> { [i, j, k]: 0 <= i, j < N and 0 <= k < 3 }",
    """
    for i
        <> mine[k] = x[i, k]  {dup=k, id=load}
        pot[i] = sum(j, 1/sqrt(sum(k, (mine[k] - x[j, k])**2)) if i != j else 0)  {dep=load}
    end
    """,
    [
        lp.GlobalArg("x", np.float32, shape=lp.auto, order="F"),
        lp.GlobalArg("pot", np.float32, shape="N"),
        lp.ValueArg("N", np.int32, approximately=1000),
    ],
    assumptions="N >= 2",
)
ref_knl = knl
knl = lp.split_iname(knl, "i", 32, outer_tag="g.0", inner_tag="l.0")
knl = lp.split_iname(knl, "j", 32)
knl = lp.add_prefetch(
    knl,
    "x[j,k]",
    ["j_inner", "k"],
    ["x_fetch_j", "x_fetch_k"],
    fetch_outer_inames="i_outer, j_outer",
    default_tag=None,
)
knl = lp.tag_inames(knl, {"x_fetch_k": "unr", "x_fetch_j": "l.0"})
knl = lp.prioritize_loops(knl, ["j_outer", "j_inner"])
assert "__shared__" in lp.generate_code_v2(knl).device_code()

x = np.asfortranarray(np.random.default_rng(0).uniform(size=(70, 3)).astype(np.float32))
distance = np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))
np.fill_diagonal(distance, np.inf)
evt, (pot,) = knl(None, x=x)
assert np.allclose(pot, (1 / distance).sum(axis=1), rtol=1e-4)
lp.auto_test_vs_ref(ref_knl, None, knl, parameters={"N": 40})
