"""Axes of arrays that have names: transforms take them, and what is made of the arrays has them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import Golden

import loopkit as lk


def product(**more: Any) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k]*b[k, j])",
        more.pop("data", None),
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
        name="product",
        **more,
    )


def named() -> lk.Kernel:
    return product().set_array_axis_names("a", "row, mid").set_array_axis_names("b", "mid, col")


def tiled(knl: lk.Kernel) -> lk.Kernel:
    return (
        knl.split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", 16)
        .add_prefetch("a", "i_inner, k_inner")
        .add_prefetch("b", "k_inner, j_inner")
    )


def names_of(knl: lk.Kernel, array: str) -> tuple[str, ...] | None:
    return knl.array(array).dim_names


STEPS: dict[str, tuple[Callable[[lk.Kernel], lk.Kernel], Callable[[lk.Kernel], lk.Kernel]]] = {
    "pad_temporary": (
        lambda k: k.pad_temporary("a_s", "mid", 3),
        lambda k: k.pad_temporary("a_s", 1, 3),
    ),
    "add_padding": (
        lambda k: k.add_padding("a_s", "row", 48),
        lambda k: k.add_padding("a_s", 0, 48),
    ),
    "swizzle_array": (
        lambda k: k.swizzle_array("b_s", "col", by="mid", bits=2),
        lambda k: k.swizzle_array("b_s", 1, by=0, bits=2),
    ),
    "tag_array_axes": (
        lambda k: k.tag_array_axes("a_s", {"row": "N0", "mid": "N1"}),
        lambda k: k.tag_array_axes("a_s", {0: "N0", 1: "N1"}),
    ),
    "split_array_dim": (
        lambda k: k.split_array_dim([("a_s", "row"), ("b_s", "col", "F")], 4),
        lambda k: k.split_array_dim([("a_s", 0), ("b_s", 1, "F")], 4),
    ),
    "concatenate_arrays": (
        lambda k: k.concatenate_arrays("a_s, b_s", axis_nr="row"),
        lambda k: k.concatenate_arrays("a_s, b_s", axis_nr=0),
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_names_mean_numbers(name: str) -> None:
    by_name, by_number = STEPS[name]
    knl = tiled(named())
    assert by_name(knl) == by_number(knl)
    assert by_name(knl).cuda() == by_number(knl).cuda()


@pytest.mark.host
def test_it_runs(golden: Golden) -> None:
    knl = tiled(named()).pad_temporary("b_s", "col").split_array_dim(("a_s", "row"), 4)
    assert names_of(knl, "a_s") == ("row_outer", "row_inner", "mid")
    assert knl.prove().ok and knl.prove(text=True).ok
    a, b = (np.random.default_rng(0).random(s, np.float32) for s in ((19, 21), (21, 18)))
    for order in ("ascending", "descending", "random"):
        found = knl.executor("host", order=order, seed=1)(a=a, b=b)
        np.testing.assert_allclose(found, a @ b, rtol=1e-5)
    golden("axis_names.txt", f"{knl}\n\n{knl.cuda()}\n\n{knl.script()}")


def test_names_from_the_start() -> None:
    data = [lk.GlobalArg("a", shape="n, l", dim_names="row, mid"), ...]
    knl = product(data=data)
    assert names_of(knl, "a") == ("row", "mid")
    assert "a[row: n, mid: l]" in str(knl)
    assert names_of(pickle.loads(pickle.dumps(knl)), "a") == ("row", "mid")
    inferred = product(data=[lk.GlobalArg("b", dim_names=["mid", "col"]), ...])
    assert "b[mid: l, col: m]" in str(inferred)
    own = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < 4 }",
        "t[i] = x[i]\ny[j] = t[3 - j]",
        [lk.TemporaryVariable("t", shape=4, dim_names="part"), ...],
        dtypes={"x, y, t": "float32"},
    )
    assert "t[part: 4]" in str(own)


def test_axes_that_come_and_go() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < 16 and 0 <= j < 4 }",
        "for i, j\n<> t[j] = a[i, j]\nb[i, j] = 2*t[j]\nend",
        dtypes={"a, b": "float32"},
    ).set_array_axis_names("t", "part")
    more = knl.privatize_temporaries_with_inames("i", "t")
    assert names_of(more, "t") == ("part", "i")
    less = more.unprivatize_temporaries_with_inames("i", "t")
    assert names_of(less, "t") == ("part",) and less == knl
    assert names_of(knl.unprivatize_temporaries_with_inames("j", "t"), "t") is None
    batched = lk.to_batched(knl.set_array_axis_names("a", "row, col"), "n", ["a", "b"])
    assert names_of(batched, "a") == ("ibatch", "row", "col")
    assert names_of(batched, "b") is None


def test_names_taken_away_and_replaced() -> None:
    knl = named()
    other = knl.set_array_axis_names("a, b", "x, y")
    assert names_of(other, "a") == names_of(other, "b") == ("x", "y")
    assert other.set_array_axis_names("a, b", None) == product()
    assert lk.replay(product(), other.history) == other


def test_loopys_names() -> None:
    import loopkit.loopy as lp

    unit = lp.make_kernel(
        "{ [i]: 0 <= i < n }", "y[i] = x[i]", [lp.GlobalArg("x, y", np.float32, shape="n"), "..."]
    )
    assert "x[at: n]" in str(lp.set_array_dim_names(unit, "x", "at"))


def test_buffers_and_rules_have_inames_called_after_axes() -> None:
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < 8 and 0 <= k < m }",
        "c[i, j] = c[i, j] + a[i, k]*b[k, j]",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m >= 1",
    ).set_array_axis_names("c", "row, col")
    buffered = knl.prioritize_loops("i, k, j").buffer_array("c", "j", default_tag=None)
    assert {"c_init_dim_col", "c_store_dim_col"} <= {*buffered.all_inames}
    assert names_of(buffered, "c_buf") == ("col",)


@pytest.mark.parametrize(
    "change, error, why",
    [
        (lambda k: k.pad_temporary("a_s", "rows"), lk.UnknownNameError, "did you mean 'row'"),
        (lambda k: k.pad_temporary("acc", "row"), lk.InvalidArgumentError, "have no names"),
        (lambda k: k.tag_array_axes("c", {"row": "N0"}), lk.InvalidArgumentError, "have no names"),
        (lambda k: k.split_array_dim(("b_s", "row"), 4), lk.UnknownNameError, "axis of 'b_s'"),
        (lambda k: k.set_array_axis_names("a", "x"), lk.InvalidArgumentError, "has 2 axes, but"),
        (lambda k: k.set_array_axis_names("a", "x, x"), lk.InvalidArgumentError, "two axes of"),
        (lambda k: k.set_array_axis_names("a", "x, for"), lk.InvalidArgumentError, "word of C"),
        (lambda k: k.set_array_axis_names("acc", "x"), lk.InvalidArgumentError, "is a scalar"),
        (lambda k: k.set_array_axis_names("q", "x"), lk.UnknownNameError, "no array 'q'"),
        (lambda k: k.set_array_axis_names("n", "x"), lk.UnknownNameError, "no array 'n'"),
        (
            lambda k: k.set_array_axis_names("a", "row, mid"),
            lk.IllegalTransformError,
            "are called row, mid already",
        ),
        (lambda k: lk.find_padding_multiple(k, "a_s", "x", 32), lk.UnknownNameError, "axis of"),
        (
            lambda _: lk.GlobalArg("a", shape="n", dim_names="x, y"),
            lk.InvalidArgumentError,
            "has 1 axis, but dim_names has 2 names",
        ),
    ],
)
def test_refused(change: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        change(tiled(named()))


def test_padding_by_name() -> None:
    knl = tiled(named())
    assert lk.find_padding_multiple(knl, "a_s", "row", 128) == lk.find_padding_multiple(
        knl, "a_s", 0, 128
    )
