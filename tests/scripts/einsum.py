"""An einsum, its loops given to groups and local axes."""

import numpy as np

import loopkit.loopy as lp

knl = lp.make_einsum("eij,ej,ei->ei", ["d", "u", "s"])
knl = lp.add_dtypes(knl, {"d": np.float64, "u": np.float64, "s": np.float64})
knl = lp.fix_parameters(knl, **{s: 10 for s in knl.sizes if s != knl.sizes[0]})
ref_knl = knl
print(knl)
knl = lp.tag_inames(knl, [("e", "g.0"), ("i", "l.0")])
lp.auto_test_vs_ref(ref_knl, None, knl, parameters={knl.sizes[0]: 17})
