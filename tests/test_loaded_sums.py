"""Reductions of rows of loaded length, several in a block: groups of threads whose loops differ."""

from itertools import pairwise

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


def levels(apart):
    """Rows of a triangle by level: what a level finds is copied behind it, for the next to read."""
    bounds = "<> q0 = level[l]\n<> q1 = level[l + 1]\n" if apart else ""
    knl = lk.make_kernel(
        [
            "{ [l]: 0 <= l < nl }",
            "{ [m]: m0 <= m < m1 }",
            "{ [k]: k0 <= k < k1 }",
            "{ [c]: q0 <= c < q1 }" if apart else "{ [c]: m0 <= c < m1 }",
        ],
        f"""
        for l
            <> m0 = level[l]
            <> m1 = level[l + 1]
            for m
                <> k0 = rowptr[m]
                <> k1 = rowptr[m + 1]
                y[m] = b[m] - sum(k, a[k]*x[col[k]])
            end
            {"... gbarrier" * apart}
            {bounds}
            x[c] = y[c]
            {"... gbarrier" * apart}
        end
        """,
        [
            lk.TemporaryVariable("y", "int64", shape="n", address_space=lk.AddressSpace.GLOBAL),
            lk.GlobalArg("x, b", "int64", shape="n"),
            lk.GlobalArg("a", "int64", shape="nnz"),
            lk.GlobalArg("col", "int32", shape="nnz"),
            lk.GlobalArg("rowptr", "int32", shape="n + 1"),
            lk.GlobalArg("level", "int32", shape="nl + 1"),
            ...,
        ],
        assumptions="n >= 1 and nl, nnz >= 0",
        name="levels",
    )
    for pointer, end in (("level", "n + 1"), ("rowptr", "nnz + 1")):
        knl = knl.assume_increasing(pointer).assume_within(pointer, 0, end)
    return knl.assume_within("col", 0, "n")


def strided(knl, iname, tag):
    """Blocks go through the rows of a level, whose number data say."""
    return knl.split_iname(iname, 8, inner_tag=tag).split_iname(
        f"{iname}_outer", 3, inner_tag="g.0"
    )


SOLVES = {
    "threads": (False, lambda k: k.split_iname("m", 8, inner_tag="l.0")),
    "blocks": (True, lambda k: strided(k, "m", "l.0")),
    "lanes of blocks": (
        True,
        lambda k: strided(k, "m", "l.1").split_iname("k", 4, inner_tag="l.0"),
    ),
    "lanes of blocks, first": (
        True,
        lambda k: strided(k.split_iname("k", 4, inner_tag="l.0"), "m", "l.1"),
    ),
}


@pytest.mark.parametrize("way", SOLVES)
def test_rows_of_levels(way):
    """Bounds within bounds: only who has a row comes to a loop whose bounds that row loads."""
    apart, schedule = SOLVES[way]
    knl = levels(apart)
    made = schedule(knl)
    made = strided(made, "c", "l.0") if apart else made.split_iname("c", 8, inner_tag="l.0")
    proof = made.prove()
    assert proof.ok, str(proof)
    rng = np.random.default_rng(0)
    size, level = 40, np.array([0, 7, 7, 20, 40], np.int32)
    lower = np.zeros((size, size), np.int64)
    for start, end in pairwise(level):
        lower[start:end, :start] = rng.integers(1, 4, (end - start, start))
    lower *= rng.random((size, size)) < 0.2
    row, col = np.nonzero(lower)
    given = {
        "level": level,
        "rowptr": np.searchsorted(row, np.arange(size + 1)).astype(np.int32),
        "col": col.astype(np.int32),
        "a": lower[row, col],
        "b": rng.integers(0, 9, size),
    }
    due = np.linalg.solve(lower + np.eye(size), given["b"]).round()
    for order in ORDERS:
        x = np.zeros(size, np.int64)
        made.executor("host", order=order, seed=3)(x=x, **given)
        np.testing.assert_array_equal(x, due)


