"""When subscripts that read index arrays can be equal: sets beside all data there is."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import islpy as isl
import numpy as np
import pymbolic.primitives as prim
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import (
    Data,
    Limits,
    data_of,
    equal_cells,
    evaluate,
    index_range,
    limits_of,
    maybe_outside,
    parse_expression,
    run_reference,
    settling,
    variable_names,
)
from seams import sets as _sets

import loopkit as lk
from loopkit import Disjoint, Increasing, Injective, Within

VALUES = range(-5, 7)  # far enough out for what small inames reach in PAIRS
MORE = range(-9, 10)
N = 2  # cells of each array
n = prim.Variable("n")
SHAPED = Data((("p", (n,)), ("q", (n,))), frozenset())

NOTHING: tuple[Any, ...] = ()
INJECTIVE = (Injective("p"),)
BOTH = (Injective("p"), Injective("q"))
DISJOINT = (Disjoint("p", "q"),)
WITHIN = (Within("p", 0, n),)
PERMUTATION = (Injective("p"), Within("p", 0, n))
WEAK = (Increasing("p"),)
STRICT = (Increasing("p", True),)
STRICT_WITHIN = (Increasing("p", True), Within("p", 0, prim.Sum((n, 1))))
TIGHT = (Disjoint("p", "q"), *PERMUTATION)
ALL = [NOTHING, INJECTIVE, BOTH, DISJOINT, WITHIN, PERMUTATION, WEAK, STRICT, STRICT_WITHIN, TIGHT]


@functools.cache
def data_obeying(
    assertions: tuple[Any, ...], arrays: tuple[str, ...], values: range, cells: int = N
) -> dict[str, np.ndarray]:
    """All data of ``arrays`` that obeys ``assertions``: a row for each."""
    rows = np.indices((len(values),) * (cells * len(arrays))).reshape(cells * len(arrays), -1).T
    rows = rows + values.start
    data = {name: rows[:, cells * k : cells * (k + 1)] for k, name in enumerate(arrays)}
    keep = np.ones(len(rows), bool)
    for assertion in assertions:
        own = [data[name] for name in assertion.arrays if name in data]
        if len(own) < len(assertion.arrays):
            continue
        if isinstance(assertion, Injective):
            keep &= (np.diff(np.sort(own[0], axis=1), axis=1) != 0).all(axis=1)
        elif isinstance(assertion, Increasing):
            keep &= (np.diff(own[0], axis=1) >= int(assertion.strictly)).all(axis=1)
        elif isinstance(assertion, Disjoint):
            keep &= (own[0][:, :, None] != own[1][:, None, :]).all(axis=(1, 2))
        else:
            lower, upper = (evaluate(b, {"n": N}) for b in (assertion.lower, assertion.upper))
            keep &= ((own[0] >= lower) & (own[0] < upper)).all(axis=1)
    return {name: values[keep] for name, values in data.items()}


class Column:
    """An array in all its forms at once; reading outside of it is noted in ``inside``."""

    def __init__(self, values: np.ndarray, inside: np.ndarray) -> None:
        self.values = values
        self.inside = inside

    def __getitem__(self, index: Any) -> np.ndarray:
        index = np.broadcast_to(index, len(self.values))
        self.inside &= (index >= 0) & (index < self.values.shape[1])
        safe = np.clip(index, 0, self.values.shape[1] - 1)
        return self.values[np.arange(len(index)), safe]


def values_of(
    texts: tuple[str, ...], names: Mapping[str, int], data: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    """The values of index expressions for all data in whose bounds they read."""
    count = len(next(iter(data.values())))
    inside = np.ones(count, bool)
    scope = {name: Column(values, inside) for name, values in data.items()}
    found = [eval(text, {"min": np.minimum}, {**scope, **names}) for text in texts]
    return [np.broadcast_to(each, count)[inside] for each in found]


def holds(where: isl.Set, names: Mapping[str, int]) -> bool:
    return not _sets.at_values(where, names).is_empty()


def check_pair(
    assertions: tuple[Any, ...], first: str, second: str, shaped: bool, values: range
) -> bool:
    """Compare a set with what happens for all small data; whether it holds no more than that."""
    data = SHAPED if shaped else Data((), frozenset())
    one, two = parse_expression(first), parse_expression(second)
    equal = equal_cells(assertions, one, two, data)
    is_exact = True
    # A partner that no index reads has to exist all the same.
    about = {name for a in assertions for name in a.arrays}
    arrays = sorted(about | ({"p", "q"} & (variable_names(one) | variable_names(two))))
    known = data_obeying(assertions, tuple(arrays or ["p"]), values)
    for i, k in itertools.product(range(-1, 4), repeat=2):
        names = {"i": i, "k": k, "n": N}
        a, b = values_of((first, second), names, known)
        if not a.size:
            continue
        can = bool((a == b).any())
        assert holds(equal, names) or not can, (names, equal)
        # Arrays of unknown shape may be longer, and only so far do values reach.
        is_exact = is_exact and (holds(equal, names) == can or not {i, k} <= {0, 1})
    return is_exact


PAIRS = [
    ("p[i]", "p[k]"),
    ("p[i] + 1", "p[k]"),
    ("p[i]", "k"),
    ("p[i]", "k - 1"),
    ("2*p[i]", "2*p[k] + 1"),
    ("p[i] - p[k]", "0"),
    ("p[i + 1]", "p[k]"),
    ("p[i + 1]", "p[k + 1]"),
    ("p[i]", "q[k]"),
    ("p[i] + 1", "q[k]"),
    ("p[q[i]]", "p[q[k]]"),
    ("p[i] // 2", "p[k] // 2"),
    ("p[i] % 2", "k"),
    ("p[i]*q[i]", "q[k]*p[k]"),
    ("min(p[i], 1)", "p[k]"),
    ("p[i] + q[k]", "q[i] + p[k]"),
]


@pytest.mark.parametrize("assertions", ALL, ids=lambda a: " ".join(x.call for x in a) or "none")
def test_pairs_of_subscripts_beside_all_data(assertions: tuple[Any, ...]) -> None:
    exact = [
        check_pair(assertions, first, second, shaped, VALUES)
        for first, second in PAIRS
        for shaped in (False, True)
    ]
    # How many values two arrays may take together, where both have their bounds, sets leave open.
    assert exact.count(False) == (2 if assertions == TIGHT else 0)


def deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        inner,
        inner.map(lambda e: f"p[{e}]"),
        inner.map(lambda e: f"q[{e}]"),
        inner.map(lambda e: f"2*p[{e}]"),
        inner.map(lambda e: f"({e} + 1)"),
        inner.map(lambda e: f"(({e}) // 2)"),
        st.tuples(inner, inner).map(lambda e: f"({e[0]} - ({e[1]}))"),
    )


INDICES = deeper(deeper(st.sampled_from(["i", "k", "0", "n"])))


@settings(max_examples=25)
@given(st.sampled_from(ALL), INDICES, INDICES, st.booleans())
def test_random_subscripts_beside_all_data(
    assertions: tuple[Any, ...], first: str, second: str, shaped: bool
) -> None:
    check_pair(assertions, first, second, shaped, MORE)


# {{{ exactly


P, K = parse_expression("p[i]"), parse_expression("p[k]")


def same(found: isl.Set, text: str) -> bool:
    return bool(found.is_equal(isl.Set(text)))


def test_injective_arrays_are_equal_where_their_subscripts_are() -> None:
    found = equal_cells(INJECTIVE, P, K)
    assert same(found, "[i, k] -> { : i = k }")


def test_arrays_of_which_nothing_is_known_are_equal_anywhere() -> None:
    constant = Data((), frozenset())
    found = equal_cells((), P, K, constant)
    assert same(found, "{ : }")


def test_what_the_kernel_writes_may_change_between_instances() -> None:
    # Without a word about p it may be written: not even equal subscripts give equal values.
    found = equal_cells((), P, K)
    assert same(found, "{ : }")
    scalar = Data((), frozenset({"t"}))
    t = prim.Variable("t")
    assert same(equal_cells((), t, prim.Sum((t, 1)), scalar), "{ : }")
    # In one instance it has one value.
    assert equal_cells((), parse_expression("p[i] - p[i]"), 1).is_empty()


def test_several_axes_share_their_values() -> None:
    first, second = (P, parse_expression("p[i] + 1")), (K, parse_expression("p[k]"))
    found = equal_cells(INJECTIVE, first, second)
    assert found.is_empty()
    beside = equal_cells(INJECTIVE, (P, prim.Variable("j")), (K, prim.Variable("l")))
    assert same(beside, "[i, k, j, l] -> { : i = k and j = l }")


def test_several_axes_of_an_index_array() -> None:
    first, second = parse_expression("p[i, j]"), parse_expression("p[k, l]")
    found = equal_cells(INJECTIVE, first, second)
    assert same(found, "[i, k, j, l] -> { : i = k and j = l }")


def test_disjoint_arrays_never_meet() -> None:
    found = equal_cells(DISJOINT, P, parse_expression("q[k]"))
    assert found.is_empty()


def test_bounds_against_an_affine_subscript() -> None:
    m = prim.Variable("m")
    found = equal_cells((Within("p", 0, m),), P, parse_expression("k + m"))
    assert same(found, "[k, m] -> { : -m <= k < 0 }")
    both = (Within("p", 0, m), Within("q", m, parse_expression("2*m")))
    assert equal_cells(both, P, parse_expression("q[k]")).is_empty()


def test_range_of_a_subscript() -> None:
    within = (Within("col", 0, prim.Variable("m")),)
    found = index_range(within, parse_expression("col[j] + 1"), "x")
    assert same(found, "[m, x] -> { : 1 <= x <= m }")
    found = index_range(within, parse_expression("2*j"), "x")
    assert same(found, "[j, x] -> { : x = 2j }")
    found = index_range((), parse_expression("f(j)"), "x")
    assert same(found, "{ : }")


def test_positions_in_an_array_that_goes_up_bound_its_values() -> None:
    found = index_range(STRICT_WITHIN, P, "x", SHAPED)
    assert same(found, "[i, n, x] -> { : 0 <= i < n and i <= x <= i + 1 }")


def test_maybe_outside() -> None:
    def where(assertions: tuple[Within, ...], index: str, extent: str) -> isl.Set:
        index, extent = parse_expression(index), parse_expression(extent)
        return maybe_outside(_sets.universe(), assertions, index, extent)

    columns = (Within("col", 0, prim.Variable("m")),)
    assert where(columns, "col[j] + 1", "m + 1").is_empty()
    assert same(where(columns, "col[j] + 1", "m"), "[m] -> { : m > 0 }")
    assert same(where((), "j", "m"), "[j, m] -> { : j < 0 or m <= j }")
    flat = (Within("col", 0, parse_expression("n*m")),)
    assert where(flat, "col[j]", "m*n").is_empty()
    assert where(flat, "col[j] + 1", "m*n + 1").is_empty()
    # What lies in [0, n*m) is nothing where n is not positive.
    assert same(where(flat, "col[j] + 1", "n*m"), "[n, m] -> { : n > 0 or m < 0 }")
    assert same(where((), "f(j)", "m"), "{ : }")


def test_bounds_that_are_not_affine_say_nothing() -> None:
    assertions = (Within("p", 0, parse_expression("n*m")),)
    found = index_range(assertions, P, "x")
    assert same(found, "[x] -> { : x >= 0 }")


# }}}

# {{{ what would settle it


def test_settling_names_the_assertion_that_helps() -> None:
    apart = isl.Set("[i, k] -> { : i < k }")
    q = parse_expression("q[k]")
    assert settling((), P, K, apart) == (Injective("p"),)
    assert settling((), P, q, apart) == (Disjoint("p", "q"),)
    # Whatever p holds, one instance meets itself; and no assertion keeps p from k.
    assert settling((), P, K, isl.Set("[i, k] -> { : i = k }")) == ()
    assert settling((), P, prim.Variable("k"), apart) == ()
    # p[i] and p[k] + 1 may be equal for any p.
    assert settling((), P, parse_expression("p[k] + 1"), apart) == ()


def test_call_is_the_transform_that_makes_it() -> None:
    bound = parse_expression("n - 1")
    assertions = (Injective("p"), Disjoint("p", "q"), Within("p", 0, bound), Increasing("p", True))
    assert [a.call for a in assertions] == [
        "assume_injective('p')",
        "assume_disjoint('p', 'q')",
        "assume_within('p', 0, 'n - 1')",
        "assume_increasing('p', strictly=True)",
    ]


# }}}


def test_data_of_a_kernel() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        ["<> t = x[col[i]]", "y[perm[i]] = t"],
        [
            lk.GlobalArg("x", "float32", shape="m"),
            lk.GlobalArg("y", "float32", shape="m"),
            lk.GlobalArg("perm", "int32", shape="n"),
            lk.GlobalArg("col", "int32", shape="n"),
            ...,
        ],
    ).assume_injective("perm")
    integers = frozenset({"n", "m", "i", "perm", "col"})
    assert replace(data_of(knl), limits=Limits()) == Data(
        (("perm", (n,)),),
        frozenset({"t", "y"}),
        integers,
        frozenset({"n", "m"}),
        ranges=(("i", (0, None)), ("n", (None, None)), ("m", (None, None))),
    )
    at = parse_expression("perm[i]"), parse_expression("perm[k]")
    found = equal_cells(knl.assertions, *at, data_of(knl))
    assert same(found, "[i, k, n] -> { : i = k and 0 <= i < n }")


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"]


def typed(draw: st.DrawFn, depth: int) -> str:
    """An expression of whole numbers of several types."""
    if depth == 0:
        return draw(st.sampled_from(["a[i]", "b[i]", "i", "n", "u", "w[i]", "3", "17"]))
    one, two = (typed(draw, depth - 1) for _ in range(2))
    forms = [f"({one} {o} {two})" for o in ("+", "-", "*", "//", "%", "&", "|", "^", ">>")]
    forms += [f"({one} % 7)", f"({one} & 15)", f"({one} << 2)", f"(~{one})", f"({one})**2"]
    forms += [f"min({one}, {two})", f"max({one}, 5)", f"({one} if {two} > 3 else 4)"]
    return draw(st.sampled_from([*forms, f"{draw(st.sampled_from(INTEGERS))}({one})"]))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_limits_hold_all_values(data: st.DataObject) -> None:
    """Wherever numbers wrap around, or cannot: what is computed lies in its bounds."""
    value, other = typed(data.draw, 2), typed(data.draw, 1)
    types = [data.draw(st.sampled_from(INTEGERS)) for _ in range(3)]
    text = f"""
        for i
            <> u = a[i]//3
            <> w[i] = b[i] % 50
            <{types[0]}> t = {value}
            if a[i] > 3
                t = {other}
            end
            <> m = max(k, a[k] & b[i])
            y[i] = t
            z[i] = m
        end
    """
    arrays = [lk.GlobalArg(n, t, shape="n + 6") for n, t in zip("ab", types[1:], strict=True)]
    arrays += [lk.GlobalArg("y, z", "int64", shape="n")]
    try:
        knl = lk.make_kernel(
            "{ [i, k]: 0 <= i < n and 0 <= k < 6 }", text, [*arrays, ...], assumptions="n >= 1"
        )
    except lk.TypeInferenceError:
        return
    rng, given = np.random.default_rng(0), {}
    for name, dtype in zip("ab", types[1:], strict=True):
        info = np.iinfo(dtype)
        given[name] = rng.integers(info.min, info.max, 26, dtype, endpoint=True)
    found = run_reference(knl, {"n": 20, **given})
    for name, array in (("t", found["y"]), ("m", found["z"])):
        low, high = limits_of(knl).known[name]  # type: ignore[misc]
        assert low <= int(array.min()) and int(array.max()) <= high
