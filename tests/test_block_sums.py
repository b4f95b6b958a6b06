"""Sums over blocks: what blocks find is added atomically, to what a launch before has started."""

from __future__ import annotations

import numpy as np
import pytest

import loopkit as lk
from loopkit import AddressSpace

TOGETHER = {"by": "atomic"}


def whole(operation="sum", dtype="float32", use="{}") -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        f"out[0] = {use.format(f'{operation}(i, x[i])')}",
        dtypes={"x": dtype},
        assumptions="n >= 0",
        name="whole",
    )


def blocks(knl: lk.Kernel, length: int = 64) -> lk.Kernel:
    knl = knl.split_iname("i", length).realize_reduction(**TOGETHER, inames="i_outer")
    return knl.tag_inames("i_outer: g.0, i_inner: l.0")


def check(knl: lk.Kernel, sizes, dtype="float32") -> None:
    """Runs in three orders are what the text computes; the programs are proven."""
    rng = np.random.default_rng(4)
    assert all(step.verdict == "proven" for step in knl.history)
    for size in sizes:
        shape = tuple(size[e] for e in ("n", "m") if e in size)
        x = rng.integers(-4 if dtype[0] != "u" else 0, 5, shape).astype(dtype)
        due = knl.executor("reference")(x=x)
        for order in ("ascending", "descending", "random"):
            found = knl.executor("host", order=order, seed=1)(x=x)
            for one, other in zip(np.atleast_1d(due), np.atleast_1d(found), strict=True):
                np.testing.assert_array_equal(one, other)
    for text in (False, True):
        proof = knl.prove(text=text)
        assert proof.ok, str(proof)


def test_nest_and_source(golden):
    knl = blocks(whole())
    golden("block_sum.txt", f"{knl}\n\n{knl.cuda()}")


@pytest.mark.host
@pytest.mark.parametrize("length", [1, 5, 32, 113])
def test_blocks_of_any_length(length):
    check(blocks(whole(), length), [{"n": n} for n in (0, 1, 64, 300)])


@pytest.mark.host
@pytest.mark.parametrize(
    ("operation", "dtype"),
    [
        *(("sum", "int8"), ("sum", "uint64"), ("sum", "float16"), ("sum", "float64")),
        *(("max", "int32"), ("min", "float32"), ("product", "int32"), ("any", "bool")),
        *(("sum", "complex64"),),
    ],
)
def test_operations_and_types(operation, dtype):
    check(blocks(whole(operation, dtype)), [{"n": n} for n in (1, 150)], dtype)


@pytest.mark.host
def test_a_sum_in_an_expression_and_each_thread_for_itself():
    check(blocks(whole("sum", "int32", "2*{} + 1")), [{"n": 0}, {"n": 200}], "int32")
    alone = whole("max", "int32").realize_reduction(**TOGETHER, inames="i")
    alone = alone.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0")
    check(alone, [{"n": 1}, {"n": 100}], "int32")


@pytest.mark.host
def test_a_grid_that_goes_round():
    knl = whole().split_iname("i", 32).split_iname("i_outer", 4)
    knl = knl.realize_reduction(**TOGETHER, inames="i_outer_inner")
    check(knl.tag_inames("i_outer_inner: g.0, i_inner: l.0"), [{"n": 0}, {"n": 1}, {"n": 1000}])


@pytest.mark.host
def test_rows_have_a_cell_each():
    knl = lk.make_kernel(
        "{ [i, j]: 1 <= i <= n and 0 <= j < m }",
        "y[i - 1] = sum(j, x[i - 1, j])\nz[i - 1] = y[i - 1] / 2",
        dtypes={"x": "float32"},
        assumptions="n, m >= 0",
    )
    knl = knl.split_iname("j", 32).realize_reduction(**TOGETHER, inames="j_outer")
    assert knl.temporary_by_name["acc"].address_space is AddressSpace.GLOBAL
    check(
        knl.tag_inames("j_outer: g.0, j_inner: l.0, i: g.1"),
        [{"n": 0, "m": 3}, {"n": 3, "m": 0}, {"n": 4, "m": 70}],
    )


@pytest.mark.host
def test_two_sums_in_a_row():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        "<> m = sum(i, x[i])\nout[0] = sum(j, (x[j] - m)**2)",
        dtypes={"x": "float32"},
        assumptions="n >= 0",
    )
    for iname in "ij":
        knl = knl.split_iname(iname, 16).realize_reduction(**TOGETHER, inames=f"{iname}_outer")
    knl = knl.tag_inames("i_outer: g.0, j_outer: g.0")
    assert len(knl.launches()) == 5
    check(knl.tag_inames("i_inner: l.0, j_inner: l.0"), [{"n": 1}, {"n": 40}])


