"""Substitution rules, assumptions, sizes that become constants, types."""

from __future__ import annotations

import numpy as np
import pytest
from loop_instances import check_change, results
from seams import to_text

import loopkit as lk
import loopkit.transforms as tr
from loopkit import (
    ArrayArg,
    IllegalTransformError,
    Kernel,
    LoopkitError,
    make_kernel,
    replay,
    verify,
)


@pytest.fixture(scope="module")
def squares() -> Kernel:
    return make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        b[i] = a[i]*a[i] + a[i + 1]*a[i + 1] {id=b}
        c[i] = a[2*i]*a[2*i] + a[i] + b[i] {id=c}
        """,
        dtypes={"a, b, c": "float32"},
        assumptions="n >= 1",
    )


def chain(text: str) -> Kernel:
    dtypes = {name: "float32" for name in "abc" if f"{name}[" in text}
    return make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }", text, dtypes=dtypes, assumptions="n >= 1"
    )


def right_sides(kernel: Kernel) -> dict[str, str]:
    return {s.id: to_text(s.rhs) for s in kernel.statements}


def rules(kernel: Kernel) -> list[str]:
    return [
        f"{r.name}({', '.join(r.arguments)}) := {to_text(r.expression)}"
        for r in kernel.substitutions
    ]


def error_of(function: object, *args: object, **kwargs: object) -> str:
    with pytest.raises(LoopkitError) as caught:
        function(*args, **kwargs)  # type: ignore[operator]
    return f"{type(caught.value).__name__}: {caught.value.why}" + (
        f"\n{caught.value.instead}" if caught.value.instead else ""
    )


# {{{ extracting and expanding


def test_extract_and_expand(squares: Kernel) -> None:
    new = squares.extract_subst("sq", "a[x]*a[x]", "x")
    assert rules(new) == ["sq(x) := a[x]*a[x]"]
    assert right_sides(new) == {"b": "sq(i) + sq(i + 1)", "c": "sq(2*i) + a[i] + b[i]"}
    back = new.expand_subst()
    assert back == squares
    part = new.expand_subst(within="id:b")
    assert right_sides(part) == {"b": right_sides(squares)["b"], "c": "sq(2*i) + a[i] + b[i]"}
    assert rules(part) == rules(new)
    assert part.expand_subst("id:c") == squares


def test_templates_match_the_beginning_of_sums(squares: Kernel) -> None:
    new = squares.extract_subst("two", "x*x + y", ["x", "y"], within="id:c")
    assert right_sides(new)["c"] == "two(a[2*i], a[i]) + b[i]"
    assert results(new, {"n": 3}) == results(squares, {"n": 3})


def test_extract_inside_rules(squares: Kernel) -> None:
    new = squares.extract_subst("sq", "a[x]*a[x]", "x").extract_subst("at", "a[x]", "x")
    assert rules(new) == ["sq(x) := at(x)*at(x)", "at(x) := a[x]"]
    assert new.expand_subst() == squares


def test_extract_errors(squares: Kernel) -> None:
    assert error_of(squares.extract_subst, "f", "a[j]") == (
        "IllegalTransformError: no expression matches the template 'a[j]'\n"
        "only names in `parameters` match any expression: 'a', 'j' mean themselves"
    )
    assert error_of(squares.extract_subst, "f", "max(a[j], 7)") == (
        "IllegalTransformError: no expression matches the template 'max(a[j], 7)'\n"
        "only names in `parameters` match any expression: 'a', 'j' mean themselves"
    )
    for template in ("sum(j, a[j])", "2*max(j, a[j])", "argmin(j, a[x + j], j)"):
        assert "holds a reduction, which is statements here" in error_of(
            make_kernel("{ [j]: 0 <= j < n }", "s = sum(j, a[j])").extract_subst,
            "f",
            template,
            "x" if "x +" in template else (),
        )
    assert error_of(squares.extract_subst, "a", "a[i]").startswith(
        "InvalidArgumentError: the name 'a' is taken"
    )
    assert error_of(squares.extract_subst, "f", "a[i]", "x") == (
        "UnknownNameError: there is no name 'x'\nnames that exist: a, i"
    )
    assert error_of(squares.expand_subst) == (
        "NothingToDoError: no substitution rule is used in this kernel"
    )


def test_rules_follow_their_inames(squares: Kernel) -> None:
    new = squares.extract_subst("here", "a[i]")
    split = new.split_iname("i", 4)
    assert rules(split) == ["here() := a[4*i_outer + i_inner]"]
    apart = new.duplicate_inames("i", "id:c")
    assert rules(apart) == ["here() := a[i]", "here_0() := a[i_0]"]
    assert "here_0" in right_sides(apart)["c"]
    for kernel in (split, apart):
        assert results(kernel, {"n": 5}) == results(squares, {"n": 5})


# }}}

# {{{ from assignments


def test_assignment_to_subst() -> None:
    kernel = chain("<> t[i] = 2*a[i] {id=t}\nb[i] = t[i] + 1 {id=b}\nc[j] = t[j] + t[0] {id=c}")
    new = kernel.assignment_to_subst("t")
    assert rules(new) == ["t_subst(i) := 2*a[i]"]
    assert right_sides(new) == {"b": "t_subst(i) + 1", "c": "t_subst(j) + t_subst(0)"}
    assert not new.temporaries
    assert results(new, {"n": 3}) == results(kernel, {"n": 3})
    part = kernel.assignment_to_subst("t", within="id:b")
    assert set(right_sides(part)) == {"t", "b", "c"}
    assert results(part, {"n": 3}) == results(kernel, {"n": 3})


def test_assignment_of_a_scalar() -> None:
    kernel = chain("for i\n<> t = 2*a[i] {id=t}\nb[i] = t + 1 {id=b}\nend")
    assert rules(kernel.assignment_to_subst("t")) == ["t_subst() := 2*a[i]"]
    extra = kernel.assignment_to_subst("t", "i")
    assert rules(extra) == ["t_subst(i) := 2*a[i]"]
    assert right_sides(extra) == {"b": "t_subst(i) + 1"}


def test_rounding_to_a_narrower_type_is_kept() -> None:
    kernel = chain("<float16> t[i] = 2*a[i] {id=t}\nb[i] = t[i] + 1 {id=b}")
    assert rules(kernel.assignment_to_subst("t")) == ["t_subst(i) := cast(float16, 2*a[i])"]


def test_rules_in_rules_have_types() -> None:
    """A rule on the right side has the type of what it says: nothing is cast."""
    kernel = chain("<> t[i] = a[i + 1] + 2*a[i] {id=t}\nb[i] = t[i] + t[i] {id=b}")
    named = kernel.extract_subst("f", "2*a[x]", "x").extract_subst("g", "a[i + 1] + f(i)")
    new = named.assignment_to_subst("t")
    assert rules(new) == ["f(x) := 2*a[x]", "g() := a[i + 1] + f(i)", "t_subst(i) := g"]
    assert results(new, {"n": 3}) == results(kernel, {"n": 3})


def test_arguments_stay() -> None:
    kernel = chain("b[i] = 2*a[i] {id=b}\nc[i] = b[i] + 1 {id=c}")
    new = kernel.assignment_to_subst("b")
    assert right_sides(new) == {"b": "2*a[i]", "c": "b_subst(i) + 1"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "<> t[i] = a[i] {id=t}\na[j] = 1 {id=a}\nb[i] = t[i] {id=b}",
            "'a' (j=0) would overwrite a[0] before 't' (i=0) has read it",
        ),
        (
            "for i\n<> t[i] = a[i] {id=t}\nb[i] = t[0] {id=b}\na[i] = 1 {id=a}\nend",
            "'a' (i=0) would overwrite a[0] before 't' (i=0) has read it",
        ),
        (
            "<> s = 0 {id=s}\nfor i\nb[i] = s {id=b}\ns = a[i] {id=t}\nend",
            "written by 2 (s, t)",
        ),
        (
            "<> t[0] = a[0] {id=t}\nb[i] = t[0] {id=b}",
            "its subscript '0' in statement 't' is not an iname",
        ),
        ("<> t[i] = a[i] {id=t, if=a[i] > 0}\nb[i] = t[i] {id=b}", "only under a condition"),
        ("<> t[i] = 0 {id=t}\nt[i] = t[i] + 1 {id=u}\nb[i] = t[i] {id=b}", "written by 2 (t, u)"),
    ],
)
def test_assignments_that_cannot_move(text: str, message: str) -> None:
    kernel = chain(text)
    assert message in error_of(kernel.assignment_to_subst, kernel.temporaries[0].name)


@pytest.mark.parametrize(
    "text",
    [
        "<> t[i] = a[i] {id=t}\na[j + n] = 1 {id=a}\nb[i] = t[i] {id=b}",
        "for i\n<> t[i] = a[i + 1] {id=t}\na[i] = 1 {id=a}\nb[i] = t[i] {id=b}\nend",
        "for i\n<> t[i] = a[i] {id=t}\nend\nfor j\nb[j] = t[j] {id=b}\na[j] = 1 {id=a}\nend",
    ],
)
def test_writes_of_other_cells_do_no_harm(text: str) -> None:
    """Which cells meet is for the proof to say."""
    assert chain(text).assignment_to_subst("t").history[-1].verdict == "proven"


def test_writes_before_the_definition_do_no_harm() -> None:
    kernel = chain("for i\na[i] = 1 {id=a}\n<> t = 2*a[i] {id=t}\nb[i] = t + 1 {id=b}\nend")
    assert rules(kernel.assignment_to_subst("t")) == ["t_subst() := 2*a[i]"]


# }}}

# {{{ assumptions and sizes


def test_assume(squares: Kernel) -> None:
    new = squares.assume("n mod 16 = 0").assume("n <= 64")
    known = new.assumptions.set
    assert (
        new.split_iname("i", 16)
        .domain_of(["i_inner"])
        .is_equal(squares.split_iname("i", 16).domain_of(["i_inner"]))
    )
    assert "n" in str(known)
    assert error_of(new.assume, "n = 3").startswith("InvalidArgumentError: no sizes satisfy")
    assert error_of(new.assume, "m = 3") == (
        "UnknownNameError: there is no size 'm'\nsizes that exist: n"
    )
    assert error_of(new.assume, 3).startswith("InvalidArgumentError: assumptions is text")
    assert error_of(new.assume, "n >= ").startswith("ParseError")


def test_fix_parameters() -> None:
    kernel = make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "c[i, j] = a[n - 1 - i, j]*n + n*m {if=i < n - 1}",
        dtypes={"a, c": "float32"},
        assumptions="n, m >= 1",
    )
    check_change(tr.fix_parameters, kernel, n=4, sizes={"n": 4, "m": 2})
    new = kernel.fix_parameters(n=4)
    assert new.sizes == ("m",)
    [statement] = new.statements
    assert to_text(statement.lhs) == "c[i, j]"
    assert to_text(statement.rhs) == "a[3 - i, j]*4 + 4*m"
    assert to_text(statement.predicates[0]) == "i < 3"
    shapes = {a.name: a.shape for a in new.args if isinstance(a, ArrayArg) and a.shape}
    assert shapes["a"][0] == 4
    value = statement.rhs.children[0].children[1]
    assert type(value) is int, "a size has no type of its own, and neither has its number"
    assert new.fix_parameters(m=3).sizes == ()
    assert replay(kernel, new.history) == new


def test_fix_parameters_errors(squares: Kernel) -> None:
    assert error_of(squares.fix_parameters, m=3) == (
        "UnknownNameError: there is no size 'm'\nsizes that exist: n"
    )
    assert error_of(squares.fix_parameters, n=0) == (
        "IllegalTransformError: n=0 contradicts the assumptions of the kernel: n >= 1"
    )
    assert error_of(squares.fix_parameters, n=1.5) == (
        "InvalidArgumentError: the size 'n' must be an integer, not 1.5"
    )
    assert "no size is given" in error_of(squares.fix_parameters)


# }}}

# {{{ types


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int64])
def test_a_scalar_of_open_type_becomes_data(dtype: type) -> None:
    text = make_kernel("{ [i] : 0 <= i < n }", "y[i] = a*x[i] + y[i] {if=a != 3}")
    steps = [
        lambda k: k.add_dtypes({"a": dtype, "x, y": dtype}),
        lambda k: k.split_iname("i", 4, inner_tag="l.0"),
    ]
    for order in (steps, steps[::-1]):
        made = text
        for step in order:
            made = step(made)
        assert made.prove().ok
        assert verify(steps[0](text), made)
        x = np.arange(5).astype(dtype)
        made.executor("reference")(x=x, y=(y := x.copy()), a=dtype(2))
        assert (y == 3 * x).all()


def test_what_is_assumed_of_a_scalar_makes_it_whole() -> None:
    text = make_kernel("{ [i] : 0 <= i < n }", "y[i] = a*x[i]").assume("a >= 4")
    assert "the kernel assumes something of it, as of a whole number" in error_of(
        text.add_dtypes, {"a": "float32"}
    )
    assert text.add_dtypes({"a": "int64"}).arg_by_name["a"].dtype == np.int64


def test_add_dtypes() -> None:
    kernel = make_kernel("{ [i]: 0 <= i < n }", "b[i] = 2*a[i]", assumptions="n >= 1")
    new = kernel.add_dtypes({"a, b": "float32"})
    assert {a.dtype for a in new.args if isinstance(a, ArrayArg)} == {np.dtype("float32")}
    inferred = kernel.add_and_infer_dtypes({"a": np.float16})
    assert inferred.arg_by_name["b"].dtype == np.dtype("float16")
    assert error_of(new.add_dtypes, {"a": "float64"}) == (
        "InvalidArgumentError: 'a' has the type float32 already, and cannot become float64"
    )
    assert error_of(new.add_dtypes, {"aa": "float64"}) == (
        "UnknownNameError: there is no variable 'aa'\ndid you mean 'a'?"
    )
    assert "did you mean 'float32'" in error_of(kernel.add_dtypes, {"a": "float23"})


# }}}


def test_in_a_subscript_the_last_parameter_is_all_that_is_left():
    knl = make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i, j] = a[i*m + j] + a[i*m + j + 1]",
        [lk.GlobalArg("a", "float32", shape="n*m + 1"), lk.GlobalArg("b", shape="n, m"), ...],
        dtypes={"b": "float32"},
        assumptions="n, m >= 1",
    )
    knl = knl.split_iname("i", 4).split_iname("j", 8)
    at = knl.extract_subst("at", "a[r*m + c]", "r, c")
    assert "at(4*i_outer + i_inner, 8*j_outer + j_inner) + at(" in str(at)
    assert "at(4*i_outer + i_inner, 8*j_outer + j_inner + 1)" in str(at)
    with pytest.raises(IllegalTransformError, match="no expression matches"):
        knl.extract_subst("at", "a[r*m + n]", "r")
