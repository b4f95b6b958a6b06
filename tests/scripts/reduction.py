"""Sums of rows by the threads of a group, and a maximum beside it."""

import numpy as np

import loopkit.loopy as lp

knl = lp.make_kernel(
    "{ [i, j]: 0 <= i < n and 0 <= j < 128 }",
    """
    <> total = sum(j, x[i, j])  {id=total}
    y[i] = total
    """,
    [lp.GlobalArg("x", np.float32), lp.GlobalArg("y", np.float32, shape=lp.auto), "..."],
    assumptions="n >= 1",
)
ref_knl = knl
knl = lp.tag_inames(knl, {"i": "g.0", "j": "l.0"})

for n in (1, 30):
    x = np.random.default_rng(n).uniform(size=(n, 128)).astype(np.float32)
    evt, (y,) = knl(None, x=x)
    assert np.allclose(y, x.sum(axis=1), rtol=1e-5)

most = lp.make_kernel(
    "{ [i]: 0 <= i < n }", "out[0] = max(i, x[i])", [lp.GlobalArg("x", np.float32), "..."]
)
most = lp.assume(most, "n >= 1")
_, (largest,) = most(None, x=np.float32([3, 8, 5]))
assert largest[0] == 8
