"""Loops and order: which statement is inside of what, and what comes first."""

from __future__ import annotations

import pickle
import textwrap

import pytest
from kernel_outline import outline

from loopkit import (
    GlobalArg,
    InvalidArgumentError,
    ParseError,
    TemporaryVariable,
    UninitializedReadError,
    UnknownNameError,
    make_kernel,
)

TWO = "{ [i, j]: 0 <= i < n and 0 <= j < m }"
F32 = {"a": "float32"}


def check(domains: object, text: str, expected: str, **kwargs: object) -> None:
    kernel = make_kernel(domains, textwrap.dedent(text), **kwargs)  # type: ignore[arg-type]
    assert outline(kernel) == textwrap.dedent(expected).strip()


# {{{ inames


def test_a_statement_is_inside_what_it_uses() -> None:
    check(TWO, "c[j] = a[i, j]", "i:\n  j:\n    c[j] = a[i, j]")
    check(TWO, "c = 1", "c = 1")


def test_blocks_and_options_add_inames() -> None:
    check(TWO, "for j\n c[i] = 1\nend", "j:\n  i:\n    c[i] = 1")
    check(TWO, "c[i] = 1 {inames=i:j}", "i:\n  j:\n    c[i] = 1")
    check(TWO, "c[i] = 1 {inames=+j}", "i:\n  j:\n    c[i] = 1")


def test_parents_are_around_their_children() -> None:
    domains = ["{ [j]: 0 <= j <= i }", "{ [i]: 0 <= i < n }"]
    check(domains, "c[j] = 1", "i:\n  j:\n    c[j] = 1")
    check(domains, "for j\n c[j] = 1\nend", "i:\n  j:\n    c[j] = 1")


def test_a_scalar_is_read_where_it_is_written() -> None:
    check(
        TWO,
        """
        <> t = a[i]
        <> u = 2*t
        c[j] = u
        """,
        """
        i:
          t = a[i]
          u = 2*t
          j:
            c[j] = u
        """,
    )


def test_the_option_inames_says_all_loops_also_inside_of_for() -> None:
    check(
        TWO,
        """
        for i, j
            <> t = a[i, j]
            b[i, j] = t
            c[i] = sum(j, t) {inames=i}
        end
        """,
        """
        i:
          acc = 0
          j:
            t = a[i, j]
            b[i, j] = t
            acc sum= t
          c[i] = acc
        """,
    )
    check(TWO, "for i, j\nc[i] = 1 {inames=+i}\nend", "i:\n  j:\n    c[i] = 1")


def test_updates_live_where_their_start_is() -> None:
    check(
        TWO,
        """
        <> t = 0 {inames=+i}
        t = t + a[i, j]
        c[i] = t
        """,
        """
        i:
          t = 0
          j:
            t = t + a[i, j]
          c[i] = t
        """,
    )


def test_elements_of_an_array_outlive_the_loop_over_its_index() -> None:
    domain = "{ [i, j, k]: 0 <= i < n and 0 <= j, k < 4 }"
    check(
        domain,
        """
        <> t[j] = a[i, j]
        c[i, k] = t[k]
        """,
        """
        i:
          j:
            t[j] = a[i, j]
          k:
            c[i, k] = t[k]
        """,
    )


def test_rules_are_looked_through() -> None:
    check(TWO, "f(x) := a[i, x]\nc[j] = f(j)", "i:\n  j:\n    c[j] = f(j)")


def test_bounds_that_are_loaded() -> None:
    kernel = make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: start <= j < start + 4 }"],
        "<> start = rows[i]\nc[i] = sum(j, x[j])",
        [GlobalArg("x", "float32", shape="m"), ...],
        dtypes={"rows": "int32"},
    )
    expected = """
    i:
      start = rows[i]
      acc = 0
      j:
        acc sum= x[j]
      c[i] = acc
    """
    assert outline(kernel) == textwrap.dedent(expected).strip()


