"""Subscripts that multiply and divide by sizes: what is proven of them, and what is refused."""

from __future__ import annotations

import itertools

import islpy as isl
import numpy as np
import pymbolic.primitives as prim
import pytest
from data_kernels import run_on_host
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import Data, equal_cells, evaluate, maybe_outside, parse_expression
from seams import sets as _sets

import loopkit as lk

NAMES = ("i", "j", "k", "m")
SIZED = Data(sizes=frozenset({"m"}), ranges=(("m", (0, None)),))


def indices() -> st.SearchStrategy[str]:
    """Expressions of a few names, in which anything may multiply or divide anything."""
    leaf = st.one_of(st.sampled_from(NAMES), st.integers(-3, 3).map(str))
    return st.recursive(
        leaf,
        lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "*", "//", "%"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        max_leaves=5,
    )


def values() -> list[dict[str, int]]:
    ends = itertools.product((-2, 0, 1, 3), (-3, 0, 2), (-1, 0, 2), (0, 1, 2, 5))
    return [dict(zip(NAMES, point, strict=True)) for point in ends]


@settings(max_examples=150, deadline=None)
@given(indices(), indices())
def test_nothing_that_happens_is_left_out(one: str, other: str) -> None:
    """Sets about products and quotients hold every case in which numbers agree."""
    first, second = parse_expression(one), parse_expression(other)
    same = equal_cells((), first, second, SIZED)
    outside = maybe_outside(_sets.universe(), (), first, second, SIZED)
    for point in values():
        try:
            a, b = evaluate(first, point), evaluate(second, point)
        except ZeroDivisionError:
            continue
        if a == b:
            assert not _sets.at_values(same, point).is_empty(), point
        if not 0 <= a < b:
            assert not _sets.at_values(outside, point).is_empty(), point


@pytest.mark.parametrize(
    ("one", "other", "domain"),
    [
        ("i*m + j", "k*m + l", "0 <= j < m and 0 <= l < m"),
        ("m*i + j", "(k + 1)*m + l - m", "0 <= j < m and 0 <= l < m"),
        ("i*(m + 1) + j", "k*(m + 1) + l", "0 <= j <= m and 0 <= l <= m"),
        ("i*i + j", "k*k + l", "i >= 0 and k >= 0 and 0 <= j <= 2*i and 0 <= l <= 2*k"),
        ("i*(i + 1)//2 + j", "k*(k + 1)//2 + l", "0 <= j <= i and 0 <= l <= k"),
        ("(i//m)*m + i%m + j", "k + l", "m >= 1 and j = 0 and l = 0"),
    ],
)
def test_the_same_cell_is_the_same_instance(one: str, other: str, domain: str) -> None:
    same = equal_cells((), parse_expression(one), parse_expression(other), SIZED)
    names = ", ".join("ijklm")
    where = isl.Set(f"[{names}] -> {{ : {domain} and m >= 0 }}")
    apart = isl.Set(f"[{names}] -> {{ : i != k or j != l }}")
    assert (same & where & apart).is_empty()
    assert not (same & where).is_empty()


def test_quotient_and_remainder_tell_numbers_apart() -> None:
    pairs = [parse_expression(t) for t in ("i//m", "i%m", "k//m", "k%m")]
    same = equal_cells((), pairs[:2], pairs[2:], SIZED)
    differ = _sets.condition_set(parse_expression("i != k"))
    positive = _sets.condition_set(parse_expression("m >= 1"))
    assert (same & differ & positive).is_empty()


def flat() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i*m + j] = 2*a[i*m + j] + 1",
        [lk.GlobalArg("a, b", "float32", shape="n*m"), lk.ValueArg("n, m", "int32")],
        assumptions="n, m >= 1",
    )


STEPS = {
    "a grid": lambda k: k.tag_inames("i: g.0, j: l.0"),
    "tiles": lambda k: k.split_iname("i", 8, outer_tag="g.1", inner_tag="l.1").split_iname(
        "j", 32, outer_tag="g.0", inner_tag="l.0"
    ),
    "the other order": lambda k: k.prioritize_loops("j, i"),
    "threads along rows": lambda k: k.split_iname("i", 64, outer_tag="g.0", inner_tag="l.0"),
    "skewed": lambda k: k.map_domain("{ [i, j] -> [i, s]: s = i + j }"),
    "unrolled": lambda k: k.split_iname("j", 4, inner_tag="unr").tag_inames("i: g.0"),
}