CONDITIONS = {
    "data": "if flag[i] > 0\n{}\n{}\nend",
    "bounds": "{}\nif b > a + 2\n{}\nend",
}
UNDER = {
    "inward": lambda k: k.split_iname("k", 8).split_reduction_inward("k_inner"),
    "outward": lambda k: k.split_iname("k", 8).split_reduction_outward("k_inner"),
    "warp": lambda k: k.split_iname("k", 32),
}


@pytest.mark.parametrize("way", UNDER)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_rows_under_conditions(condition, way):
    """Who does not come to a row has no bounds of it, and reads none."""
    loads = "<int32> a = rowptr[i]\n<int32> b = rowptr[i + 1]"
    text = CONDITIONS[condition].format(loads, "y[i] = sum(k, x[k])")
    shapes = {"rowptr": ("int32", "n + 1"), "flag": ("int32", "n"), "x": ("int64", "nnz")}
    args = [lk.GlobalArg(n, t, shape=s) for n, (t, s) in shapes.items() if n in text]
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k]: a <= k < b }"],
        f"for i\n{text}\nend",
        [*args, lk.GlobalArg("y", "int64", shape="n"), ...],
        assumptions="n >= 1 and nnz >= 0",
        name="chosen",
    )
    knl = knl.assume_increasing("rowptr").assume_within("rowptr", 0, "nnz + 1")
    made = UNDER[way](knl).tag_inames("i: g.0, k_inner: l.0")
    proof = made.prove()
    assert proof.ok, str(proof)
    given = numbers(LENGTHS[3])
    if condition == "data":
        given["flag"] = np.arange(len(LENGTHS[3]), dtype=np.int32) % 2
    y = np.full(len(LENGTHS[3]), 5)
    due = knl.executor("reference")(y=y, **given)
    for order in ORDERS:
        found = made.executor("host", order=order, seed=3)(y=y.copy(), **given)
        np.testing.assert_array_equal(found, due)


def test_loops_of_loaded_length_under_a_condition_of_a_block():
    """Threads that sum together inside of the loop come to it where its bounds are loaded."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k]: a <= k < b }", "{ [q]: 0 <= q < 16 }"],
        """
        for i
            if flag[i] > 0
                <> a = rowptr[i]
                <> b = rowptr[i + 1]
                y[k] = sum(q, x[k, q])
            end
        end
        """,
        [
            lk.GlobalArg("flag", "int32", shape="n"),
            lk.GlobalArg("rowptr", "int32", shape="n + 1"),
            lk.GlobalArg("x", "float32", shape="nnz, 16"),
            lk.GlobalArg("y", "float32", shape="nnz"),
            ...,
        ],
        assumptions="n >= 1 and nnz >= 0",
    ).assume_within("rowptr", 0, "nnz + 1")
    assert knl.assume_increasing("rowptr").tag_inames("i: g.0, q: l.0").prove().ok


def test_loops_of_a_fetch_have_bounds_that_were_loaded(monkeypatch) -> None:
    """Without the condition of the load, the fetch would run up to what nobody has written."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [r]: 0 <= r < hi }"],
        """
        if flag[0] > 0
            <> hi = ends[i]
            y[i] = sum(r, x[r])
        end
        """,
        [lk.GlobalArg("x", "int32", shape="m"), lk.GlobalArg("y", is_input=True), ...],
        dtypes={"x, y": "int32", "flag, ends": "int32"},
    )
    fetched = knl.add_prefetch("x", [], temporary_address_space="private")
    for flag in (0, 1):
        given = {"flag": np.array([flag]), "ends": np.array([2, 0, 3]), "m": 4}
        given = {"x": np.arange(4) + 1, **given}
        given = {n: np.asarray(v).astype("int32") for n, v in given.items() if n != "m"}
        for name in ("reference", "host"):
            y = fetched.executor(name)(y=np.full(3, 7, np.int32), **given)
            np.testing.assert_array_equal(y, [3, 0, 6] if flag else [7, 7, 7])
    monkeypatch.setattr("loopkit.transforms._staging._loading", lambda *_: [])
    with pytest.raises(lk.UndecidedError, match="whether 'hi' is loaded where 'fetch_x' runs"):
        knl.add_prefetch("x", [], temporary_address_space="private")