# }}}

# {{{ nesting


def test_loops_nest_as_declared() -> None:
    check("{ [j, i]: 0 <= i < n and 0 <= j < m }", "c[i, j] = 1", "j:\n  i:\n    c[i, j] = 1")


def test_neighbours_share_loops() -> None:
    check(
        TWO,
        """
        b[i] = 1
        c[i, j] = 2
        d[i, j] = 3
        e[i] = 4
        """,
        """
        i:
          b[i] = 1
          j:
            c[i, j] = 2
            d[i, j] = 3
          e[i] = 4
        """,
    )


def test_two_blocks_are_two_loops() -> None:
    check(
        TWO,
        """
        for i
          b[i] = 1
        end
        for i
          c[i] = 2
        end
        """,
        """
        i:
          b[i] = 1
        i:
          c[i] = 2
        """,
    )


def test_a_statement_without_block_joins_the_loop_beside_it() -> None:
    check(
        TWO,
        """
        a[i] = 1
        for i
          b[i] = 1
        end
        c[i] = 2
        for i
          d[i] = 2
        end
        """,
        """
        i:
          a[i] = 1
          b[i] = 1
          c[i] = 2
        i:
          d[i] = 2
        """,
    )


def test_a_value_read_in_another_loop_than_the_one_that_gives_it() -> None:
    with pytest.raises(ParseError) as caught:
        make_kernel(TWO, "<> t = a[j]\nc[i, j] = t", dtypes=F32)
    assert str(caught.value).startswith(
        "line 2, column 11: 't' is given its value by 'insn' in one loop over 'j' and read by "
        "'insn_0' in another, where only the last value is left"
    )
    check(
        TWO,
        "for j\n <> t = a[j]\n c[i, j] = t\nend",
        "j:\n  t = a[j]\n  i:\n    c[i, j] = t",
    )


# }}}

# {{{ order


def test_the_order_of_the_text() -> None:
    check(TWO, "b[i] = a[i]\na[i] = 0 {id=w}", "i:\n  b[i] = a[i]\n  a[i] = 0")


def test_an_explicit_dependency_moves_a_statement() -> None:
    check(TWO, "b = 1 {dep=last}\nc = 2\nd = 3 {id=last}", "c = 2\nd = 3\nb = 1")


def test_patterns_of_ids() -> None:
    check(
        TWO,
        "b = 1 {id=b, dep=w*}\nc = 2 {id=w1}\nd = 3 {id=w2}\ne = 4",
        "c = 2\nd = 3\nb = 1\ne = 4",
    )
    kernel = make_kernel(TWO, "c = 2 {id=w1}\nd = 3 {id=w2}\nb = 1 {id=b, dep=w*}")
    assert kernel.statement_by_id["b"].depends_on == {"w1", "w2"}


def test_a_temporary_is_written_before_it_is_read() -> None:
    check(TWO, "c[i] = t\n<> t = a[i]", "i:\n  t = a[i]\n  c[i] = t")


def test_statements_that_share_data_stay_in_order() -> None:
    check(
        TWO,
        """
        v[i] = a[i]
        c[i] = t
        d[i] = c[i]
        <> t = v[i]
        v[i] = 0
        """,
        """
        i:
          v[i] = a[i]
          t = v[i]
          c[i] = t
          d[i] = c[i]
          v[i] = 0
        """,
    )


def test_places_without_work() -> None:
    kernel = make_kernel(
        TWO, "b = 1 {id=b, dep=here}\n... nop {id=here, dep=c}\nc = 2 {id=c}\nd = 3"
    )
    assert outline(kernel) == "c = 2\nb = 1\nd = 3"
    assert kernel.statement_by_id["b"].depends_on == {"c"}


def test_a_cycle() -> None:
    with pytest.raises(InvalidArgumentError, match="'x' after 'y' after 'x'"):
        make_kernel(TWO, "b = 1 {id=x, dep=y}\nc = 2 {id=y, dep=x}")


