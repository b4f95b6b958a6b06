"""Reductions of rows of loaded length, several in a block: groups of threads whose loops differ."""

import numpy as np
import pytest

import loopkit as lk

ORDERS = ("ascending", "descending", "random")
TEXT = """
for i
    <int32> a = rowptr[i]
    <int32> b = rowptr[i + 1]
    RESULT
end
"""
RESULTS = {
    "sum": "y[i] = sum(k, x[k])",
    "max": "y[i] = max(k, x[k])",
    "product": "y[i] = product(k, x[k])",
    "any": "y[i] = any(k, x[k] > 7)",
    "argmin": "least[i], y[i] = argmin(k, x[k], k)",
    "two": "<> top = max(k, x[k])\n    y[i] = sum(k, x[k] - top)",
}
LENGTHS = ((1,), (3, 1, 2), (5, 40, 32, 1, 33), (64, 7, 9, 150, 2, 1, 8, 31))
GROUPS = {  # threads of a row, and rows of a block
    "one lane": (1, 7),
    "odd groups across warps": (5, 7),
    "some rows a warp": (8, 5),
    "half a warp": (16, 4),
    "warps": (32, 4),
    "several warps": (64, 3),
    "odd groups of warps": (113, 2),
}
WAYS = (None, "shuffle", "shared", "atomic")


def rows(operation):
    """Rows of which a pointer says where each begins."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k]: a <= k < b }"],
        TEXT.replace("RESULT", RESULTS[operation]),
        [
            lk.GlobalArg("rowptr", "int32", shape="n + 1"),
            lk.GlobalArg("x", "int64", shape="nnz"),
            ...,
        ],
        assumptions="n >= 1 and nnz >= 0",
        name=f"rows_{operation}",
    )
    return knl.assume_increasing("rowptr").assume_within("rowptr", 0, "nnz + 1")


def numbers(lengths):
    rowptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return {"rowptr": rowptr, "x": np.random.default_rng(len(lengths)).permutation(rowptr[-1]) - 4}


def shared(knl, group, by):
    threads, rows_ = GROUPS[group]
    knl = knl.realize_reduction(by=by) if by else knl
    knl = knl.split_iname("k", threads, inner_tag="l.0")
    return knl.split_iname("i", rows_, outer_tag="g.0", inner_tag="l.1")


def is_offered(operation, group, by):
    """Shuffles reach groups in a warp, or of whole warps; no atomic update has two results."""
    if by == "shuffle":
        return group not in ("odd groups across warps", "odd groups of warps")
    return by != "atomic" or operation != "argmin"


@pytest.mark.share(3)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("operation", RESULTS)
@pytest.mark.parametrize("by", WAYS)
def test_rows_of_a_block(operation, group, by):
    knl = rows(operation)
    if not is_offered(operation, group, by):
        with pytest.raises(lk.IllegalTransformError):
            shared(knl, group, by).cuda()
        return
    made = shared(knl, group, by)
    proof = made.prove()
    assert proof.ok, str(proof)
    for lengths in LENGTHS:
        given = numbers(lengths)
        due = knl.executor("reference")(**given)
        for order in ORDERS:
            found = made.executor("host", order=order, seed=3)(**given)
            for one, other in zip(np.atleast_2d(found), np.atleast_2d(due), strict=True):
                np.testing.assert_array_equal(one, other)
