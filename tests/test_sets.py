"""Questions to integer sets over names: ends of names, and what no set can say."""

from __future__ import annotations

import islpy as isl
import pymbolic.primitives as prim
import pytest
from seams import SpentError, at_most, parse_expression
from seams import sets as _sets

ROWS = isl.Set("[i, j, n] -> { : 0 <= i < n and i <= j }")


def test_ends_of_names() -> None:
    [(_, value)] = _sets.minimum(ROWS, "j").get_pieces()
    assert _sets.from_affine(value) == prim.Variable("i")
    with pytest.raises(_sets.UnboundedError):
        _sets.maximum(ROWS, "j")


def test_a_point_of_what_has_no_smallest() -> None:
    """Each name has a lower bound, which hangs on another name."""
    strip = isl.Set("[i, j] -> { : i <= j <= i + 2 }")
    for domain in (strip, strip | isl.Set("[i, j] -> { : i >= 0 and j >= 0 }")):
        assert not (domain & _sets.at(_sets.sample(domain))).is_empty()


def test_a_spent_budget_is_no_missing_end() -> None:
    with pytest.raises(SpentError), at_most(1):
        _sets.maximum(ROWS, "i")


def test_numbers_that_are_no_quotients() -> None:
    basic = isl.BasicSet("[i] -> { : exists (e: 2*e <= i <= 3*e) }")
    with pytest.raises(_sets.NotAffineError):
        for constraint in basic.get_constraints():
            _sets.form_of(constraint)


@pytest.mark.parametrize(
    ("conditions", "answer"),
    [([], False), (["j < i"], True), (["j > i", "j < i + 2"], False), (["i < 1", "i > 1"], True)],
)
def test_nowhere(conditions: list[str], answer: bool) -> None:
    assert _sets.is_nowhere(ROWS, map(parse_expression, conditions)) == answer


@pytest.mark.parametrize(
    ("points", "found"),
    [
        ("[a, b] -> { : a <= b <= a + 5 and b >= 3 and a >= b - 2 }", {"a": 1, "b": 3}),
        ("[a, b] -> { : a <= -1 and b >= 2 }", {"b": 2}),
        ("[a, b] -> { : a <= b <= a + 5 }", {}),  # each bounds the other, and nothing bounds both
    ],
)
def test_a_point_is_small_where_names_are_bounded(points: str, found: dict[str, int]) -> None:
    domain = isl.Set(points)
    point = _sets.sample(domain)
    assert not _sets.at_values(domain, point).is_empty()
    assert found.items() <= point.items()


def test_new_names_that_the_space_holds_already() -> None:
    """A name that no constraint mentions makes room for another one that gets its name."""
    held = isl.Set("[i, j, k] -> { : 0 <= i < 4 and k = 2*i }")
    assert _sets.rename(held, {"i": "j"}) == isl.Set("[j, k] -> { : 0 <= j < 4 and k = 2*j }")
    assert _sets.rename(held, {"i": "k", "k": "i"}) == isl.Set(
        "[i, k] -> { : 0 <= k < 4 and i = 2*k }"
    )
