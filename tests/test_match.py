"""Match strings."""

from __future__ import annotations

import pytest
from seams import matching_statements as matching
from seams import parse_match

from loopkit import IllegalTransformError, InvalidArgumentError, Kernel, ParseError, make_kernel


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return make_kernel(
        "{ [i, j]: 0 <= i, j < n }",
        """
        f(x) := 2*b[x]
        <> t = a[i]          {id=load, tags=input}
        c[i] = t + f(i)      {id=write_c, tags=out:fast}
        d[i, j] = c[i] + j   {id=write_d, tags=out}
        """,
        dtypes={"a, b, c, d": "float32"},
    )


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (None, {"load", "write_c", "write_d"}),
        ("", {"load", "write_c", "write_d"}),
        ("id:load", {"load"}),
        ("id:write*", {"write_c", "write_d"}),
        ("id:write_[cd]", {"write_c", "write_d"}),
        ("writes:t or reads:t", {"load", "write_c"}),
        ("reads:f", {"write_c"}),
        ("reads:b", {"write_c"}),
        ("iname:j", {"write_d"}),
        ("tag:out", {"write_c", "write_d"}),
        ("not tag:out", {"load"}),
        ("not (tag:out and iname:j)", {"load", "write_c"}),
        ("id:load or id:write_c and iname:j", {"load"}),
        ("(id:load or id:write_c) and iname:i", {"load", "write_c"}),
        ("not not id:load", {"load"}),
        (" id : load ", {"load"}),
    ],
)
def test_matching(kernel: Kernel, match: str | None, expected: set[str]) -> None:
    assert matching(kernel, match) == expected
    assert matching(kernel, str(parse_match(match))) == expected


@pytest.mark.parametrize(
    ("match", "message"),
    [
        (
            "id:a and",
            (
                "a match string\nline 1, column 9: a condition is missing here\n"
                "    id:a and\n            ^\n"
                "conditions look like 'id:w* and (writes:acc or not tag:input)'"
            ),
        ),
        (
            "id:a writes:b",
            (
                "a match string\nline 1, column 6: unexpected 'writes:b': 'and' or 'or' is "
                "missing\n    id:a writes:b\n         ^^^^^^^^"
            ),
        ),
        (
            "(id:a",
            "a match string\nline 1, column 6: ')' is missing\n    (id:a\n         ^",
        ),
        (
            "writs:a",
            (
                "a match string\nline 1, column 1: statements are not matched by 'writs:'\n"
                "    writs:a\n    ^^^^^^^\nthey are matched by id:, writes:, reads:, iname:, tag:"
            ),
        ),
        (
            "load",
            (
                "a match string\nline 1, column 1: 'load' is no condition\n    load\n    ^^^^\n"
                "conditions look like 'id:w* and (writes:acc or not tag:input)'"
            ),
        ),
    ],
)
def test_errors(kernel: Kernel, match: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        matching(kernel, match)
    assert str(caught.value) == message


def test_nothing_matches(kernel: Kernel) -> None:
    with pytest.raises(IllegalTransformError, match="no statement matches 'id:lod'") as caught:
        matching(kernel, "id:lod")
    assert caught.value.instead == "statements that exist: load, write_c, write_d"
    with pytest.raises(InvalidArgumentError):
        matching(kernel, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["... > id:h", "id:h > id:g"])
def test_rules_within_rules_are_not_matched(text: str) -> None:
    with pytest.raises(ParseError, match="tags"):
        parse_match(text)
