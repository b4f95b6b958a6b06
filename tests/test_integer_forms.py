"""Whole numbers in several forms are one number, or an open question, and never called wrong."""

from __future__ import annotations

import numpy as np
import pytest
from seams import are_one_polynomial, parse_expression

import loopkit as lk


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("n//4*k + min(k, n % 4) + (32*o + i)", "n//4*k + min(k, n % 4) + 32*o + i", True),
        ("min(k, n) + (i + 1)", "1 + min(n, k) + i", True),
        ("max(k + 1, n*m) - i", "max(m*n, 1 + k) - i", True),
        ("min(k, n) + i", "max(k, n) + i", False),
        ("min(k, n) + i", "min(k, m) + i", False),
    ],
)
def test_polynomials_of_least_and_greatest(one: str, other: str, same: bool) -> None:
    assert are_one_polynomial(parse_expression(one), parse_expression(other)) is same


@pytest.mark.host
@pytest.mark.parametrize("late", [False, True])
def test_threads_reduce_what_was_joined_and_chunked(late: bool) -> None:
    text = lk.make_kernel(
        "{ [r, i, j]: 0 <= r < l and 0 <= i < n and 0 <= j < m }",
        "y[r] = sum((i, j), a[r, i, j]*w[j])",
        dtypes={"a, w, y": "float32"},
        assumptions="l, n, m >= 1",
        name="rows",
    )
    knl = text.join_inames("i, j", "both").chunk_iname("both", 4)
    tags = "both_outer: l.1, both_inner_inner: l.0, r: g.0"
    if late:
        knl = knl.split_iname("both_inner", 32).tag_inames(tags)
    else:
        knl = knl.tag_inames("both_outer: l.1").split_iname("both_inner", 32, inner_tag="l.0")
        knl = knl.tag_inames("r: g.0")
    assert knl.prove().ok
    rng = np.random.default_rng(0)
    for r, n, m in ((3, 7, 40), (1, 1, 1)):
        a = rng.uniform(-1, 1, (r, n, m)).astype(np.float32)
        w = rng.uniform(-1, 1, m).astype(np.float32)
        for order in ("ascending", "descending", "random"):
            found = knl.executor("host", order=order)(a=a, w=w)
            np.testing.assert_allclose(found, np.einsum("rij,j->r", a, w), rtol=1e-4, atol=1e-4)