def test_an_unknown_dependency() -> None:
    with pytest.raises(UnknownNameError) as caught:
        make_kernel(TWO, "b = 1 {id=fetch_a}\nc = 2 {dep=fetch_b}")
    assert "line 2, column 12: there is no statement 'fetch_b'" in str(caught.value)
    assert "did you mean 'fetch_a'?" in str(caught.value)


# }}}

# {{{ conditions


def test_conditions_become_predicates() -> None:
    check(
        TWO,
        """
        if i > 0
          c[i] = 1
        elif i < 3
          c[i] = 2
        else
          c[i] = 3
        end
        d[i] = 4 {if=i == 2}
        """,
        """
        i:
          c[i] = 1 if i > 0
          c[i] = 2 if not (i > 0) if i < 3
          c[i] = 3 if not (i > 0) if not (i < 3)
          d[i] = 4 if i == 2
        """,
    )


def test_a_condition_is_decided_before_the_body_changes_what_it_reads() -> None:
    check(
        TWO,
        """
        if a[i] > 0
          a[i] = -1
          b[i] = 1
        else
          b[i] = 2
        end
        """,
        """
        i:
          cond = a[i] > 0
          a[i] = -1 if cond
          b[i] = 1 if cond
          b[i] = 2 if not cond
        """,
        dtypes=F32,
    )


def test_a_condition_with_a_reduction() -> None:
    check(
        TWO,
        "if sum(j, a[i, j]) > 0\n b[i] = 1\nend",
        """
        i:
          acc = 0
          j:
            acc sum= a[i, j]
          cond = acc > 0
          b[i] = 1 if cond
        """,
        dtypes=F32,
    )
    check(TWO, "b[i] = 1 {if=max(i, 3) > 4}", "i:\n  b[i] = 1 if max(i, 3) > 4")


# }}}

# {{{ the rest of the language


def test_ids() -> None:
    kernel = make_kernel(TWO, "b = 1\nc = 2 {id=insn_0}\nd = 3\ne = 4 {id_prefix=x}")
    assert [s.id for s in kernel.statements] == ["insn", "insn_0", "insn_1", "x"]
    with pytest.raises(ParseError, match="there are two instructions 'x'"):
        make_kernel(TWO, "b = 1 {id=x}\nc = 2 {id=x}")


def test_tags_of_statements() -> None:
    kernel = make_kernel(TWO, "with {tags=x}\n b = 1 {tags=y}\nend")
    assert kernel.statements[0].tags == {"x", "y"}


def test_independent_inames_are_domains_of_their_own() -> None:
    kernel = make_kernel("{ [i, j, k]: 0 <= i < n and 0 <= j <= i and 0 <= k < 3 }", "c[i, j, k]=1")
    assert [d.inames for d in kernel.domains] == [("i", "j"), ("k",)]
    kernel = make_kernel("{ [i, j, k]: 0 <= i, j, k < n }", "c[i, j, k]=1")
    assert [d.inames for d in kernel.domains] == [("i",), ("j",), ("k",)]


def test_an_iname_of_two_domains() -> None:
    with pytest.raises(InvalidArgumentError, match="'i' is declared by two domains"):
        make_kernel([TWO, "{ [i]: 0 <= i < 4 }"], "c[i] = 1")


def test_domains_that_need_each_other() -> None:
    with pytest.raises(InvalidArgumentError, match="i -> j -> i"):
        make_kernel(["{ [i]: 0 <= i < j }", "{ [j]: 0 <= j < i }"], "c[i] = 1")


def test_what_cannot_be_assigned() -> None:
    with pytest.raises(ParseError, match="'i' is an iname and cannot be assigned to"):
        make_kernel(TWO, "i = 3")
    with pytest.raises(ParseError, match="'n' is a size of a domain and cannot be assigned to"):
        make_kernel(TWO, "n = 3\nc[i] = 2")
    with pytest.raises(ParseError, match="'f' is a substitution rule"):
        make_kernel(TWO, "f(x) := x\nf[i] = 3")


