"""Instructions: blocks, options, declarations, rules, positions, messages."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pymbolic.primitives as prim
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seams import (
    RawAssignment,
    RawNop,
    RawSubstitution,
    parse_expression,
    parse_instructions,
    position_of_name,
)

from loopkit import ParseError


def parse(text: str) -> tuple[Any, ...]:
    return parse_instructions(textwrap.dedent(text))


def for_inames(item: Any) -> tuple[str, ...]:
    return tuple(iname for _, inames in item.scopes for iname in inames)


def one(text: str) -> Any:
    (item,) = parse(text)
    return item


def test_assignment() -> None:
    item = one("c[i, j] = a[i] + 1")
    assert isinstance(item, RawAssignment)
    assert item.lhs == parse_expression("c[i, j]")
    assert item.rhs == parse_expression("a[i] + 1")
    assert item.declared is None
    assert item.inames is None
    assert for_inames(item) == ()


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ("<> t = 1", "auto"),
        ("<float32> t = 1", np.dtype("float32")),
        ("< np.int8 > t[i] = 1", np.dtype("int8")),
    ],
)
def test_declaration(text: str, declared: Any) -> None:
    assert one(text).declared == declared


@pytest.mark.parametrize(
    ("text", "rhs"),
    [
        ("a[i] += b + c", prim.Sum((parse_expression("a[i]"), parse_expression("b + c")))),
        ("a[i] -= x", parse_expression("a[i] - x")),
        ("a[i] *= b + c", parse_expression("a[i] * (b + c)")),
        ("a[i] /= x", parse_expression("a[i] / x")),
    ],
)
def test_update(text: str, rhs: Any) -> None:
    item = one(text)
    assert item.rhs == rhs


def test_options() -> None:
    item = one(
        "a[i] = 1 {id=w, dep=r:fetch_*, tags=x:y, if=b[i,j] > 0:c, nosync=r@local:q, "
        "inames=+i:j, priority=3}"
    )
    assert item.id == "w"
    assert item.depends_on == ("r", "fetch_*")
    assert item.tags == ("x", "y")
    assert item.predicates == (parse_expression("b[i,j] > 0"), parse_expression("c"))
    assert item.predicate_blocks == (0, 0)
    assert item.inames == {"i", "j"}
    assert not item.inames_is_final


def test_options_that_close_a_list() -> None:
    item = one("a[i] = 1 {dep=*r, inames=i:j, id_prefix=w}")
    assert item.depends_on == ("r",)
    assert item.inames_is_final
    assert item.id_prefix == "w"
    assert one("a = 1 {dep=*}").depends_on == ()
    assert one("a = 1 {inames=+}").inames == frozenset()


def test_options_of_loopys_scheduler_are_accepted() -> None:
    assert one("a = 1 {groups=g, conflicts=h, nosync_query=id:x}").id is None


def test_loops_keep_their_identity() -> None:
    first, second, third, after = parse(
        """
        for i, j
            a = 1
            for k
                b = 1
            end
        end
        for i
            c = 1
        end
        d = 1
        """
    )
    assert first.scopes == ((1, ("i", "j")),)
    assert second.scopes == ((1, ("i", "j")), (2, ("k",)))
    assert for_inames(second) == ("i", "j", "k")
    assert third.scopes == ((3, ("i",)),)
    assert after.scopes == ()


def test_conditions() -> None:
    first, second, nested, last, after = parse(
        """
        if x < 1
            a = 1
        elif y
            b = 1 {if=w}
            if z
                c = 1
            end
        else
            d = 1
        end
        e = 1
        """
    )
    x, y, z, w = map(parse_expression, ("x < 1", "y", "z", "w"))

    def no(condition: Any) -> Any:
        return prim.LogicalNot(condition)

    assert first.predicates == (x,)
    assert second.predicates == (no(x), y, w)
    assert second.predicate_blocks == (1, 1, 0)
    assert nested.predicates == (no(x), y, z)
    assert nested.predicate_blocks == (1, 1, 2)
    assert last.predicates == (no(x), no(y))
    assert after.predicates == ()


def test_with_gives_options_to_all_inside() -> None:
    first, second, third = parse(
        """
        with {dep=r, tags=x, inames=+i}
            a = 1 {dep=q, tags=y, id=w}
            with {tags=z}
                b = 1 {inames=j}
            end
        end
        c = 1
        """
    )
    assert first.id == "w"
    assert first.depends_on == ("r", "q")
    assert first.tags == ("x", "y")
    assert first.inames == {"i"}
    assert second.tags == ("x", "z")
    assert second.inames == {"j"}
    assert second.inames_is_final
    assert third.depends_on == ()


def test_substitution_rules() -> None:
    rule, constant = parse("f(x, y) := x + 2*y\ng := n + 1")
    assert isinstance(rule, RawSubstitution)
    assert (rule.name, rule.arguments) == ("f", ("x", "y"))
    assert rule.expression == parse_expression("x + 2*y")
    assert (constant.name, constant.arguments) == ("g", ())


def test_nop() -> None:
    item = one("... nop {id=n0, dep=a}")
    assert isinstance(item, RawNop)
    assert item.id == "n0"


def test_lines_that_go_on() -> None:
    first, second, third = parse(
        """
        a = f(1,   # a comment with a )
              2
              + 3)
        b = 1 + \\
            c
        d = 1
        """
    )
    assert first.rhs == parse_expression("f(1, 2 + 3)")
    assert second.rhs == parse_expression("1 + c")
    assert third.position.line == 7
    where = position_of_name(second, "c")
    assert (where.line, where.column) == (6, 5)


def test_list_of_strings_is_one_text() -> None:
    items = parse_instructions(["for i", "a[i] = 1", "end", "b = 2"])
    assert [for_inames(item) for item in items] == [("i",), ()]


def test_words_of_blocks_are_good_names_elsewhere() -> None:
    item = one("end = rowend[i] - end")
    assert item.lhs == prim.Variable("end")
    assert one("if_ = with + 1").lhs == prim.Variable("if_")


def test_positions() -> None:
    item = parse_instructions("\n\n  a[i] = 1\n  b[i] = q + a[q]")[1]
    assert (item.position.line, item.position.column) == (4, 3)
    where = position_of_name(item, "q")
    assert (where.line, where.column) == (4, 10)
    assert position_of_name(item, "missing") == item.position


def test_nothing() -> None:
    assert parse_instructions("") == ()
    assert parse_instructions("\n  # only a comment\n\n") == ()


@given(
    st.lists(
        st.sampled_from(["a[i] = 1", "for q", "end", "if x", "else", "# x", "f(x) := x", "  "])
    )
)
def test_blocks_balance_or_are_an_error(lines: list[str]) -> None:
    """Whatever stands in a text: items, or an error with a place."""
    try:
        items = parse_instructions("\n".join(lines))
    except ParseError as error:
        assert error.position is not None
        assert "^" in str(error)
    else:
        written = [line for line in lines if "=" in line]
        assert [item.text for item in items] == written


ERRORS = [
    "a",
    "a == b",
    "a = ",
    "a = b = 1",
    "a, b = 1",
    "f(x) = 2",
    "2 = x",
    "a b = 3",
    "a = 1; b = 2",
    "a //= 2",
    "a[i = 3\nfor i\nend",
    "a = b +\n  * c",
    "a = f(b, # c\n  c]",
    "<> t += 1",
    "<flot32> t = 1",
    "<float32 t = 1",
    "for i\n  a = 1",
    "for i:\nend",
    "for i in range(3)\nend",
    "for i\n  for j, i\n  end\nend",
    "for\nend",
    "end",
    "end for",
    "else",
    "for i\nelse\nend",
    "if\nend",
    "if x\nelse\nelif y\nend",
    "if x\nelse if y\nend",
    "if x = 2\nend",
    "with a\nend",
    "with {id=b}\nend",
    "a = 1 {id=}",
    "a = 1 {id=a b}",
    "a = 1 {idd=3}",
    "a = 1 {zzz=3}",
    "a = 1 {dup=i}",
    "a = 1 {dep_query=id:x}",
    "a = 1 {dep=a, dep=b}",
    "a = 1 {dep=a::b}",
    "a = 1 {if=a >}",
    "a = 1 {id=x",
    "a = 1 {id=x} b",
    "a = 1 {id=x,}",
    "a = 1 }",
    "... barrier",
    "...",
    "f(3) := 2",
    "f(x, x) := 1",
    "f(x y) := 1",
    "f[x] := 1",
    "f := x {id=y}",
    "f := ",
]


def test_errors_point_at_the_mistake(golden: Any) -> None:
    report = []
    for text in ERRORS:
        with pytest.raises(ParseError) as caught:
            parse_instructions(text)
        assert caught.value.position is not None
        assert caught.value.position.text == text
        report.append(f"--- {text!r}\n{caught.value}\n")
    golden("syntax/instruction_errors.txt", "\n".join(report))
