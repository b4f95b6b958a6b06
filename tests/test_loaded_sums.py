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


def staged(knl):
    """Each thread leaves its partial result in shared memory; then all add up those of all."""
    knl = knl.split_iname("k", 16).split_reduction_outward("k_inner")
    knl = knl.privatize_temporaries_with_inames("k_inner", "acc_part")
    knl = knl.set_temporary_address_space("acc_part", "shared")
    knl = knl.duplicate_inames("k_inner", "reads:acc_part and writes:acc", new_inames="thread")
    return knl.tag_inames("i: g.0, k_inner: l.0")


def by_levels(knl, direction, tags):
    """Partial results of groups of threads, and the sum of these."""
    knl = knl.split_iname("k", 40).split_iname("k_inner", 8)
    inames = "k_inner_inner" if direction == "inward" else ["k_outer", "k_inner_outer"]
    return getattr(knl, f"split_reduction_{direction}")(inames).tag_inames(tags)


def across(knl, iname, tags):
    """Blocks add what they have of a row, in launches of their own."""
    knl = knl.split_iname("k", 8).split_iname("k_outer", 2)
    return knl.realize_reduction(by="atomic", inames=iname).tag_inames(tags)


LEVELS = "k_inner_inner: l.0, k_inner_outer: l.1"
PARTS = {
    "staged": staged,
    "threads of rows": lambda k: by_levels(k, "inward", "i: g.0"),
    "lanes": lambda k: by_levels(k, "inward", "k_inner_inner: l.0"),
    "two levels": lambda k: by_levels(k, "inward", f"i: g.0, {LEVELS}"),
    "two levels, outward": lambda k: by_levels(k, "outward", f"i: g.0, {LEVELS}"),
    "two levels, rows one by one": lambda k: by_levels(k, "outward", LEVELS),
    "blocks": lambda k: across(k, "k_outer_inner", "i: g.1, k_outer_inner: g.0, k_inner: l.0"),
    "blocks, rows one by one": lambda k: across(k, "k_inner", "k_inner: g.0"),
    "launches": lambda k: across(k, "k_outer_outer", "k_inner: l.0"),
}


@pytest.mark.parametrize("way", PARTS)
@pytest.mark.parametrize("operation", ["sum", "max"])
def test_rows_in_parts(operation, way):
    """Bounds are the same for all that one row is made of, wherever that runs."""
    knl = rows(operation)
    made = PARTS[way](knl)
    proof = made.prove()
    assert proof.ok, str(proof)
    for lengths in ((1, 0, 2), *LENGTHS):
        given = numbers(lengths)
        due = knl.executor("reference")(**given)
        for order in ORDERS:
            found = made.executor("host", order=order, seed=3)(**given)
            np.testing.assert_array_equal(found, due)
