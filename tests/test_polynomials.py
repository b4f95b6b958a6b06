"""Flat subscripts: sums of products of names are compared as polynomials."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import are_one_polynomial, evaluate, parse_expression, polynomial

import loopkit as lk


def one(text: str, other: str) -> bool:
    return are_one_polynomial(parse_expression(text), parse_expression(other))


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("i*n + 16*o + r", "(r + i*n) + o*16", True),
        ("(i + 1)*(n - 1)", "i*n + n - i - 1", True),
        ("(2*i + j*n) // 4", "(n*j + i + i) // 4", True),
        ("(2*i + j*n) % 4", "(2*i + j*n) % 5", False),
        ("i*n", "i*m", False),
        ("i*n - i*n", "0", True),
        ("int32(i)*n + n", "n + n*int32(i)", False),
        ("min(i*n, j)", "min(n*i, j)", True),
        ("(a + b + c + d)*(a + b + c + d)*(a + b)*(c + d)*(a + d)", "0", False),
    ],
)
def test_comparison(text: str, other: str, same: bool) -> None:
    assert one(text, other) is same


def expressions() -> st.SearchStrategy[str]:
    leaf = st.one_of(st.sampled_from(["i", "j", "n"]), st.integers(-3, 3).map(str))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(
                lambda t: f"({t[0]} {t[1]} {t[2]})"
            ),
            st.tuples(inner, st.sampled_from(["//", "%"]), st.integers(1, 4)).map(
                lambda t: f"({t[0]} {t[1]} {t[2]})"
            ),
        ),
        max_leaves=7,
    )


@settings(max_examples=200, deadline=None)
@given(expressions(), expressions())
def test_what_is_one_polynomial_has_one_value(text: str, other: str) -> None:
    first, second = parse_expression(text), parse_expression(other)
    if are_one_polynomial(first, second):
        for i, j, n in itertools.product((-3, 0, 2, 5), repeat=3):
            values = {"i": i, "j": j, "n": n}
            assert evaluate(first, values) == evaluate(second, values)


def test_a_polynomial() -> None:
    found = polynomial(parse_expression("(i + 2)*(n - i)"))
    assert {tuple(map(str, key)): value for key, value in found.items()} == {
        ("i", "n"): 1,
        ("i", "i"): -1,
        ("n",): 2,
        ("i",): -2,
    }


STEPS = {
    "the last loop": lambda k: k.split_iname("j", 16),
    "the first loop": lambda k: k.split_iname("i", 16),
    "both": lambda k: k.split_iname("j", 16).split_iname("i", 4),
    "in blocks": lambda k: k.split_iname("j", 128, outer_tag="g.0", inner_tag="l.0"),
    "twice": lambda k: k.split_iname("j", 16).split_iname("j_inner", 4),
    "backwards": lambda k: k.map_domain("{ [j] -> [r]: r = m - 1 - j }"),
    "skewed": lambda k: k.map_domain("{ [i, j] -> [i, s]: s = i + j }"),
    "a copy": lambda k: k.split_iname("j", 8).precompute("f", "j_inner", default_tag=None),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("index", ["i*m + j", "j + m*i", "m*i + j + 1", "(i + 1)*m - 1 - j"])
def test_flat_subscripts(name: str, index: str) -> None:
    """Arrays of two axes that are laid out by hand may be scheduled like others."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        f"f(k) := sin(a[k])\nb[i, j] = f({index})",
        [lk.GlobalArg("a", "float32", shape="n*m + 1"), lk.ValueArg("n, m", "int32"), ...],
        dtypes={"b": "float32"},
        assumptions="n, m >= 1",
    )
    new = STEPS[name](knl)
    assert new.prove().ok and lk.verify(knl, new)
    a = np.random.default_rng(0).random(5 * 37 + 1, dtype=np.float32)
    want = knl.executor("reference")(a=a, n=5, m=37)
    np.testing.assert_allclose(new.executor("host")(a=a, n=5, m=37), want, rtol=1e-5)


def test_other_cells_are_refused() -> None:
    """A row that is longer by one is another cell."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "f(k) := a[k]\nb[i*m + j] = f(i*m + j)",
        [lk.GlobalArg(name, "float32", shape="n*m + n") for name in "ab"]
        + [lk.ValueArg("n, m", "int32")],
        assumptions="n, m >= 1",
    )
    other = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "f(k) := a[k]\nb[i*m + j] = f(i*m + i + j)",
        [lk.GlobalArg(name, "float32", shape="n*m + n") for name in "ab"]
        + [lk.ValueArg("n, m", "int32")],
        assumptions="n, m >= 1",
    )
    assert not lk.verify(knl, other)
