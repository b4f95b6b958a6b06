"""Two kernels fused into one, their loops into one loop."""

import numpy as np

import loopkit.loopy as lp

exp_knl = lp.make_kernel(
    "{ [i]: 0 <= i < n }", "expr[i] = exp(x[i])", assumptions="n >= 1", name="exponential"
)
sum_knl = lp.make_kernel(
    "{ [j]: 0 <= j < n }", "out2[j] = 2*expr[j] + x[j]", assumptions="n >= 1", name="affine"
)
knl = lp.fuse_kernels([exp_knl, sum_knl], data_flow=[("expr", 0, 1)])
knl = lp.add_dtypes(knl, {"x": np.float64, "expr": np.float64, "out2": np.float64})
knl = lp.rename_iname(knl, "j", "i", existing_ok=True)
knl = lp.split_iname(knl, "i", 128, outer_tag="g.0", inner_tag="l.0")
x = np.linspace(0, 1, 1000)
evt, outs = knl(None, x=x, expr=np.empty_like(x))
assert len(outs) == 2
assert np.allclose(outs[1], 2 * np.exp(x) + x)
