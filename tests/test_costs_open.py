"""Costs of open sizes: polynomials, which are the counts at any numbers that they are for."""

from __future__ import annotations

import importlib
import pickle
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import Lattice, NotPolynomialError, QuasiPolynomial, interpolated

import loopkit as lk

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))


def product() -> lk.Kernel:
    """A product in blocks of 8 x 4."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < n }",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m >= 1",
    )
    knl = knl.split_iname("i", 4, outer_tag="g.1", inner_tag="l.1")
    return knl.split_iname("j", 8, outer_tag="g.0", inner_tag="l.0")


def test_numbers_are_the_counts() -> None:
    knl = product()
    costs = knl.costs()
    assert costs.open_sizes == ("n", "m")
    operations = dict(costs.operations)
    assert str(operations["mul", "float32"]) == "n**2*m"
    assert operations["mul", "float32"](n=1000, m=7) == 7000000
    tried = 0
    for sizes in ({"n": 64, "m": 96}, {"n": 67, "m": 96}, {"n": 100, "m": 75}, {"n": 5, "m": 3}):
        at_sizes = knl.costs(**sizes)
        counted = dict(at_sizes.numbers)
        for b in at_sizes.barriers:
            where = f"the barrier between {b.after} and {b.before}"
            counted |= {f"executions of {where}": b.times, f"blocks at {where}": b.blocks}
        for what, value in costs.numbers:
            if value is not None and value.holds_at(sizes):
                assert value(**sizes) == counted[what], (what, str(value), sizes)
                tried += 1
    assert tried > 60
    assert pickle.loads(pickle.dumps(costs)) == costs
    assert "n**2*m" in str(costs)
    assert costs.at(n=64, m=96)["mul of float32"] == 64 * 64 * 96


def test_some_sizes_are_given() -> None:
    costs = product().costs(m=32)
    assert costs.sizes == (("m", 32),)
    assert str(dict(costs.operations)["add", "float32"]) == "32*n**2"
    with pytest.raises(lk.InvalidArgumentError, match="left open"):
        _ = costs.layouts


def test_what_a_polynomial_says_nothing_of() -> None:
    value = QuasiPolynomial(("n",), (((2,), Fraction(1)), ((3,), Fraction(2))), (("n", 16, 0),))
    assert str(value) == "2*n**3 + n**2 for n % 16 == 0"
    assert value(n=16) == 2 * 16**3 + 256 == value.evaluate(n=16)
    with pytest.raises(lk.InvalidArgumentError, match="has no value for n=17"):
        value(n=17)
    with pytest.raises(lk.InvalidArgumentError, match="needs the sizes n"):
        value()
    with pytest.raises(lk.UnknownNameError):
        value(n=16, m=2)
    assert str(3 * value - 1) == "6*n**3 + 3*n**2 - 1 for n % 16 == 0"
    assert (value * value).degree == 6


def test_a_period_that_is_too_long_is_said() -> None:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = a[i]", dtypes={"a, b": "float32"})
    knl = knl.split_iname("i", 4099)
    with pytest.raises(lk.InvalidArgumentError, match="period of 4,099 in 'n'"):
        knl.costs()


def test_assumptions_are_kept() -> None:
    knl = product().assume("n mod 8 = 0 and 8 <= m <= 4096")
    costs = knl.costs()
    assert str(dict(costs.operations)["mul", "float32"]) == "n**2*m for n % 8 == 0"
    few = product().assume("m <= 40")
    with pytest.raises(lk.InvalidArgumentError, match="give the sizes that may take few"):
        few.costs()
    assert str(dict(few.costs(m=40).operations)["mul", "float32"]) == "40*n**2"


def test_sizes_that_no_launch_has() -> None:
    knl = product()
    with pytest.raises(lk.UnknownNameError):
        knl.costs(q=3)
    with pytest.raises(lk.InvalidArgumentError, match="whole number"):
        knl.costs(n="3")  # type: ignore[arg-type]


def test_a_number_that_is_no_polynomial() -> None:
    lattice = Lattice(("n",), (4,), (4,), (1,))
    with pytest.raises(NotPolynomialError, match="degree up to"):
        interpolated(lambda sizes: (2 ** sizes["n"],), lattice)
    with pytest.raises(NotPolynomialError, match="another number at n = "):
        interpolated(lambda sizes: (sizes["n"] + 5 * (sizes["n"] > 13),), lattice)


@given(
    st.lists(st.integers(-5, 5), min_size=6, max_size=6),
    st.sampled_from([1, 2, 4]),
    st.integers(0, 3),
)
@settings(max_examples=60, deadline=None)
def test_polynomials_are_found(coefficients: list[int], divisor: int, step: int) -> None:
    """Of floors of sizes: for the residues at which they are polynomials."""
    a, b, c, d, e, f = coefficients

    def count(sizes: dict[str, int]) -> tuple[int, int]:
        n, m = sizes["n"], sizes["m"]
        whole = a * n * n * m + b * n * m + c * m + d
        return whole, whole + e * (n // divisor) + f * ((m + step) // 4)

    lattice = Lattice(("n", "m"), (8, 8), (8, 8), (1, 1))
    first, second = interpolated(count, lattice)  # type: ignore[arg-type]
    assert first is not None and second is not None
    assert not first.where
    for n in range(1, 20):
        for m in range(1, 20):
            assert first(n=n, m=m) == count({"n": n, "m": m})[0]
            if second.holds_at({"n": n, "m": m}):
                assert second(n=n, m=m) == count({"n": n, "m": m})[1]
    assert second.holds_at({"n": 16, "m": 24})


def test_a_gallery_kernel() -> None:
    costs = importlib.import_module("transpose").make()["scheduled"].costs()
    sectors = {a.array: a.counts.pieces for a in costs.accesses if a.space == "global" and a.counts}
    assert sectors["a"](n=4096, m=8192) == 4096 * 8192 // 8
    assert costs.barriers[0].times(n=64, m=128) == 2
