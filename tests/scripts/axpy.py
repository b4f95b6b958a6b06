"""A vector update: types, an assumption, and a split loop."""

import numpy as np

import loopkit.loopy as lp
from loopkit.loopy.version import LOOPY_USE_LANGUAGE_VERSION_2018_2  # noqa: F401

knl = lp.make_kernel(
    "{ [i]: 0 <= i < n }",
    "y[i] = a*x[i] + y[i]",
    [
        lp.GlobalArg("x", np.float32, shape=("n",)),
        lp.GlobalArg("y", np.float32, shape=("n",)),
        lp.ValueArg("a", np.float32),
        lp.ValueArg("n", np.int32),
    ],
    name="axpy",
    target=lp.PyOpenCLTarget(),
)
ref_knl = knl
knl = lp.assume(knl, "n >= 1 and n mod 4 = 0")
knl = lp.split_iname(knl, "i", 4, inner_tag="unr")
knl = lp.split_iname(knl, "i_outer", 64, outer_tag="g.0", inner_tag="l.0")
print(lp.generate_code_v2(knl).device_code())

queue = None
x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
want = 3 * x + y
evt, (out,) = knl(queue, x=x, y=y, a=3)
evt.wait()
assert np.array_equal(out, want)

ctx = None
lp.auto_test_vs_ref(ref_knl, ctx, knl, [2 * 1000], ["flops"], parameters={"n": 1000, "a": 3})