@pytest.mark.parametrize("name", STEPS)
def test_flat_writes(name: str) -> None:
    """Rows that are laid out by hand are written by threads of their own."""
    knl = flat()
    made = STEPS[name](knl.fix_parameters(n=5, m=37) if name == "a grid" else knl)
    if name == "a grid":
        STEPS[name](knl)  # legal, though only constants make code of it
    sizes = {n: v for n, v in {"n": 5, "m": 37}.items() if n in made.arg_by_name}
    assert made.prove().ok
    a = np.random.default_rng(0).random(5 * 37, dtype=np.float32)
    found = run_on_host(made, {"a": a, "b": np.zeros_like(a)}, sizes)
    np.testing.assert_allclose(found["b"], 2 * a + 1)


@pytest.mark.parametrize(
    ("index", "bound"),
    [
        ("(i*m + j)*o + k", "0 <= k < o"),
        ("i*m*o + j*o + k", "0 <= k < o"),
        ("k*n*m + j*n + i", "0 <= k < o"),
        ("i + n*(j + m*k)", "0 <= k < o"),
    ],
)
def test_three_axes(index: str, bound: str) -> None:
    knl = lk.make_kernel(
        f"{{ [i, j, k]: 0 <= i < n and 0 <= j < m and {bound} }}",
        f"b[{index}] = 3*a[(i*m + j)*o + k]",
        [lk.GlobalArg("a, b", "float32", shape="n*m*o"), lk.ValueArg("n, m, o", "int32")],
        assumptions="n, m, o >= 1",
    )
    made = knl.prioritize_loops("k, j, i").split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
    made = made.tag_inames("k: g.1, i: g.2")
    assert made.prove().ok
    a = np.random.default_rng(0).random(3 * 19 * 4, dtype=np.float32)
    sizes = {"n": 3, "m": 19, "o": 4}
    want = knl.executor("reference")(a=a, **sizes)
    found = run_on_host(made, {"a": a, "b": np.zeros_like(a)}, sizes)
    np.testing.assert_allclose(found["b"], want)


def packed() -> lk.Kernel:
    """A lower triangle, its rows one behind the other."""
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j <= i }",
        "b[i*(i + 1)//2 + j] = a[i, j]",
        [
            lk.GlobalArg("a", "float32", shape="n, n"),
            lk.GlobalArg("b", "float32", shape="n*(n + 1)//2"),
            lk.ValueArg("n", "int32"),
        ],
        assumptions="n >= 1",
    )


def test_a_packed_triangle() -> None:
    made = packed().split_iname("i", 8, outer_tag="g.0", inner_tag="l.0").prioritize_loops("j")
    assert made.prove().ok
    a = np.random.default_rng(0).random((21, 21), dtype=np.float32)
    found = run_on_host(made, {"a": a, "b": np.zeros(231, np.float32)}, {"n": 21})
    np.testing.assert_array_equal(found["b"], a[np.tril_indices(21)])


