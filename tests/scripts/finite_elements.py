"""Element matrices: a rule that holds a sum, computed once for each element, or staged."""

import numpy as np

import loopkit.loopy as lp

nbf, nq, dim = 6, 7, 2
knl = lp.make_kernel(
    f"{{ [c, i, j, q, a, b]: 0 <= c < nc and 0 <= i, j < {nbf} and 0 <= q < {nq} "
    f"and 0 <= a, b < {dim} }}",
    """
    grad(f, x) := sum(b, inverse[c, b, x]*slope[q, f, b])
    A[c, i, j] = sum((q, a), w[q]*volume[c]*grad(i, a)*grad(j, a))
    """,
    [
        lp.GlobalArg("inverse", np.float64, shape=("nc", dim, dim)),
        lp.GlobalArg("volume", np.float64, shape="nc"),
        lp.ConstantArg("slope", np.float64, shape=(nq, nbf, dim)),
        lp.ConstantArg("w", np.float64, shape=(nq,)),
        lp.GlobalArg("A", np.float64, shape=("nc", nbf, nbf)),
        lp.ValueArg("nc", np.int32),
    ],
    assumptions="nc >= 1",
)
ref_knl = knl


def once(knl):
    knl = lp.precompute(knl, "grad", "i, j, q, a", precompute_outer_inames="c", default_tag=None)
    return lp.tag_inames(knl, "c:g.0")


def staged(knl):
    knl = lp.tag_inames(knl, {"c": "g.0", "i": "l.0"})
    # What j runs over is fetched as well: only c stands outside.
    return lp.add_prefetch(knl, "slope", "q, i, b", fetch_outer_inames="c", default_tag="l.auto")


rng = np.random.default_rng(0)
data = {
    "inverse": rng.uniform(size=(9, dim, dim)),
    "volume": rng.uniform(size=9),
    "slope": rng.uniform(size=(nq, nbf, dim)),
    "w": rng.uniform(size=nq),
}
grad = np.einsum("cba,qib->cqia", data["inverse"], data["slope"])
want = np.einsum("q,c,cqia,cqja->cij", data["w"], data["volume"], grad, grad)
for variant in (once, staged):
    evt, (found,) = variant(knl)(None, **data)
    assert np.allclose(found, want)
lp.auto_test_vs_ref(ref_knl, None, once(knl), parameters={"nc": 3})
