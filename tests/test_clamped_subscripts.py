"""Staged copies of what is read through subscripts of several affine pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import to_text
from staging_checks import check_fetch, instances

import loopkit as lk

SIZES = (1, 2, 3, 15, 16, 17, 33)


def tiled(value: str, **tags: str) -> lk.Kernel:
    kernel = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"y[i] = {value}",
        [lk.GlobalArg("x", shape="n"), ...],
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    )
    return kernel.split_iname("i", 16, **tags)


def same(before: lk.Kernel, after: lk.Kernel) -> None:
    """The two compute the same on the reference executor, with and without partial tiles."""
    for n in SIZES:
        x = np.arange(1, n + 1, dtype=np.float32)
        wanted = before.executor("reference")(x=x)
        np.testing.assert_array_equal(after.executor("reference")(x=x), wanted, err_msg=f"n={n}")


CASES = {
    "x[max(i - 1, 0)]": 16,
    # The last tile of one cell reads that alone, all others read from the next on.
    "x[min(i + 1, n - 1)]": 17,
    "x[max(i - 1, 0)] + x[i] + x[min(i + 1, n - 1)]": 18,
    "x[min(max(i - 3, 0), n - 1)] + x[i]": 19,
    "x[min(i, 7)]": 8,
    "x[max((i - 1) // 2, 0)] + x[min(i // 2 + 1, n - 1)]": 10,
    "x[if(i % 2 == 0, i, i - 1)]": 15,
    "x[min(i % 4, n - 1)]": 4,
    "x[2*(min(i, n - 1) // 2)]": 8,
}


@pytest.mark.parametrize("value", CASES)
def test_footprint(value: str) -> None:
    before = tiled(value)
    after = before.add_prefetch("x", "i_inner", default_tag=None)
    assert after.history[-1].verdict == "proven"
    assert after.temporary_by_name["x_r"].shape == (CASES[value],)
    same(before, after)


def test_in_two_dimensions() -> None:
    kernel = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        "y[i, j] = x[max(i - 1, 0), j] + x[i, min(j + 1, n - 1)]",
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    )
    before = kernel.split_iname("i", 4).split_iname("j", 8)
    before = before.prioritize_loops("i_outer, j_outer, i_inner, j_inner")
    after = before.add_prefetch("x", "i_inner, j_inner", default_tag=None)
    assert after.temporary_by_name["x_r"].shape == (5, 9)
    for n in (1, 3, 9):
        x = np.arange(n * n, dtype=np.float32).reshape(n, n)
        wanted = before.executor("reference")(x=x)
        np.testing.assert_array_equal(after.executor("reference")(x=x), wanted)


@settings(max_examples=15, deadline=None)
@given(
    shift=st.integers(-4, 4),
    scale=st.sampled_from([1, 1, 2]),
    low=st.integers(0, 2),
    among=st.sampled_from(["", " + x[i]"]),
)
def test_clamped_at_both_ends(shift: int, scale: int, low: int, among: str) -> None:
    index = f"max(min(i//{scale} + {shift}, n - 1), min({low}, n - 1))"
    before = tiled(f"x[{index}]{among}")
    if scale == 2 and among:
        # i//2 and i get further and further apart.
        with pytest.raises(lk.IllegalTransformError, match="no footprint of constant size"):
            before.add_prefetch("x", "i_inner", default_tag=None)
        return
    same(before, before.add_prefetch("x", "i_inner", default_tag=None))


def test_what_is_cut_off_is_not_fetched() -> None:
    before = tiled("x[max(i - 1, 0)]", outer_tag="g.0", inner_tag="l.0")
    after = before.add_prefetch("x", "i_inner")
    assert instances(after, "fetch_x", n=40, i_outer=0) == 15
    assert instances(after, "fetch_x", n=40, i_outer=2) == 9
    check_fetch(before, after, "fetch_x", "x")


def test_rules_are_computed_for_clamped_arguments() -> None:
    before = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "f(k) := 2*x[k]\ny[i] = f(max(i - 1, 0)) + f(i)",
        dtypes={"x, y": "float32"},
        assumptions="n >= 1",
    ).split_iname("i", 16)
    after = before.precompute("f", "i_inner", default_tag=None)
    assert after.temporary_by_name["f_r"].shape == (17,)
    same(before, after)


def test_footprint_subscripts_may_be_clamped() -> None:
    before = tiled("x[max(i - 1, 0)] + x[min(i + 1, n - 1)]")
    after = before.add_prefetch(
        "x", "i_inner", default_tag=None, footprint_subscripts="max(16*i_outer + i_inner - 1, 0)"
    )
    text = to_text(after.statement_by_id["insn"].rhs)
    assert text.count("x_r[") == 1 and "x[min(" in text
    same(before, after)


def test_source(golden: object) -> None:
    value = "x[max(i - 1, 0)] + x[i] + x[min(i + 1, n - 1)]"
    after = tiled(value, outer_tag="g.0", inner_tag="l.0").add_prefetch("x", "i_inner")
    assert after.prove().ok
    golden("clamped_halo.cu", after.cuda() + "\n")  # type: ignore[operator]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("x[max(i - 1, 0)] + x[max(n - i - 2, 0)]", "do not differ by a constant"),
        ("x[if(i >= 2, i, n - 1 - i)]", "not affine in inames and sizes, nor near to what is"),
    ],
)
def test_refused(value: str, why: str) -> None:
    with pytest.raises(lk.IllegalTransformError, match=why):
        tiled(value).add_prefetch("x", "i_inner", default_tag=None)


def test_refused_where_the_copy_is_overwritten() -> None:
    kernel = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "x[i] = 2*x[max(i - 1, 0)] {id=s}",
        dtypes={"x": "float32"},
        assumptions="n >= 1",
    ).split_iname("i", 16)
    with pytest.raises(lk.IllegalTransformError) as info:
        kernel.add_prefetch("x", "i_inner", default_tag=None)
    assert "'s' (i=1) would read x[0] before 's' (i=0) has written it" in str(info.value)


def test_accesses_that_data_decide_stay_outside_of_the_box() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[i] = x[i] + x[col[i]]",
        [lk.GlobalArg("x", "float32", shape="n"), ...],
        dtypes={"col": "int32"},
    ).split_iname("i", 16)
    where = "16*i_outer + i_inner"
    staged = knl.add_prefetch("x", "i_inner", footprint_subscripts=where, default_tag=None)
    assert "x[col[" in staged.cuda()
    with pytest.raises(lk.LoopkitError, match="a list of none spans nothing"):
        knl.add_prefetch("x", "i_inner", footprint_subscripts=[])


@pytest.mark.parametrize("declared", [{"strides": "b[0]"}, {"dim_tags": "stride:b[0]"}])
def test_strides_are_expressions_over_sizes(declared: dict[str, str]) -> None:
    with pytest.raises(lk.LoopkitError, match="cannot hold cells of 'b'"):
        lk.GlobalArg("a", "float32", shape="n", **declared)
