"""Simplification of index expressions."""

from __future__ import annotations

import itertools

import islpy as isl
import pymbolic.primitives as prim
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import evaluate, needed_parts, parse_expression, simplify, simplify_indices, to_text

TILE = isl.Set("[o, i, n] -> { : 0 <= i < 16 and 0 <= o }")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(16*o + i) // 16", "o"),
        ("(16*o + i) % 16", "i"),
        ("(16*o + i + 16) // 16", "o + 1"),
        ("i*16 // 16", "i"),
        ("(32*o + 2*i) // 4", "8*o + i // 2"),
        ("(16*o + i) // 64", "o // 4"),
        ("(16*o + i) % 64", "16*(o % 4) + i"),
        ("(16*o + i + 20) // 64", "(16*o + i + 20) // 64"),
        ("(32*o + i + 16) // 64", "o // 2"),
        ("(32*o + i + 16) % 64", "32*(o % 2) + i + 16"),
        ("(16*o + n) // 64", "(16*o + n) // 64"),
        ("(6*o + 5) // 8", "(3*o + 2) // 4"),
        ("(6*o + 5) % 8", "2*((3*o + 2) % 4) + 1"),
        ("(o + 3) // 4 // 4", "(o + 3) // 16"),
        ("4*(i // 4) + i % 4", "i"),
        ("2*(o + 1) + 3*(o - 1)", "5*o - 1"),
        ("o - o", "0"),
        ("n*(2*o)", "2*n*o"),
        ("(n + 15) // 16", "(n + 15) // 16"),
        ("n - 1 - o", "n - o - 1"),
        ("min(i, 16)", "i"),
        ("min(i, 8)", "min(i, 8)"),
        ("max(0, i)", "i"),
        ("min(o, min(n, o))", "min(o, n)"),
        ("o // 1 + o % 1", "o"),
        ("i % n", "i % n"),
        ("x[2*o + o, (16*o + i) // 16]", "x[3*o, o]"),
    ],
)
def test_simplify(text: str, expected: str) -> None:
    assert to_text(simplify(parse_expression(text), TILE)) == expected


def test_context_is_made_only_when_needed() -> None:
    def context() -> isl.Set:
        raise AssertionError("not needed")

    assert to_text(simplify(parse_expression("(16*o + 32) // 16"), context)) == "o + 2"
    with pytest.raises(AssertionError):
        simplify(parse_expression("(16*o + i) // 16"), context)


def test_values_keep_their_order() -> None:
    expr = parse_expression("a[1 + (i + 1)] * (2 * (x + 1)) if i + 1 < o + i else 0.5 + 0.5")
    text = to_text(simplify_indices(expr, {"i", "o"}))
    assert text == "if(i + 1 < o + i, a[i + 2]*2*(x + 1), 0.5 + 0.5)"


def expressions() -> st.SearchStrategy[str]:
    leaf = st.one_of(st.sampled_from(["o", "i", "n"]), st.integers(-5, 20).map(str))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(
                lambda t: f"({t[0]} {t[1]} {t[2]})"
            ),
            st.tuples(inner, st.sampled_from(["//", "%"]), st.integers(1, 20)).map(
                lambda t: f"({t[0]} {t[1]} {t[2]})"
            ),
            st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
                lambda t: f"{t[0]}({t[1]}, {t[2]})"
            ),
        ),
        max_leaves=6,
    )


@settings(max_examples=150, deadline=None)
@given(text=expressions(), o=st.integers(0, 6), i=st.integers(0, 15), n=st.integers(-9, 40))
def test_simplified_expressions_are_equal(text: str, o: int, i: int, n: int) -> None:
    expr = parse_expression(text)
    values = {"o": o, "i": i, "n": n}
    assert evaluate(simplify(expr, TILE), values) == evaluate(expr, values)


PARTS = ("i", "j", "i + 1", "j - 2", "3", "2*i - 4", "(i + j) // 2", "n - j")
SQUARE = isl.Set("[i, j, n] -> { : 0 <= i <= j < 5 and 3 <= n <= 6 }")


@settings(max_examples=60)
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=5, unique=True), st.booleans())
def test_parts_that_decide_nowhere_go(texts: list[str], is_least: bool) -> None:
    kind, best = (prim.Min, min) if is_least else (prim.Max, max)
    parts = [parse_expression(text) for text in texts]
    kept = needed_parts(kind, parts, SQUARE)
    needed = set()
    for i, j, n in itertools.product(range(5), range(5), range(3, 7)):
        if i > j:
            continue
        values = {p: evaluate(p, {"i": i, "j": j, "n": n}) for p in parts}
        assert best(values[p] for p in kept) == best(values.values())
        firsts = [p for p in kept if values[p] == best(values.values())]
        if len(firsts) == 1:
            needed.add(firsts[0])
    assert len(kept) == 1 or set(kept) == needed
