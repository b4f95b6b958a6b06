"""Flat subscripts: elements by their offset, in kernels that know all axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loopkit as lk
from loopkit import GlobalArg, TemporaryVariable

BOTH = "{ [i, j]: 0 <= i < n and 0 <= j < 8 }"
ALL = "{ [l]: 0 <= l < 8*n }"


def made(domain: str, text: str, *data: Any, **more: Any) -> lk.Kernel:
    return lk.make_kernel(domain, text, [*data, "..."], **more)


def of_rows(name: str, shape: str = "n, 8", **more: Any) -> GlobalArg:
    return GlobalArg(name, "float32", shape, **more)


@pytest.mark.parametrize(
    ("domain", "text", "shape", "stands"),
    [
        (BOTH, "y[[8*i + j]] = x[[j + i*8]]", "n, 8", "y[i, j] = x[i, j]"),
        (BOTH, "y[[n*j + i]] = x[[(7 - j)*n + i]]", "8, n", "y[j, i] = x[7 - j, i]"),
        (ALL, "y[[l]] = x[[l]]", "n, 8", "y[l // 8, l % 8] = x[l // 8, l % 8]"),
        (
            BOTH,
            "y[[i*8 + j]] = x[[i*8 + j]]",
            "n, 4, 2",
            "y[i, j // 2, j % 2]",
        ),
        (BOTH, "y[[8*i + j]] = x[[8*i + 7 - j]]", "8*n", "y[8*i + j] = x[8*i + 7 - j]"),
        (BOTH, "f(q) := x[[8*i + q]]; y[[8*i + j]] = f(j)", "n, 8", "y[i, j] = f(j)"),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_of_each_axis_there_is_an_index(
    domain: str, text: str, shape: str, stands: str, order: str
) -> None:
    if order == "F":
        shape = ", ".join(reversed(shape.split(", ")))
    data = [of_rows(name, shape) for name in "xy"]
    knl = made(domain, text.replace("; ", "\n"), *data, default_order=order)
    assert (stands in str(knl)) or order == "F"
    assert knl.prove().ok and knl.prove(text=True).ok
    tiled = knl.split_iname(min(knl.all_inames), 3)
    flat = lk.make_kernel(
        domain,
        text.replace("[[", "[").replace("]]", "]").replace("; ", "\n"),
        [of_rows(name, "8*n") for name in "xy"] + ["..."],
    )
    for n in (1, 3):
        x = np.arange(8 * n, dtype="f4")
        extents = [eval(e, {"n": n}) for e in shape.split(", ")]
        due = flat.executor("reference")(x=x, n=n)
        for one in (knl, tiled):
            for executor in ("host", "reference"):
                y = one.executor(executor)(x=x.reshape(extents, order=order), n=n)
                np.testing.assert_array_equal(y.ravel(order), due)


def test_without_a_shape_there_is_one_axis() -> None:
    knl = made(BOTH, "y[[8*i + j]] = x[[j]]", dtypes={"x": "float32"})
    assert knl == made(BOTH, "y[8*i + j] = x[j]", dtypes={"x": "float32"})


def test_temporaries_and_fixed_sizes() -> None:
    knl = made(
        "{ [i, k, l]: 0 <= i < n and 0 <= k, l < 2*m }",
        """
        t[[k]] = x[i, k] {id=load}
        y[i, l] = t[[2*m - 1 - l]] {dep=load}
        """,
        TemporaryVariable("t", "float32", shape="2, m"),
        of_rows("x", "n, 2*m"),
        fixed_parameters={"m": 3},
    )
    x = np.arange(12, dtype="f4").reshape(2, 6)
    for executor in ("host", "reference"):
        np.testing.assert_array_equal(knl.executor(executor)(x=x), x[:, ::-1])


@settings(max_examples=15, deadline=None)
@given(*[st.integers(1, 5)] * 3, *[st.integers(-3, 9)] * 3)
def test_offsets_of_any_kind(a: int, b: int, c: int, p: int, q: int, r: int) -> None:
    text = f"y[i, j] = x[[({p}*i + {q}*j + {r}) % {a * b * c}]]"
    knl = made("{ [i, j]: 0 <= i < 3 and 0 <= j < 4 }", text, of_rows("x", f"{a}, {b}, {c}"))
    x = np.arange(a * b * c, dtype="f4")
    i, j = np.ogrid[:3, :4]
    due = x[(p * i + q * j + r) % x.size]
    np.testing.assert_array_equal(knl.executor("reference")(x=x.reshape(a, b, c)), due)


@pytest.mark.parametrize(
    ("text", "data", "why"),
    [
        ("y[i, j] = x[[8*i + j]] + x[i, j]", [], "its shape is not declared"),
        ("y[i, j] = x[[i]]", [of_rows("x", "n, 8", dim_tags="stride:9, stride:1")], "strides"),
        ("y[i, j] = x[[i]]", [of_rows("x", ())], "it is a scalar"),
        ("y[i, j] = x[[p[i]]]", [of_rows("x", "n, m")], "cannot be divided by the size m"),
        ("y[i, j] = x[[i, j]]", [], "expected ']]'"),
        ("y[i, j] = x[[i], j]", [], "expected ']]'"),
        ("y[i, j] = x[[]]", [], "is empty"),
        ("y[i, j] = x[[i]", [], "never closed"),
    ],
)
def test_refused_by_name(text: str, data: list[Any], why: str) -> None:
    with pytest.raises((lk.InvalidArgumentError, lk.ParseError)) as caught:
        made(BOTH, text, *data)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shape", "witness"),
    [
        ("y[i, j] = x[[8*i + j + 1]]", "n, 8", "x[1, 0] for i=0, j=7, n=1"),
        ("y[i, j] = x[[8*i + j - 1]]", "n, 8", "x[-1, 7] for i=0, j=0, n=1"),
        ("y[i, j] = x[[m*i + j]]", "n, m", "x[0, 0] for i=0, j=0, n=1, m=0"),
    ],
)
def test_offsets_outside_of_the_array_are_refused(text: str, shape: str, witness: str) -> None:
    with pytest.raises(lk.OutOfBoundsError) as caught:
        made(BOTH, text, of_rows("x", shape))
    assert witness in str(caught.value)
    if "m" in shape:
        assert "x[i, j]" in str(made(BOTH, text, of_rows("x", shape), assumptions="m >= 8"))


def test_elsewhere_there_are_none() -> None:
    knl = made(BOTH, "y[i, j] = x[[8*i + j]]", of_rows("x"))
    with pytest.raises(lk.ParseError, match="instructions and rules"):
        knl.add_prefetch("x", "j", footprint_subscripts="[j]")


def test_functions_that_are_called() -> None:
    turned = lk.make_function(
        "{ [k]: 0 <= k < 6 }",
        "out[[k]] = a[[5 - k]]",
        [of_rows("out", "2, 3"), of_rows("a", "2, 3")],
        name="turned",
    )
    knl = lk.make_kernel(
        "{ [i, p, q]: 0 <= i < n and 0 <= p < 2 and 0 <= q < 3 }",
        "[p, q]: y[i, p, q] = turned([p, q]: x[i, p, q])",
        functions=[turned],
    )
    x = np.arange(12, dtype="f4").reshape(2, 2, 3)
    for executor in ("host", "reference"):
        y = knl.executor(executor)(x=x)
        np.testing.assert_array_equal(y.reshape(2, 6), x.reshape(2, 6)[:, ::-1])
