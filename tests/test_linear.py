"""Linear forms beside what expressions are at all points of a box."""

from __future__ import annotations

import itertools
from typing import Any

import pymbolic.primitives as prim
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seams import Linear, NotAffineError, evaluate, linear, product, total
from seams import linear_variable as variable
from seams import sets as _sets

BOX = {"x": (-5, 4), "y": (0, 7)}
POINTS = [
    dict(zip(BOX, point, strict=True))
    for point in itertools.product(*(range(low, high + 1) for low, high in BOX.values()))
]


def affine_expressions() -> st.SearchStrategy[Any]:
    leaves = st.one_of(st.sampled_from(list(BOX)).map(prim.Variable), st.integers(-9, 9))
    divisors = st.sampled_from([-4, -3, -1, 1, 2, 3, 4, 6])

    def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(lambda c: prim.Sum(tuple(c))),
            st.tuples(st.integers(-4, 4), inner).map(prim.Product),
            st.tuples(inner, divisors).map(lambda p: prim.FloorDiv(*p)),
            st.tuples(inner, divisors).map(lambda p: prim.Remainder(*p)),
        )

    return st.recursive(leaves, larger, max_leaves=6)


def at(form: Linear, point: dict[str, int]) -> int:
    return form.constant + sum(c * evaluate(a, point) for a, c in form.terms.items())


@given(affine_expressions())
def test_a_form_has_the_values_of_its_expression(expr: Any) -> None:
    form = linear(expr)
    assert all(form.terms.values())
    low, high = form.range(BOX) or (0, 0)
    for point in POINTS:
        value = evaluate(expr, point)
        assert at(form, point) == evaluate(form.expression, point) == value
        assert low <= value <= high


@given(affine_expressions())
def test_isl_has_the_values_of_the_expression(expr: Any) -> None:
    graph = _sets.equality("value", expr)
    for point in POINTS[::7]:
        here = {**point, "value": evaluate(expr, point)}
        conditions = [prim.Comparison(prim.Variable(n), "==", v) for n, v in here.items()]
        assert not _sets.is_nowhere(graph, conditions)


@given(affine_expressions(), st.integers(1, 9), st.booleans())
def test_division(expr: Any, divisor: int, with_ranges: bool) -> None:
    form = linear(expr)
    whole, rest = form.split(divisor)
    assert all(c % divisor for c in rest.terms.values()) and 0 <= rest.constant < divisor
    ranges = BOX if with_ranges else {}
    quotient, remainder = form.floor_div(divisor, ranges), form.remainder(divisor, ranges)
    for point in POINTS:
        value = at(form, point)
        assert divisor * at(whole, point) + at(rest, point) == value
        assert (at(quotient, point), at(remainder, point)) == divmod(value, divisor)


@given(affine_expressions(), affine_expressions())
def test_sums_multiples_and_substitution(one: Any, two: Any) -> None:
    a, b = linear(one), linear(two)
    inside = a.substitute({"x": b})
    for point in POINTS[::5]:
        first, second = at(a, point), at(b, point)
        assert at(a + b, point) == first + second
        assert at(a - b, point) == first - second
        assert at(a * -3, point) == -3 * first
        assert at(inside, point) == evaluate(one, {**point, "x": second})


def test_order_and_products() -> None:
    x, y = variable("x"), variable("y")
    assert list(total([x, y, x * -1]).terms) == [prim.Variable("y")]
    assert total([x, x * -1], with_zeros=True).is_constant
    assert product([x, Linear({}, 3)], prim.Variable("x")).terms == {prim.Variable("x"): 3}
    with pytest.raises(NotAffineError):
        product([x, y], prim.Product((prim.Variable("x"), prim.Variable("y"))))
