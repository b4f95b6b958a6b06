"""Indices that determine inames."""

from __future__ import annotations

import itertools

import numpy as np
import pymbolic.primitives as prim
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seams import determined_by, parse_expression
from seams import sets as _sets

import loopkit as lk


def kernel(*ranges: tuple[int, int]) -> lk.Kernel:
    inames = [f"i{n}" for n in range(len(ranges))]
    bounds = [f"{a} <= {i} < {b}" for i, (a, b) in zip(inames, ranges, strict=True)]
    return lk.make_kernel(
        [f"{{ [{', '.join(inames)}, k]: {' and '.join(bounds)} and 0 <= k < n }}"],
        f"x[k] = {' + '.join(inames)}",
        dtypes={"x": "int32"},
    )


@pytest.mark.parametrize(
    ("index", "told"),
    [
        ("i0", {"i0"}),
        ("16*i1 + i0", {"i0", "i1"}),
        ("15*i1 + i0", set()),
        ("16*k + i0", {"i0", "k"}),
        ("k + 100*i0", set()),
        ("-16*i1 + i0 + n", {"i0", "i1"}),
        ("n", set()),
        ("i0 // 2", set()),
        ("x + i0", set()),
    ],
)
def test_examples(index: str, told: set[str]) -> None:
    assert determined_by(kernel((0, 16), (0, 5)), [parse_expression(index)]) == told


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 4)), min_size=1, max_size=3),
    st.lists(st.integers(-9, 9), min_size=3, max_size=3),
)
def test_what_is_told_is_told(boxes: list[tuple[int, int]], factors: list[int]) -> None:
    ranges = [(low, low + length) for low, length in boxes]
    used = factors[: len(ranges)]
    index = prim.Sum(
        tuple(prim.Product((c, prim.Variable(f"i{n}"))) for n, c in enumerate(used) if c) or (0,)
    )
    told = determined_by(kernel(*ranges), [index])
    values: dict[int, set[tuple[int, ...]]] = {}
    for point in itertools.product(*(range(*r) for r in ranges)):
        seen = tuple(v for n, v in enumerate(point) if f"i{n}" in told)
        values.setdefault(sum(c * v for c, v in zip(used, point, strict=True)), set()).add(seen)
    assert all(len(seen) == 1 for seen in values.values())


def test_coefficients_beyond_64_bits_are_scaled() -> None:
    """Large factors of a name, of a quotient and of a product stay whole in sets."""
    n = prim.Variable("n")
    quotient = prim.FloorDiv(prim.Product((2**40, n)), 3)
    exprs = [
        (prim.Product((2**64, n)), 2**64 * 5),
        (prim.Product((2**63, prim.Sum((n, 2**62)))), 2**63 * (5 + 2**62)),
        (prim.Product((2**33, quotient)), 2**33 * (2**40 * 5 // 3)),
        (prim.Product((np.uint64(2**63), n)), 2**63 * 5),
        (prim.Product((np.uint64(2**63), quotient)), 2**63 * (2**40 * 5 // 3)),
        (prim.Product((np.uint64(2**63), prim.Max((n, 3)))), 2**63 * 5),
        (prim.Sum((prim.Product((np.int8(100), n)), prim.Product((np.int8(100), n)))), 1000),
    ]
    five = _sets.condition_set(prim.Comparison(n, "==", 5))
    for expr, expected in exprs:
        value = prim.Comparison(expr, "==", expected)
        assert five.is_subset(_sets.condition_set(value)), expr


@pytest.mark.parametrize(
    ("indices", "told"),
    [
        (("i0 // 4", "i0 % 4"), {"i0"}),
        (("8*i1 + i0 // 4", "2*(i0 % 4) + i2"), {"i0", "i1", "i2"}),
        (("8*i1 + i0 // 4", "i0 % 2"), {"i1"}),
        (("4*(i0 // 2) + i0 % 2",), {"i0"}),
        (("i0 // 4", "i0 % 3"), set()),
        (("i0 ^ 8",), {"i0"}),
        (("i0 & 3", "i0 >> 2"), {"i0"}),
        (("i0 // 4 + i0 % 4",), set()),
    ],
)
def test_quotients_together(indices: tuple[str, ...], told: set[str]) -> None:
    knl = kernel((0, 32), (0, 5), (0, 2))
    assert determined_by(knl, map(parse_expression, indices)) == told


@given(
    st.lists(
        st.lists(st.tuples(st.integers(-4, 4), st.sampled_from([1, 2, 3, 4, 6])), max_size=3),
        min_size=1,
        max_size=3,
    ),
    st.integers(-3, 3),
)
def test_what_quotients_tell_is_told(sums: list[list[tuple[int, int]]], low: int) -> None:
    ranges = [(low, low + 7), (0, 3)]
    names = [prim.Variable("i0"), prim.Variable("i1")]
    indices = [
        prim.Sum((0, *(prim.Product((c, prim.FloorDiv(names[n % 2], d))) for n, (c, d) in parts)))
        for parts in (list(enumerate(s)) for s in sums)
    ]
    told = determined_by(kernel(*ranges), indices)
    values: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for point in itertools.product(*(range(*r) for r in ranges)):
        at = {"i0": point[0], "i1": point[1]}
        seen = tuple(_sets.value_at(index, at) for index in indices)
        mine = tuple(at[name] for name in sorted(told))
        values.setdefault(seen, set()).add(mine)
    assert all(len(found) == 1 for found in values.values())


def test_loops_that_data_bound_begin_anywhere() -> None:
    """Four numbers from a loaded one on have four remainders, and others have these as well."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k]: lo <= k < lo + 4 }"],
        """
        for i
            <> lo = p[i]
            for k
                a[i, k % 4] = b[k]
            end
        end
        """,
        [lk.GlobalArg("a", "float32", "n, 4"), lk.GlobalArg("b", "float32", "n"), ...],
        dtypes={"p": "int32"},
        assumptions="n >= 1",
    )
    assert determined_by(knl, [parse_expression("k % 4")]) == set()
    assert determined_by(knl, [parse_expression("k")]) == {"k"}