@pytest.mark.host
@pytest.mark.parametrize("apart", [False, True])
def test_sums_in_a_loop_of_launches(apart):
    """Launches that the step adds stand in the loop, which has one accumulator for all of it."""
    knl = lk.make_kernel(
        "{ [t, i, j, k, b]: 0 <= t < 3 and 0 <= i, j, k < n and 0 <= b < 2 }",
        """
        y[j] = x[j]
        ... gbarrier
        for t
            <> norm = sum(i, y[i]*y[i])
            ... gbarrier
            y[j] = y[j]*t - norm + sum(b, b + x[j])
            ... gbarrier
            top[t] = max(k, y[k]) - norm
        end
        """,
        [lk.TemporaryVariable("y", "int64", shape="n", address_space=AddressSpace.GLOBAL), ...],
        dtypes={"x": "int64"},
        assumptions="n >= 0",
        name="looped",
    )
    knl = knl.split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
    for iname in "ik":
        if apart:
            knl = knl.realize_reduction(**TOGETHER, inames=iname)
            knl = knl.split_iname(iname, 32, outer_tag="g.0", inner_tag="l.0")
        else:
            knl = knl.split_iname(iname, 32).realize_reduction(**TOGETHER, inames=f"{iname}_outer")
            knl = knl.tag_inames(f"{iname}_outer: g.0, {iname}_inner: l.0")
    assert {t.shape for t in knl.temporaries if t.name.startswith("acc")} == {()}
    check(knl, [{"n": n} for n in (0, 1, 70)], "int64")


def test_a_reduction_in_parts_keeps_the_launches_there_are():
    knl = blocks(whole()).untag_inames("i_inner").split_iname("i_inner", 8)
    knl = knl.split_reduction_inward("i_inner_inner")
    assert len(knl.launches()) == 3


def test_blocks_without_atomics_are_refused_and_the_refusal_says_how():
    with pytest.raises(lk.RaceError, match="both add to acc") as error:
        whole().split_iname("i", 64, outer_tag="g.0", inner_tag="l.0")
    assert error.value.witness.array == "acc"
    assert any(
        "realize_reduction(by='atomic', inames='i_outer')" in s for s in error.value.suggestions
    )
    with pytest.raises(lk.RaceError) as error:
        whole().tag_inames("i: g.0")
    assert any("inames='i'" in s for s in error.value.suggestions)


def test_what_one_launch_starts_and_adds_to_is_a_race():
    knl = whole().split_iname("i", 64).realize_reduction(**TOGETHER, inames="i_outer")
    for barrier in ("gbarrier", "gbarrier_0"):
        with pytest.raises(lk.RaceError):
            knl.remove_barrier(barrier).tag_inames("i_outer: g.0, i_inner: l.0")


def test_what_is_refused():
    with pytest.raises(lk.InvalidArgumentError, match="takes by='atomic'"):
        whole().realize_reduction(by="shared", inames="i")
    with pytest.raises(lk.IllegalTransformError, match="no reduction is over"):
        blocks(whole()).realize_reduction(**TOGETHER, inames="i_outer")
    records = lk.make_kernel("{ [i]: 0 <= i < n }", "v[0], w[0] = argmax(i, x[i], i)")
    with pytest.raises(lk.IllegalTransformError, match="several components"):
        records.realize_reduction(**TOGETHER, inames="i")


def test_history_goes_to_text_and_back():
    knl = blocks(whole())
    assert lk.replay(whole(), knl.history) == knl


@pytest.mark.host
@pytest.mark.parametrize("part", ["j_first", "j", "i"])
def test_one_part_of_a_peeled_sum(part):
    """The other parts add to the same accumulator, in launches that hand it on."""
    text = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "y[0] = sum((i, j), x[i, j])",
        [lk.GlobalArg("x", "float32", shape="n, m"), lk.GlobalArg("y", "float32", shape=1), ...],
        assumptions="n >= 0 and m >= 3",
    )
    knl = text.peel_iname("j", first=2).realize_reduction(by="atomic", inames=part)
    assert "sum over" in knl.cuda() and knl.prove().ok
    x = np.arange(12, dtype="f").reshape(3, 4)
    assert knl.executor("host", order="random")(x=x).tolist() == [x.sum()]
