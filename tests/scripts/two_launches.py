"""Global barriers: two stages, each a launch."""

import numpy as np

import loopkit.loopy as lp

knl = lp.make_kernel(
    "{ [i, j]: 0 <= i, j < n }",
    """
    <> tmp[i] = 2*x[i]            {id=first}
    ... gbarrier                  {id=bar,dep=first}
    y[j] = tmp[n - 1 - j]         {id=second,dep=bar}
    """,
    [
        lp.GlobalArg("x, y", np.float64, shape=("n",)),
        lp.TemporaryVariable("tmp", np.float64, shape=("n",), address_space=lp.AddressSpace.GLOBAL),
        "...",
    ],
    assumptions="n >= 1",
)
knl = lp.split_iname(knl, "i", 32, outer_tag="g.0", inner_tag="l.0")
knl = lp.split_iname(knl, "j", 32, outer_tag="g.0", inner_tag="l.0")
x = np.arange(100.0)
evt, (y,) = knl(None, x=x)
assert np.array_equal(y, 2 * x[::-1])
