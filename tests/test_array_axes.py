"""Axes of temporaries split, taken away and joined, and paddings that are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import Golden

import loopkit as lk

ORDERS = ("ascending", "descending", "random")


def pair() -> lk.Kernel:
    return lk.make_kernel(
        "{ [j, i]: 0 <= j < n and 0 <= i < 24 }",
        """
        for j, i
            <> u[i] = 2*x[j, i]                     {id=u}
            <> v[i] = x[j, 23 - i] + 1              {id=v}
            y[j, i] = u[i]*v[i]                     {id=y}
        end
        """,
        dtypes={"x, y": "float64"},
        assumptions="n >= 1",
        name="pair",
    )


def turned() -> lk.Kernel:
    return lk.make_kernel(
        "{ [b, i, j]: 0 <= b < n and 0 <= i, j < 16 }",
        """
        for b
            for i
                <> t[i] = 2*x[b, i]                 {id=t}
            end
            for j
                y[b, j] = t[15 - j] + t[j]          {id=y}
            end
        end
        """,
        dtypes={"x, y": "float64"},
        assumptions="n >= 1",
        name="turned",
    )


def threads() -> lk.Kernel:
    return turned().tag_inames("b: g.0, i: l.0, j: l.0")


SCHEDULES: dict[str, tuple[Callable[[], lk.Kernel], Callable[[lk.Kernel], lk.Kernel]]] = {
    "split": (pair, lambda k: k.split_array_dim(("u", 0), 8).split_iname("i", 8)),
    "split, ragged, inner part first": (
        pair,
        lambda k: k.split_array_dim([("u", -1, "F"), ("v", 0)], 7),
    ),
    "no axes": (pair, lambda k: k.unprivatize_temporaries_with_inames("i").tag_inames("i: l.0")),
    "one array": (pair, lambda k: k.concatenate_arrays("u, v", "w").split_iname("i", 6)),
    "split in shared memory": (
        threads,
        lambda k: k.set_temporary_address_space("t", "shared").split_array_dim(("t", 0), 5),
    ),
}


def made(name: str) -> lk.Kernel:
    start, schedule = SCHEDULES[name]
    return schedule(start())


@pytest.mark.host
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_run(name: str) -> None:
    knl = made(name)
    assert knl.prove().ok
    plain = SCHEDULES[name][0]()
    rng = np.random.default_rng(1)
    for n in (1, 5):
        x = rng.uniform(size=(n, knl.arg_by_name["x"].shape[1]))  # type: ignore[union-attr, index]
        want = plain.executor("reference")(x=x)
        for order in ORDERS:
            found = knl.executor("host", order=order, seed=n)(x=x)
            np.testing.assert_array_equal(found, want)


def test_generated_texts(golden: Golden) -> None:
    shown = [f"{name}\n\n{made(name)}\n\n{made(name).cuda()}" for name in SCHEDULES]
    golden("array_axes.txt", "\n\n".join(shown))


def test_there_and_back() -> None:
    one = lk.make_kernel(
        "{ [i]: 0 <= i < 16 }",
        "for i\n<> t = a[i]\nb[i] = 2*t\nend",
        dtypes={"a, b": "float32"},
    )
    more = one.privatize_temporaries_with_inames("i")
    assert more.unprivatize_temporaries_with_inames("i") == one
    assert lk.replay(one, more.unprivatize_temporaries_with_inames("i", "t").history) == one


REFUSED: list[tuple[Any, str, str | None]] = [
    (lambda: pair().split_array_dim(("x", 1), 4), "memory layout", "x"),
    (lambda: pair().split_array_dim(("y", 0), 4), "[n, 24] becomes", "y"),
    (lambda: pair().concatenate_arrays("u, x"), "memory layout", "x"),
    (lambda: pair().concatenate_arrays("u"), "two different temporaries", None),
    (lambda: pair().concatenate_arrays("u, v", "y"), "'y' is taken", None),
    (lambda: pair().concatenate_arrays("u, v", axis_nr=1), "there is no axis 1", None),
    (lambda: pair().split_array_dim(("u", 1), 4), "there is no axis 1", None),
    (lambda: pair().split_array_dim(("u", 0, "K"), 4), "an order is 'C' or 'F'", None),
    (lambda: pair().split_array_dim("u", 4), "pairs of an array and an axis", None),
    (
        lambda: pair().tag_array_axes("u", "stride:2").split_array_dim(("u", 0), 4),
        "has a layout already",
        None,
    ),
    (
        lambda: turned().unprivatize_temporaries_with_inames("i, j"),
        "would read from t[0] what",
        "t",
    ),
    (
        lambda: turned().split_iname("i", 4).unprivatize_temporaries_with_inames("i_inner"),
        "more than distinguish iterations",
        None,
    ),
    (lambda: turned().unprivatize_temporaries_with_inames("b"), "no temporary has an axis", None),
    (lambda: pair().unprivatize_temporaries_with_inames("j", "u"), "'u' has no axis", None),
    (
        lambda: pair().fission("i", "id:y").unprivatize_temporaries_with_inames("i"),
        "would overwrite",
        "u",
    ),
]


@pytest.mark.parametrize(("step", "why", "array"), REFUSED)
def test_refusals(step: Any, why: str, array: str | None) -> None:
    with pytest.raises(lk.LoopkitError) as refused:
        step()
    assert why in str(refused.value)
    if array is not None:
        witness = refused.value.witness  # type: ignore[attr-defined]
        assert witness.array == array


@pytest.mark.parametrize(
    "step",
    [
        lambda k: k.pad_temporary("x", 1),
        lambda k: k.swizzle_array("x"),
        lambda k: k.privatize_temporaries_with_inames("i", "x"),
        lambda k: k.unprivatize_temporaries_with_inames("i", "x"),
        lambda k: k.set_temporary_address_space("x", "shared"),
        lambda k: k.alias_temporaries("u, x"),
    ],
)
def test_axes_of_arguments_are_their_callers(step: Callable[[lk.Kernel], lk.Kernel]) -> None:
    with pytest.raises(lk.IllegalTransformError, match="memory layout") as caught:
        step(pair())
    assert caught.value.witness is not None
    assert caught.value.witness.cell == (0, 0)


def test_differing_arrays_are_not_one() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 4 }",
        """
        for i
            <float32> p[i] = x[i]
            <float64> q[i] = x[i]
            <float32> r[i, 2] = x[i]
            y[i] = p[i] + q[i] + r[i, 2]
        end
        """,
        dtypes={"x": "float32", "y": "float64"},
    )
    for other, what in (("q", "types"), ("r", "numbers of axes")):
        with pytest.raises(lk.IllegalTransformError, match=f"their {what} differ"):
            knl.concatenate_arrays(["p", other])


def tile() -> lk.Kernel:
    return (
        lk.make_kernel(
            "{ [i, j]: 0 <= i, j < 32 and i < n and j < n }",
            "for i, j\n<> t[i, j] = x[i, j]\nend\nfor i, j\ny[i, j] = t[j, i]\nend",
            [lk.TemporaryVariable("t", "float32", (32, 32)), ...],
            dtypes={"x, y": "float32"},
            assumptions="1 <= n <= 32",
        )
        .set_temporary_address_space("t", "shared")
        .tag_inames("i: l.1, j: l.0")
    )


def test_padding_is_what_costs_find() -> None:
    padded = lk.add_padding_to_avoid_bank_conflicts(tile(), n=32)
    assert padded == tile().pad_temporary("t", 1, 1)
    assert lk.add_padding_to_avoid_bank_conflicts(padded, n=32) == padded
    assert not padded.costs(n=32).layouts
    with pytest.raises(lk.InvalidArgumentError, match="'n' is not given"):
        lk.add_padding_to_avoid_bank_conflicts(tile())


@pytest.mark.parametrize(
    ("axis", "align", "waste", "multiple"),
    [(0, 32, 0.0, 1), (0, 128, 0.1, 4), (0, 128, 0.0, 4), (1, 128, 0.0, 32), (1, 24, 0.5, 4)],
)
def test_padding_multiples(axis: int, align: int, waste: float, multiple: int) -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < 10 and 0 <= j < 24 }", "y[i, j] = 1", dtypes={"y": "float32"}
    )
    assert lk.find_padding_multiple(knl, "y", axis, align, waste) == multiple


def test_padding_multiples_need_numbers() -> None:
    knl = lk.make_kernel("{ [i, j]: 0 <= i, j < n }", "y[i, j] = 1", dtypes={"y": "float32"})
    with pytest.raises(lk.InvalidArgumentError, match="no constant number of bytes"):
        lk.find_padding_multiple(knl, "y", 0, 128)
    with pytest.raises(lk.InvalidArgumentError, match="there is no axis 2"):
        lk.find_padding_multiple(knl, "y", 2, 128)


def padded() -> lk.Kernel:
    return lk.make_kernel(
        "{ [b, i, j]: 0 <= b < n and 0 <= i, j < 8 }",
        """
        for b
            for i, j
                <> u[i, j] = x[b, i, j]
                <> v[i, j] = 2*x[b, j, i]
            end
            for i, j
                y[b, i, j] = u[j, i] + v[i, j]
            end
        end
        """,
        dtypes={"x, y": "float64"},
        assumptions="n >= 1",
    ).set_temporary_address_space("u, v", "shared")


def test_other_axes_may_be_padded_before() -> None:
    """Rows that lie apart stay apart where another axis is split, or arrays become one."""
    named = padded().set_array_axis_names("u, v", "row, col")
    before = named.split_array_dim(("u", "row"), 4).pad_temporary("u", "col", 1)
    after = named.pad_temporary("u", "col", 1).split_array_dim(("u", "row"), 4)
    assert before == after
    rows = named.pad_temporary("u", "col", 1).pad_temporary("v", "col", 1)
    both = rows.concatenate_arrays("u, v", "w")
    assert both == named.concatenate_arrays("u, v", "w").pad_temporary("w", "col", 1)
    assert both.tag_inames("b: g.0, i: l.1, j: l.0").prove().ok
    with pytest.raises(lk.IllegalTransformError, match="axis col of 'u' is padded"):
        named.pad_temporary("u", "col", 1).split_array_dim(("u", "col"), 4)
    with pytest.raises(lk.IllegalTransformError, match="their padding differ"):
        named.pad_temporary("u", "col", 1).concatenate_arrays("u, v")
