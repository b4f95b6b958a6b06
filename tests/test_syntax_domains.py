"""Domains and assumptions: which names are parameters, and what is wrong with a set."""

from __future__ import annotations

import re
from typing import Any

import islpy as isl
import pytest
from seams import parse_assumptions, parse_domain, parse_map

from loopkit import ParseError, UnknownNameError


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
        ("{ [i]: 0 <= i < n and i % -3 = -1 }", "[n] -> { [i]: 0<=i<n and i mod 3 = 2 }"),
        ("{ [i]: (i // (-3)) // 2 = -1 }", "{ [i]: 1 <= i <= 6 }"),
        ("{ [i]: (3*i) mod 5 = 2 }", "{ [i]: i mod 5 = 4 }"),
        ("{ [i]: 3*(i mod 5) = 6 }", "{ [i]: i mod 5 = 2 }"),
        ("{ [i]: i mod 7 mod 3 = 2 }", "{ [i]: i mod 7 = 2 or i mod 7 = 5 }"),
        ("{ [i, j]: i - j mod 4 = 0 }", "{ [i, j]: i = (j mod 4) }"),
        ("{ [i]: i/2 + 1/3 < n - i/6 }", "[n] -> { [i]: 4i + 2 < 6n }"),
        ("{ [i]: ceil(-i/2) = -3 }", "{ [i]: 6 <= i <= 7 }"),
        ("{ [i]: not i < 3 and i < 9 }", "{ [i]: 3 <= i < 9 }"),
        ("{ [i, j]: 0 <= i, j + 1 < n }", "[n] -> { [i, j]: 0 <= i < n and -1 <= j < n - 1 }"),
        ("{ [i]: 0 != i != 2 and 0 <= i < 4 }", "{ [i]: i = 1 or i = 3 }"),
        ("{ [i]: 0 <= i < 9 and (i < 2 implies i = 1) }", "{ [i]: 1 <= i < 9 }"),
        ("{ [i]: 0 <= i < 9223372036854775807 }", "{ [i]: 0 <= i < 9223372036854775807 }"),
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
        ("exists(e: n = 4*e)", "[n] -> { : n mod 4 = 0 }"),
        ("exists e: n = 4e and n > 0", "[n] -> { : n mod 4 = 0 and n > 0 }"),
        ("(n <= 3 or n >= 8) and n > 0", "[n] -> { : 1 <= n <= 3 or n >= 8 }"),
        ("n % -4 = -1", "[n] -> { : n mod 4 = 3 }"),
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
    "{[i]: 3*i mod 5 = 2}",
    "{[i]: 2i % 3 = 1}",
    "{[i]: -i % 3 = 1}",
    "{[i, j]: i - 3*j // 4 = 0}",
    "{[i]: -3 mod 5 = i}",
    "{[i]: 0 <= i < 9223372036854775808}",
    "{[i]: 0 <= i < 123456789012345678901234567890}",
    "{[i]: i < 9223372036854775807 * 2}",
    "{[i, j]: 0 <= i < n, 0 <= j < m}",
    "{[i, j]: i >= 0, j >= 0 and i, j < n}",
    "{[i]: -inf < i < n}",
    "{[i]: 0 <= i < nan}",
    "{[i]: 0 <= i < infty}",
    "{[i]: 0 <= i < NaN}",
    "{[i]: 0 <= i < n # comment\n}",
    "{[i]: 0 <= i < 1_000}",
    "{[i]: 0 <= i < 0x10}",
    "{[i]: 0 <= i < 1e3}",
    "{[i]: 0mod <= i < 3}",
    "{[i]: 0 <= i < \ud800}",
    "{[i]: 0 <= i < größe}",
    "{[n]: 0 <= n < n;}",
    "[n, n] -> {[i]: 0 <= i < n}",
    "[i] -> {[i]: 0 <= i < 4}",
    "{[i]: 0 <= i < 4; [j]: 0 <= j < 4}",
    "{[i]: 0 <= i}{[j]: 0 <= j}",
    "{[i]: i}",
    "{[i]: (i < 3) < n}",
    "{[i]: i + (i < 3) < n}",
    "{[i]: i < 3 and}",
    "{[i]: exists 3: i < 3}",
    "{[i]: exists i: i < 3}",
    "{[i]: exists e i < 3}",
    "{[i]: i // 0 = 3}",
    "{[i]: i / 0 = 3}",
    "{[i]: i mod n = 3}",
    "{[i]: i mod (1/2) = 3}",
    "{[i]: i/2 mod 3 = 1}",
    "{[i]: floor(i, 2) = 1}",
    "{[i]: floord(i) = 1}",
    "{[i]: 0 <= i <> n}",
    "{[i]: rat: i = 3}",
    "{[i, mod]: 0 <= i < 3}",
    "{[i,, j]: 0 <= i < 3}",
    "{[i = 1/2]}",
    "{}",
    "{[i]: ((((i < 3)}",
    "{[i]: " + 2000 * "(" + "i < 3" + 2000 * ")" + "}",
]


