"""Subscripts computed of what index arrays hold, in any way: steps leave them what they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import prove_source

import loopkit as lk

LEAVES = ("p[i]", "q[j]", "q[p[i]]", "p[i + j]", "i", "j", "1", "3", "8")


def subscripts() -> st.SearchStrategy[str]:
    """Sums, products, quotients, choices and bits of what two index arrays hold."""

    def more(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        two = st.tuples(inner, st.sampled_from(["+", "-", "*", "min", "max"]), inner).map(
            lambda t: f"{t[1]}({t[0]}, {t[2]})" if t[1].isalpha() else f"({t[0]} {t[1]} {t[2]})"
        )
        by = st.sampled_from(["// 2", "// 3", "% 3", "% 8", "& 3", "| 1", ">> 1", "* 2", "^ 5"])
        one = st.tuples(inner, by).map(lambda t: f"({t[0]} {t[1]})")
        choice = st.tuples(inner, inner, inner).map(
            lambda t: f"if({t[0]} < {t[1]}, {t[1]}, {t[2]})"
        )
        return st.one_of(two, one, inner.map(lambda e: f"(-{e})"), choice)

    return st.recursive(st.sampled_from(LEAVES), more, max_leaves=4)


def gather(subscript: str) -> lk.Kernel:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        f"b[i, j] = a[{subscript} % 16]",
        [
            lk.GlobalArg("a", "float32", shape="16"),
            lk.GlobalArg("p, q", "int32", shape="n + 8"),
            lk.GlobalArg("b", "float32", shape="n, 8"),
            ...,
        ],
        assumptions="n >= 1",
    )
    return knl.assume_within("p", 0, "n").assume_within("q", 0, "n")


def tiled(knl: lk.Kernel) -> lk.Kernel:
    knl = knl.split_iname("i", 4, outer_tag="g.0", inner_tag="l.0")
    return knl.split_iname("j", 3).rename_iname("j_inner", "jj")


@pytest.mark.parametrize(
    "subscript",
    [
        "(p[i]*8 + j)",
        "(2*p[i]*4 - j)",
        "((p[i] + j)*8)",
        "(p[i]*n*2 % 8 + j)",
        "(p[i]*p[i + j]*2)",
        "(8*(p[i] & 7)*(-1))",
        "(-if(2*q[j] < p[i] << 1, p[i]*2, p[i] << 1))",
        "(q[j] - q[j])",
        "((3 & 7)*(8 % 2) + p[i])",
        "(p[i] % 3)",
        "(p[i]*p[i] >> 1)",
        "((p[i] ^ 5) + (q[j] | 1))",
        "((-min(i, j)) ^ 5)",
        "((-abs(i - j)) | 1)",
        "((-max(i, j)) & 12)",
        "(if(n < 2, j, 2))",
    ],
)
def test_tiles_are_proven(subscript: str) -> None:
    knl = tiled(gather(subscript))
    assert knl.prove().ok


@pytest.mark.slow
@pytest.mark.host
@settings(max_examples=30, deadline=None)
@given(subscripts())
def test_any_subscript(subscript: str) -> None:
    """A tile is accepted, nothing false is said of its text, and it computes the same."""
    knl = gather(subscript)
    new = tiled(knl)
    assert not new.prove().findings
    n, generator = 7, np.random.default_rng(0)
    given = {"a": generator.random(16, np.float32), "n": n}
    given |= {name: generator.integers(0, n, n + 8).astype(np.int32) for name in "pq"}
    given = {name: value for name, value in given.items() if name in knl.arg_by_name}
    want = knl.executor("reference")(**given)
    np.testing.assert_array_equal(new.executor("host", order="random", seed=1)(**given), want)


@pytest.mark.parametrize("subscript", ["((-min(i, i)) & 3)", "((-i) & 7)", "((5 - min(i, j)) & 3)"])
def test_low_bits_of_what_is_negative(subscript: str) -> None:
    new = tiled(gather(subscript))
    assert new.prove().ok
    source = new.cuda()
    for old, changed in (("& 3)", "& -3)"), ("& 3)", "| 3)"), ("& 7", "& -7")):
        if old in source:
            assert not prove_source(new, source.replace(old, changed)).ok


@pytest.mark.parametrize(
    "subscript, other",
    [
        ("(p[i]*8 + j)", "(p[i]*4 + j)"),
        ("(p[i]*8 + j)", "(8*q[i] + j)"),
        ("((p[i] + 1)*8)", "(8*p[i] + 1)"),
        ("(q[j] - p[j])", "0"),
        ("(p[i]*8 % 3)", "(8*(p[i] % 3))"),
    ],
)
def test_others_are_not_the_same(subscript: str, other: str) -> None:
    """Nor does one stand for the other after a step."""
    assert lk.verify(gather(subscript), tiled(gather(other))).answer != "equal"