def test_an_unknown_iname_in_a_block() -> None:
    with pytest.raises(UnknownNameError) as caught:
        make_kernel("{ [row, col]: 0 <= row, col < n }", "for roww\n c[row] = 1\nend")
    assert "there is no iname 'roww'" in str(caught.value)
    assert "did you mean 'row'?" in str(caught.value)


def test_sizes_that_are_fixed() -> None:
    kernel = make_kernel(
        TWO, "c[i, j] = n*a[i]", dtypes=F32, fixed_parameters={"n": 8}, assumptions="n >= 3"
    )
    assert kernel.sizes == ("m",)
    assert outline(kernel) == "i:\n  j:\n    c[i, j] = 8*a[i]"
    assert kernel.arg_by_name["a"].shape == (8,)  # type: ignore[union-attr]
    with pytest.raises(InvalidArgumentError, match="no sizes meet the assumptions"):
        make_kernel(TWO, "c[i] = 1", fixed_parameters={"n": 2}, assumptions="n >= 3")


def test_kernels_are_values() -> None:
    def make() -> object:
        return make_kernel(TWO, "c[i] = sum(j, a[i, j])", dtypes=F32, assumptions="n >= 1")

    one, two = make(), make()
    assert one == two and hash(one) == hash(two)
    again = pickle.loads(pickle.dumps(one))
    assert again == one and again.key == one.key  # type: ignore[attr-defined]


def test_isl_sets_as_domains() -> None:
    import islpy as isl

    kernel = make_kernel(
        isl.BasicSet("[n] -> { [i]: 0 <= i < n }"),
        ["c[i] = 1", "d[i] = 2"],
        assumptions=isl.BasicSet("[n] -> { : n >= 1 }"),
    )
    assert outline(kernel) == "i:\n  c[i] = 1\n  d[i] = 2"
    assert kernel.assumptions.set.is_equal(isl.Set("[n] -> { : n >= 1 }").params())


# }}}


def test_what_no_call_passes_is_written_before_it_is_read() -> None:
    text = "y[i] = t[i] + 1 {id=read}\nt[j] = y[j] {id=write}"
    data = [GlobalArg("t, y", "float64", is_input=False), ...]
    domain = "{ [i, j]: 0 <= i < n and 0 <= j < n }"
    with pytest.raises(UninitializedReadError, match=r"'read' reads t\[0\] before anything"):
        make_kernel(domain, text, data)
    behind = "t[j] = j\ny[i] = t[i] + 1"
    assert make_kernel(domain, behind, data).arg_by_name["t"].is_input is False  # type: ignore[union-attr]
    with pytest.raises(UninitializedReadError, match="no statement writes 't'"):
        make_kernel(domain, "y[i] = t[i]", data)


def test_cells_that_no_set_can_name_may_have_been_written() -> None:
    text = "for i\n<> s[i*n] = a[i]\nend\nfor j\ny[j] = s[j*n]\nend"
    held = TemporaryVariable("s", shape=("n*n",))
    make_kernel("{ [i, j]: 0 <= i, j < n }", text, [held, ...], dtypes={"a": "float32"})


@pytest.mark.parametrize("value", ["a[x]", "2*a[x]", "2"])
def test_what_a_rule_stands_for_has_no_subscripts(value: str) -> None:
    text = f"c := {value.replace('x', 'i')}\n"
    with pytest.raises(InvalidArgumentError, match="only a name is called, or has subscripts"):
        make_kernel("{ [i]: 0 <= i < n }", text + "b[i] = 1 + c[i]")
    with pytest.raises(ParseError, match="'c' is a substitution rule and cannot be assigned to"):
        make_kernel("{ [i]: 0 <= i < n }", text + "c[i] = 1")