def test_one_behind_the_other() -> None:
    """A value that one statement puts into a flat array is what the next one reads."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "t[i*m + j] = 2*a[i, j] {id=first}\nb[i, j] = t[i*m + j] + 1 {id=second}",
        [lk.GlobalArg("t", "float32", shape="n*m"), lk.ValueArg("n, m", "int32"), ...],
        dtypes={"a, b": "float32"},
        assumptions="n, m >= 1",
    )
    made = knl.split_iname("j", 16, outer_tag="g.0", inner_tag="l.0").tag_inames("i: g.1")
    assert made.prove().ok
    a = np.random.default_rng(0).random((5, 37), dtype=np.float32)
    arrays = {"a": a, "b": np.zeros_like(a), "t": np.zeros(5 * 37, np.float32)}
    np.testing.assert_allclose(run_on_host(made, arrays, {"n": 5, "m": 37})["b"], 2 * a + 1)


def open_ended(text: str, domain: str) -> lk.Kernel:
    return lk.make_kernel(
        f"{{ [i, j]: {domain} }}",
        text,
        [lk.GlobalArg("a, b", "float32", shape=None), lk.ValueArg("n, m", "int32")],
    )


def test_rows_whose_length_is_a_loop_variable_overlap() -> None:
    """``6`` is ``2*3 + 0`` and ``3*2 + 0``: rows must have one length to keep apart."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 1 <= i < 9 and 0 <= j < 9 and 0 <= k < i }",
        "b[i*j + k] = a[i, j, k]",
        [lk.GlobalArg("b", "float32", shape="100"), lk.GlobalArg("a", "float32", "9, 9, 9"), ...],
    )
    with pytest.raises(lk.RaceError):
        knl.tag_inames("j: g.0")


@pytest.mark.parametrize(
    ("text", "domain", "step"),
    [
        ("b[i*m + j] = a[i*m + j]", "0 <= i < n and 0 <= j <= m", "i: g.0"),
        ("b[i*m + j + 1] = b[i*m + j]", "0 <= i < n and 0 <= j < m", "i: g.0"),
        ("b[i*m + j + 1] = b[i*m + j]", "0 <= i < n and 0 <= j < m", "j: l.0"),
        ("b[i*(i + 1)//2 + j] = a[j]", "0 <= i < n and 0 <= j <= i + 1", "i: g.0"),
        ("b[i//m] = a[i + j]", "0 <= i < n and 0 <= j < m and m >= 2", "i: g.0"),
    ],
)
def test_rows_that_overlap_are_refused(text: str, domain: str, step: str) -> None:
    knl = open_ended(text, domain)
    with pytest.raises(lk.RaceError) as caught:
        knl.tag_inames(step)
    witness = caught.value.witness
    assert witness.array == "b"
    ends = [witness.source, witness.sink]
    assert ends[0] != ends[1]
    [writer] = knl.statements
    written = []
    for end in ends:
        point = {**dict(end.inames), **witness.parameters}
        cells = [writer.write[1], *(i for name, i in writer.reads if name == "b")]
        written.append({evaluate(index[0], point) for index in cells})
    assert written[0] & written[1]


@pytest.mark.parametrize(
    ("index", "domain", "shape"),
    [
        ("i*m + j", "0 <= i < n and 0 <= j < m", "n*m"),
        ("i*(m + 1) + j + 1", "0 <= i < n and 0 <= j < m", "n*(m + 1)"),
        ("i*m + j", "0 <= i < 10 and 0 <= j < m", "10*m"),
        ("i*(i + 1)//2 + j", "0 <= i < n and 0 <= j <= i", "n*(n + 1)//2"),
        ("i//m", "0 <= i < n and j = 0", "(n + m - 1)//m"),
        ("i%m", "0 <= i < n and j = 0", "m"),
    ],
)
def test_in_bounds(index: str, domain: str, shape: str) -> None:
    def made(shape: str) -> lk.Kernel:
        return lk.make_kernel(
            f"{{ [i, j]: {domain} }}",
            f"b[{index}] = 1",
            [lk.GlobalArg("b", "float32", shape=shape), lk.ValueArg("n, m", "int32")],
            assumptions="n, m >= 1",
        )

    made(shape)
    with pytest.raises(lk.OutOfBoundsError) as caught:
        made(f"{shape} - 1")
    witness = caught.value.witness
    extent = evaluate(
        parse_expression(f"{shape} - 1"), witness.parameters | {"n": 1} | witness.parameters
    )
    assert not 0 <= witness.cell[0] < extent


def test_floating_numbers_are_no_whole_ones() -> None:
    """Of ``f*g`` with floats nothing is known: half of a half is less than either."""
    data = Data(integers=frozenset({"i"}))
    f, g = prim.Variable("f"), prim.Variable("g")
    where = equal_cells((), prim.Product((f, g)), prim.Variable("i"), data)
    assert where.is_equal(_sets.universe())