def test_listed_parameters_are_all() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'rows'") as caught:
        parse_domain("[rows] -> {[i]: 0 <= i < row}")
    assert caught.value.position is not None
    assert caught.value.position.column == 26


def test_errors_point_at_the_mistake(golden: Any, capfd: pytest.CaptureFixture[str]) -> None:
    report = []
    for text in DOMAIN_ERRORS:
        with pytest.raises(ParseError) as caught:
            parse_domain(text)
        assert caught.value.position is not None
        shown = str(caught.value) if len(text) < 200 else caught.value.why
        report.append(f"--- {text[:60]!r}\n{shown}\n")
    for text in ["n => 1", "n >", "{ [i]: i > n }", "n >= 1.5", "3*n mod 4 = 0", "n < inf", "n"]:
        with pytest.raises(ParseError) as caught:
            parse_assumptions(text)
        report.append(f"--- assumption {text!r}\n{caught.value}\n")
    golden("syntax/domain_errors.txt", "\n".join(report))
    assert capfd.readouterr() == ("", "")  # isl itself prints nothing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ [t, i] -> [w, i]: w = t + i }", "{ [t, i] -> [w, i]: w = t + i }"),
        ("{ [i] -> [i']: i' = n - 1 - i }", "[n] -> { [i] -> [i']: i' = n - 1 - i }"),
        ("[n] -> { [i] -> [n - i] }", "[n] -> { [i] -> [n - i] }"),
        (
            "{ [i] -> [a, b = i % -4]: a = i // -4 }",
            "{ [i] -> [a, b]: -4 < b <= 0 and i = b - 4a }",
        ),
        (
            "{ [i] -> [i]: i < 3; [i] -> [i + 1]: i >= 3 }",
            "{ [i] -> [i]: i < 3; [i] -> [j]: j = i + 1 > 3 }",
        ),
        ("{ [i] -> [j]: (3*i) mod 5 = j }", "{ [i] -> [j]: 0 <= j < 5 and (3*i - j) mod 5 = 0 }"),
    ],
)
def test_map(text: str, expected: str) -> None:
    assert parse_map(text).is_equal(isl.Map(expected))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{ [i] -> [j]: j = 3*i mod 5 }", "it is not clear what 'mod' is of"),
        ("{ [i] -> [j]: j = i # 3\n}", "'#' is not part of a domain's language"),
        ("{ [i] -> [j]: j = \ud800 }", "expected a value but found"),
        ("{ [i]: i = 3 }", "expected '->' but found ':'"),
        ("[i] -> [j]", "a map is written in braces"),
        ("{ [i] -> j }", "expected '\\[' but found 'j'"),
        ("{ [i] -> [j] } }", "closes nothing"),
        ("{ [i] -> [j]: j = 18446744073709551616*i }", "larger than any index"),
    ],
)
def test_map_errors(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why) as caught:
        parse_map(text)
    assert str(caught.value).encode()


BITS = [
    "i & 5",
    "i >> 2",
    "i | 3",
    "i ^ 6",
    "i << 1 & 12",
    "(i - 7) & -4",
    "i + 1 >> 1 & 3",
    "-i & 9",
]


@pytest.mark.parametrize(
    "text", [*BITS, "-i & 9", "3 ^ i | 8", "(i & 7) + (i >> 3)", "i & 0", "5 & 3"]
)
def test_bits(text: str) -> None:
    for relation in ("<= 2", "= 1", "> -3"):
        found = parse_domain(f"{{ [i]: -20 <= i < 40 and {text} {relation} }}")
        python = f"{text} {relation.replace('=', '==') if relation == '= 1' else relation}"
        want = [i for i in range(-20, 40) if eval(python, {"i": i})]
        points = " or ".join(f"i = {i}" for i in want) or "false"
        assert found == isl.Set(f"{{ [i]: {points} }}")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("i & j = 0", "'&' of two variables is not affine"),
        ("i >> j = 0", "a shift goes by a number of bits that is known"),
        ("i << 64 = 0", "less than 64"),
        ("i/2 & 1 = 0", "'&' is of integers"),
        ("(i > 2) & (j > 2)", "'&' is not part of a domain's language"),
    ],
)
def test_bits_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=re.escape(why)):
        parse_domain(f"{{ [i, j]: 0 <= i, j < 8 and {text} }}")
