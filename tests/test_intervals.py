"""Interval arithmetic beside brute force: it holds all results, and where said, nothing else."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seams import evaluate
from seams import intervals as _intervals


def intervals(low: int = -9, high: int = 9) -> st.SearchStrategy[Any]:
    ends = st.tuples(st.integers(low, high), st.integers(low, high))
    return ends.map(lambda pair: (min(pair), max(pair)))


def inside(interval: Any) -> range:
    return range(interval[0], interval[1] + 1)


def remainder_of_c(x: int, y: int) -> int:
    return int(math.fmod(x, y))


def power(x: int, y: int) -> int:
    return int(x**y) if y >= 0 or x else 0


def shift_left(x: int, y: int) -> int:
    return x << y if 0 <= y < 64 else 0


def shift_right(x: int, y: int) -> int:
    return x >> y if y >= 0 else 0


BINARY: dict[str, tuple[Callable[..., Any], Callable[[int, int], int], bool]] = {
    "add": (_intervals.add, lambda x, y: x + y, True),
    "subtract": (_intervals.subtract, lambda x, y: x - y, True),
    "multiply": (_intervals.multiply, lambda x, y: x * y, True),
    "least": (_intervals.least, min, True),
    "greatest": (_intervals.greatest, max, True),
    "floor_divide": (_intervals.floor_divide, lambda x, y: x // y if y else 0, True),
    "truncating_divide": (_intervals.truncating_divide, lambda x, y: int(x / y) if y else 0, True),
    "floor_remainder": (lambda x, y: _intervals.floor_remainder(y), lambda x, y: x % y, False),
    "truncating_remainder": (_intervals.truncating_remainder, remainder_of_c, False),
    "power": (_intervals.power, power, False),
    "shift_left": (_intervals.shift_left, shift_left, False),
    "shift_right": (_intervals.shift_right, shift_right, False),
    "bitwise_and": (_intervals.bitwise_and, lambda x, y: x & y, False),
    "bitwise_or": (_intervals.bitwise_or, lambda x, y: x | y, False),
    "bitwise_xor": (_intervals.bitwise_or, lambda x, y: x ^ y, False),
}
"""Each operation of two operands, what it is, and whether its bounds are reached."""


@pytest.mark.parametrize("name", BINARY)
@given(left=intervals(), right=intervals())
def test_operations_of_two(name: str, left: Any, right: Any) -> None:
    operation, meaning, is_tight = BINARY[name]
    pairs = itertools.product(inside(left), inside(right))
    results = [meaning(x, y) for x, y in pairs if y or "rem" not in name]
    found = operation(left, right)
    assert all(found[0] <= r <= found[1] for r in results), results
    if is_tight and results:
        assert found == (min(results), max(results))


UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[int], int]]] = {
    "negate": (_intervals.negate, lambda x: -x),
    "absolute": (_intervals.absolute, abs),
    "invert": (_intervals.invert, lambda x: ~x),
}


@pytest.mark.parametrize("name", UNARY)
@given(values=intervals())
def test_operations_of_one(name: str, values: Any) -> None:
    operation, meaning = UNARY[name]
    results = [meaning(x) for x in inside(values)]
    assert operation(values) == (min(results), max(results))
    assert _intervals.magnitude(values) == max(map(abs, inside(values)))


@given(one=intervals(), two=intervals())
def test_sets(one: Any, two: Any) -> None:
    mine, its = set(inside(one)), set(inside(two))
    assert _intervals.contains(one, two) == (its <= mine)
    assert set(inside(_intervals.hull(one, two))) >= mine | its
    if mine & its:
        assert set(inside(_intervals.intersection(one, two))) == mine & its
    else:
        low, high = _intervals.intersection(one, two)
        assert low == high


def test_types() -> None:
    assert _intervals.of_dtype(np.dtype("int8")) == (-128, 127)
    assert _intervals.of_dtype(np.dtype("uint64")) == (0, 2**64 - 1)


NAMES = {"x": (-3, 2), "y": (0, 5)}


def expressions() -> st.SearchStrategy[Any]:
    leaves = st.one_of(st.sampled_from(list(NAMES)).map(prim.Variable), st.integers(-4, 4))

    def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        pair = st.tuples(inner, inner)
        divisor = st.integers(-4, 4).filter(bool)
        return st.one_of(
            pair.map(prim.Sum),
            pair.map(prim.Product),
            pair.map(prim.Min),
            pair.map(prim.Max),
            st.tuples(inner, divisor).map(lambda p: prim.FloorDiv(*p)),
            st.tuples(inner, divisor).map(lambda p: prim.Remainder(*p)),
            pair.map(lambda p: prim.If(prim.Comparison(p[0], "<", p[1]), *p)),
        )

    return st.recursive(leaves, larger, max_leaves=6)


@given(expressions())
def test_expressions(expr: Any) -> None:
    low, high = _intervals.of_expression(expr, NAMES.__getitem__, (-(10**9), 10**9))
    for values in itertools.product(*map(inside, NAMES.values())):
        assert low <= evaluate(expr, dict(zip(NAMES, values, strict=True))) <= high


def test_what_is_unknown_and_what_wraps() -> None:
    unknown = (-1000, 1000)
    data, bits = prim.Variable("p")[prim.Variable("x")], prim.Power(prim.Variable("y"), 2)
    call = prim.Call(prim.Variable("f"), (prim.Variable("y"),))
    assert _intervals.of_expression(call + 1, NAMES.__getitem__, unknown) == (-999, 1001)
    assert _intervals.of_expression(data + 1, {"p": (-3, 4)}.__getitem__, unknown) == (-2, 5)
    assert _intervals.of_expression(bits, NAMES.__getitem__, unknown) == (0, 25)
    assert _intervals.of_expression(bits, NAMES.__getitem__, unknown, may_wrap=False) == unknown
