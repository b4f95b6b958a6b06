"""Domains and assumptions: which names are parameters, and what is wrong with a set."""

from __future__ import annotations

from typing import Any

import islpy as isl
import pytest

from loopkit._errors import ParseError
from loopkit._syntax import parse_assumptions, parse_domain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ [i, j]: 0<=i<n and 0<=j<m }", "[n, m] -> { [i, j]: 0<=i<n and 0<=j<m }"),
        ("[n] -> { [i]: 0 <= i < n }", "[n] -> { [i]: 0 <= i < n }"),
        ("[m, n] -> { [i]: 0 <= i < n }", "[m, n] -> { [i]: 0 <= i < n }"),
        ("{[j]: 0 <= j <= i}", "[i] -> { [j]: 0 <= j <= i }"),
        ("{[i]: 0<=i<n; [i]: i=2n}", "[n] -> { [i]: 0<=i<n or i=2n }"),
        ("{[i]: exists e: i = 2e and i < n}", "[n] -> { [i]: i mod 2 = 0 and i < n }"),
        (
            "{[i]: exists (e0, e1: i = 6e0 + 9e1 + q)}",
            "[q] -> { [i]: (i - q) mod 3 = 0 }",
        ),
        ("{[i, j=2*m]: 0<=i<2k}", "[m, k] -> { [i, j]: j = 2m and 0<=i<2k }"),
        ("{ [i]: start <= i < end }", "[start, end] -> { [i]: start <= i < end }"),
        ("{[i]: 0 <= i < min(n, floor(m/2))}", "[n, m] -> { [i]: 0<=i<n and 2i+2 <= m }"),
        ("{S[i]: 0 <= i < 4}", "{ [i]: 0 <= i < 4 }"),
        ("{ [i]: false }", "{ [i]: false }"),
        ("{ [] : }", "{ [] }"),
        ("{ : n > 0 }", "[n] -> { [] : n > 0 }"),
    ],
)
def test_domain(text: str, expected: str) -> None:
    domain = parse_domain(text)
    wanted = isl.Set(expected)
    assert domain.get_var_names(isl.dim_type.param) == wanted.get_var_names(isl.dim_type.param)
    assert domain.is_equal(wanted)
    assert not domain.is_params()


def test_inames_keep_their_names() -> None:
    assert parse_domain("{[i, k]: 0<=i,k<n}").get_var_names(isl.dim_type.set) == ["i", "k"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n, m, l >= 1", "[n, m, l] -> { : n >= 1 and m >= 1 and l >= 1 }"),
        ("n mod 4 = 0 and m > n", "[n, m] -> { : n mod 4 = 0 and m > n }"),
        ("[n] -> { : n >= 1 }", "[n] -> { : n >= 1 }"),
        ("{ : n >= 1 }", "[n] -> { : n >= 1 }"),
        ("", "{ : }"),
    ],
)
def test_assumptions(text: str, expected: str) -> None:
    found = parse_assumptions(text)
    assert found.is_params()
    assert found.is_equal(isl.Set(expected))


DOMAIN_ERRORS = [
    "0 <= i < n",
    "{[i]: 0 <= i < n",
    "{[i]: 0 <= i < n)}",
    "{[i]: 0 <= i < n} and more",
    "n -> { [i]: 0 <= i < n }",
    "{[i, i]: 0 <= i < n}",
    "{[i]: i == n}",
    "{[i]: i ** 2 < n}",
    "{[i]: i * n < 3}",
    "{[i]: (i + 1)*(n) < 3}",
    "{[i]: i / n < 3}",
    "{[i]: 0 <= i < a[3]}",
    "{[i]: i < 1.5}",
    "{[i]: 0 <= i < n and and i > 3}",
    "{[i]: 0 <= i < }",
    "{[i]: 0 <= i <\n   * 3}",
    "{[i]: f(i) < n}",
    "{[i] -> [j]}",
    "{[i] 0 <= i < n}",
    "{[i]: i k < n}",
    "{[i]: 0 <= i < n & i > 2}",
    "{[i]: 0 <= i}, {[j]: 0 <= j}",
]


def test_errors_point_at_the_mistake(golden: Any, capfd: pytest.CaptureFixture[str]) -> None:
    report = []
    for text in DOMAIN_ERRORS:
        with pytest.raises(ParseError) as caught:
            parse_domain(text)
        assert caught.value.position is not None
        report.append(f"--- {text!r}\n{caught.value}\n")
    for text in ["n => 1", "n >", "{ [i]: i > n }", "n >= 1.5"]:
        with pytest.raises(ParseError) as caught:
            parse_assumptions(text)
        report.append(f"--- assumption {text!r}\n{caught.value}\n")
    golden("syntax/domain_errors.txt", "\n".join(report))
    assert capfd.readouterr() == ("", "")  # isl itself prints nothing
