"""A matrix product in tiles of 16, both operands staged in local memory."""

import numpy as np

import loopkit.loopy as lp

knl = lp.make_kernel(
    "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
    "c[i, j] = sum(k, a[i, k]*b[k, j])",
    name="matmul",
    lang_version=(2018, 2),
)
knl = lp.add_and_infer_dtypes(knl, {"a": np.float32, "b": np.float32})
knl = lp.assume(knl, "n, m, l >= 1")
ref_knl = knl

knl = lp.split_iname(knl, "i", 16, outer_tag="g.0", inner_tag="l.1")
knl = lp.split_iname(knl, "j", 16, outer_tag="g.1", inner_tag="l.0")
knl = lp.split_iname(knl, "k", 16)
knl = lp.add_prefetch(
    knl,
    "a",
    ["k_inner", "i_inner"],
    fetch_outer_inames="i_outer, j_outer, k_outer",
    default_tag="l.auto",
)
knl = lp.add_prefetch(
    knl,
    "b",
    ["j_inner", "k_inner"],
    fetch_outer_inames="i_outer, j_outer, k_outer",
    default_tag="l.auto",
)
knl = lp.prioritize_loops(knl, "k_outer, k_inner")
assert "__shared__" in lp.generate_code_v2(knl).device_code()

op_map = lp.get_op_map(knl, subgroup_size=32)
print(op_map)
for sizes in ({"n": 48, "m": 64, "l": 32}, {"n": 37, "m": 5, "l": 21}):
    lp.auto_test_vs_ref(
        ref_knl, None, knl, op_count=[2 * np.prod(list(sizes.values()))], parameters=sizes
    )
