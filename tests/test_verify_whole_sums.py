"""`verify` multiplies sums of whole numbers out: factors that leave sums, polynomials, loops."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import loopkit as lk

DOMAIN = "{ [i, k, l]: 0 <= i < n and 0 <= k, l < m }"


def make(text: str, dtype: str = "int32", out: str = "", domain: str = DOMAIN) -> lk.Kernel:
    data: list[Any] = [
        lk.GlobalArg("a", dtype, shape="n, m"),
        lk.GlobalArg("c", dtype, shape="n"),
        lk.GlobalArg("x", dtype, shape="m"),
        lk.GlobalArg("y", out or dtype, shape="n", is_input=False),
    ]
    used = [d for d in data if f"{d.name}[" in text]
    return lk.make_kernel(domain, text, [*used, ...], assumptions="n, m >= 1")


def both_ways(one: lk.Kernel, two: lk.Kernel) -> set[str]:
    return {lk.verify(one, two).answer, lk.verify(two, one).answer}


SAME = {
    "a factor": ("sum(k, c[i]*a[i, k])", "c[i]*sum(k, a[i, k])"),
    "a number": ("sum(k, 3*a[i, k])", "3*sum(k, a[i, k])"),
    "a sign": ("sum(k, -a[i, k])", "-sum(k, a[i, k])"),
    "a size": ("sum(k, n*a[i, k])", "sum(k, a[i, k])*n"),
    "an iname": ("sum(k, i*a[i, k])", "i*sum(k, a[i, k])"),
    "terms": ("sum(k, a[i, k] + c[i]*a[i, k])", "sum(k, a[i, k]) + c[i]*sum(k, a[i, k])"),
    "more of the same": ("3*sum(k, a[i, k])", "sum(k, a[i, k]) + 2*sum(k, a[i, k])"),
    "a difference": ("sum(k, a[i, k] - x[k])", "sum(k, a[i, k]) - sum(k, x[m - 1 - k])"),
    "a product of sums": ("sum(k, x[k])*sum(l, a[i, l])", "sum((k, l), x[l]*a[i, k])"),
    "a square of a sum": ("sum(k, x[k])*sum(l, x[l])", "sum((k, l), x[k]*x[l])"),
    "a polynomial": ("3*c[i]**3 + 2*c[i]**2 + c[i] + 7", "((3*c[i] + 2)*c[i] + 1)*c[i] + 7"),
    "a square": ("(c[i] + a[i, 0])**2", "c[i]*c[i] + (c[i] << 1)*a[i, 0] + a[i, 0]**2"),
    "squares": ("(c[i] + a[i, 0])*(c[i] - a[i, 0])", "c[i]*c[i] - a[i, 0]*a[i, 0]"),
    "a complement": ("~c[i]", "-c[i] - 1"),
    "what cancels": ("sum(k, a[i, k] - a[i, k])", "0*a[i, 0]"),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("case", SAME)
def test_the_same_polynomial(case: str, dtype: str) -> None:
    one, two = (make(f"y[i] = {text}", dtype) for text in SAME[case])
    assert both_ways(one, two) == {"equal"}


OTHER = {
    "another number": ("sum(k, 3*a[i, k])", "2*sum(k, a[i, k])"),
    "another factor": ("sum(k, c[i]*a[i, k])", "c[0]*sum(k, a[i, k])"),
    "another sign": ("sum(k, a[i, k] - x[k])", "sum(k, x[k]) - sum(k, a[i, k])"),
    "a diagonal": ("sum(k, x[k])*sum(l, x[l])", "sum(k, x[k]*x[k])"),
    "other powers": ("c[i]**3 + c[i]**2", "c[i]**2*(c[i] + c[i])"),
    "half of it": ("(c[i] << 1) >> 1", "c[i]"),
}


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("case", OTHER)
def test_other_polynomials(case: str, dtype: str) -> None:
    one, two = (make(f"y[i] = {text}", dtype) for text in OTHER[case])
    assert "equal" not in both_ways(one, two)


@pytest.mark.parametrize("case", ["a factor", "a number", "terms", "squares"])
def test_floating_point_numbers_are_left_alone(case: str) -> None:
    one, two = (make(f"y[i] = {text}", "float32") for text in SAME[case])
    assert "equal" not in both_ways(one, two)


def test_half_of_all_pairs_twice() -> None:
    triangle = "{ [i, k, l]: 0 <= i < n and 0 <= l < k < m }"
    square = make("y[i] = sum((k, l), x[k]*x[l])")
    once = make("y[i] = sum((k, l), x[k]*x[l])", domain=triangle)
    turned = make("y[i] = sum((k, l), x[l]*x[k])", domain=triangle.replace("l < k", "k < l"))
    assert both_ways(once, turned) == {"equal"}
    assert "equal" not in both_ways(square, once)


HAND = """
for i
  <{0}> s = {1}
  for k
    s = s + {2}
  end
  y[i] = s
end
"""


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64"])
def test_a_sum_by_hand(dtype: str) -> None:
    one = make("y[i] = c[i] + sum(k, 2*a[i, k])", dtype)
    wide = "uint64" if dtype == "uint64" else "int64"  # both together are floats
    assert both_ways(one, make(HAND.format(wide, "c[i]", "2*a[i, k]"), dtype)) == {"equal"}
    assert both_ways(one, make(HAND.format(dtype, "c[i]", "2*a[i, k]"), dtype)) == {"equal"}
    assert "equal" not in both_ways(one, make(HAND.format(dtype, "0*c[i]", "2*a[i, k]"), dtype))


@pytest.mark.parametrize(
    ("one", "two", "dtype", "out"),
    [
        # In the 8 bits of its operands a product wraps around before it is added.
        ("y[i] = sum(k, c[i]*a[i, k])", "y[i] = c[i]*sum(k, a[i, k])", "int8", "int64"),
        ("y[i] = sum(k, 100*a[i, k])", "y[i] = 100*sum(k, a[i, k])", "int8", "int32"),
        # What is kept in 8 bits on the way has no more.
        ("y[i] = sum(k, a[i, k])", HAND.format("int8", "0", "a[i, k]"), "int8", "int32"),
    ],
)
def test_bits_that_are_lost_on_the_way(one: str, two: str, dtype: str, out: str) -> None:
    kernels = make(one, dtype, out), make(two, dtype, out)
    assert "equal" not in both_ways(*kernels)
    given = {name: np.full(5, 127, dtype) for name in "cx"} | {"a": np.full((5, 5), 127, dtype)}
    found = []
    for kernel in kernels:
        names = {arg.name for arg in kernel.args}
        found.append(kernel.executor("reference")(**{n: v for n, v in given.items() if n in names}))
    assert (found[0] != found[1]).any()


def test_all_pairs_of_small_polynomials() -> None:
    """Those that are equal compute the same, in all 8 bits."""
    texts = ["c[i]*c[i] + c[i]", "c[i]*(c[i] + 1)", "-c[i]*~c[i]", "c[i]**2 - c[i]", "c[i] << 7"]
    values = np.arange(-128, 128).astype("int8")
    results = [make(f"y[i] = {t}", "int8").executor("reference")(c=values, m=1) for t in texts]
    for (one, mine), (two, its) in itertools.combinations(zip(texts, results, strict=True), 2):
        verdict = lk.verify(make(f"y[i] = {one}", "int8"), make(f"y[i] = {two}", "int8"))
        assert (verdict.answer == "equal") == bool((mine == its).all()), (one, two)
