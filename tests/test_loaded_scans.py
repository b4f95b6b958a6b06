"""Running reductions in loops whose bounds are loaded: each row of a CSR matrix is scanned."""

from dataclasses import replace
from itertools import pairwise
from unittest import mock

import numpy as np
import pymbolic.primitives as prim
import pytest
from seams import scans as _scans

import loopkit as lk

ORDERS = ("ascending", "descending", "random")
ROWS = """
for i
    <int32> a = rowptr[i]
    <int32> b = rowptr[i + 1]
    for j
        y[j] = sum(k, x[k])
    end
end
"""
LENGTHS = ((0,), (1,), (0, 0, 3), (5, 0, 32, 1, 33), (64, 7, 0, 150), tuple(range(9)))


def csr(grows="a <= k <= j", text=ROWS, *, is_increasing=True):
    """Rows of which a pointer says where each begins, with running sums in each."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: a <= j < b }", f"{{ [k]: {grows} }}"],
        text,
        [
            lk.GlobalArg("rowptr", "int32", shape="n + 1"),
            lk.GlobalArg("x, y", "int64", shape="nnz"),
            ...,
        ],
        assumptions="n >= 1 and nnz >= 0",
        name="scan_csr",
    )
    return knl.assume_increasing("rowptr") if is_increasing else knl


def scanned(knl=None):
    return (knl or csr()).realize_reduction(force_scan=True)


SCHEDULES = {
    "sequential": lambda: scanned(),
    "split": lambda: scanned().split_iname("j", 8),
    "split first": lambda: scanned(csr().split_iname("j", 8)),
    "a thread each": lambda: scanned().split_iname("i", 4, outer_tag="g.0", inner_tag="l.0"),
    "a warp each": lambda: scanned().split_iname("j", 32, inner_tag="l.0").tag_inames("i: g.0"),
    "few threads": lambda: scanned().split_iname("j", 5, inner_tag="l.0"),
    "a block each": lambda: scanned().split_iname("j", 113, inner_tag="l.0").tag_inames("i: g.0"),
    "tagged first": lambda: scanned(csr().tag_inames("i: g.0")).split_iname(
        "j", 64, inner_tag="l.0"
    ),
}


def data(lengths):
    rowptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    x = np.random.default_rng(len(lengths)).integers(-9, 9, rowptr[-1]).astype(np.int64)
    return rowptr, x


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    knl = SCHEDULES[name]()
    proof = knl.prove()
    assert proof.ok, str(proof)
    for lengths in LENGTHS:
        rowptr, x = data(lengths)
        due = [x[a:b].cumsum() for a, b in pairwise(rowptr)]
        for order in ORDERS:
            y = knl.executor("host", order=order)(rowptr=rowptr, x=x, nnz=len(x))
            np.testing.assert_array_equal(y, np.concatenate(due))


def test_generated_texts(golden):
    both = (SCHEDULES["sequential"](), SCHEDULES["a warp each"]())
    golden("loaded_scans.txt", "\n".join(f"{k}\n{k.cuda()}" for k in both))


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("y[j] = max(k, x[k])", np.maximum.accumulate),
        ("y[j] = reduce(segmented(sum), k, x[k], x[k] > 5)", None),
        ("<> m, y[j] = argmin(k, x[k], k)", None),
    ],
)
def test_other_operations(text, due):
    kernel = csr(text=ROWS.replace("y[j] = sum(k, x[k])", text))
    for knl in (scanned(kernel), scanned(kernel).split_iname("j", 32, inner_tag="l.0")):
        assert knl.prove().ok
        for lengths in LENGTHS[2:5]:
            rowptr, x = data(lengths)
            given = {"rowptr": rowptr, "x": x, "nnz": len(x)}
            expected = kernel.executor("reference")(**given)
            for order in ORDERS:
                found = knl.executor("host", order=order)(**given)
                if "argmin" in text:  # any of several least ones
                    found, expected_ = x[found], x[expected]
                    np.testing.assert_array_equal(found, expected_)
                else:
                    np.testing.assert_array_equal(found, expected)


def test_exclusive():
    knl = scanned(csr("a <= k < j")).split_iname("j", 32, inner_tag="l.0").tag_inames("i: g.0")
    assert knl.prove().ok
    rowptr, x = data(LENGTHS[4])
    due = [x[a:b].cumsum() - x[a:b] for a, b in pairwise(rowptr)]
    for order in ORDERS:
        y = knl.executor("host", order=order)(rowptr=rowptr, x=x)
        np.testing.assert_array_equal(y, np.concatenate(due))


def test_from_the_start_of_all():
    """What stands before a row is added ahead of its loop, where there is a row at all."""
    kernel = csr("0 <= k <= j")
    for knl in (scanned(kernel), scanned(kernel).split_iname("j", 32, inner_tag="l.0")):
        assert knl.prove().ok
        for lengths in LENGTHS:
            rowptr, x = data(lengths)
            for order in ORDERS:
                y = knl.executor("host", order=order)(rowptr=rowptr, x=x)
                np.testing.assert_array_equal(y, x.cumsum())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        # What one row's sum stores, the next term of it reads.
        (
            lambda: scanned(csr(text=ROWS.replace("x[k]", "y[k]"))),
            "might read y",
        ),
        # Rows end where data say, which say so anew in each iteration.
        (
            lambda: scanned(csr(text=ROWS.replace("y[j] =", "b = b - 1 {id=b}\n        y[j] ="))),
            "b",
        ),
        # Warps of a block have rows of other lengths, and all of a block come to a scan.
        (
            lambda: (
                scanned()
                .split_iname("j", 32, inner_tag="l.0")
                .split_iname("i", 4, outer_tag="g.0", inner_tag="l.1")
            ),
            "may differ between threads",
        ),
        # Without it, rows of two blocks may overlap.
        (
            lambda: scanned(csr(is_increasing=False)).tag_inames("i: g.0"),
            r"assume_increasing\('rowptr'\)",
        ),
    ],
)
def test_not_accepted(make, says):
    with pytest.raises(lk.LoopkitError, match=says):
        make()


def loops(original):
    return lambda self, outer: ("i", *original(self, outer))


def nothing_new(original):
    def parts(self, along):
        (part,) = original(self, along)
        earlier = prim.Variable("j") - 1
        return [replace(part, values={"k": earlier}, of_text={"k": earlier})]

    return parts


@pytest.mark.parametrize(
    ("name", "change"), [("loops", loops), ("parts", nothing_new)], ids=["rows", "terms"]
)
def test_faults(name, change):
    """An accumulator that lasts through all rows, or takes in other terms, is found."""
    original = getattr(_scans._Scan, name)
    with (
        mock.patch.object(_scans._Scan, name, change(original)),
        pytest.raises((lk.IllegalTransformError, lk.UndecidedError)),
    ):
        scanned()


@pytest.mark.parametrize("text", ["y[j] = sum(k, x[k])", "<> t = x[j]\n        y[j] = t"])
def test_threads_without_a_row_know_no_bounds(text):
    """A loop with loaded bounds is run by threads that have loaded them."""
    knl = csr(text=ROWS.replace("y[j] = sum(k, x[k])", text))
    knl = knl.split_iname("i", 4, outer_tag="g.0", inner_tag="l.0")
    proof = knl.prove()
    assert proof.ok, str(proof)
    rowptr, x = data(LENGTHS[3])
    due = knl.executor("reference")(rowptr=rowptr, x=x)
    for order in ORDERS:
        np.testing.assert_array_equal(knl.executor("host", order=order)(rowptr=rowptr, x=x), due)
