"""Texts without a meaning are refused when a kernel is made, with the reason."""

from __future__ import annotations

from typing import Any

import islpy as isl
import numpy as np
import pytest
from pace import seconds
from seams import operations, terms
from seams import promotion as dt
from seams import sets as _sets

import loopkit as lk
from loopkit import (
    InvalidArgumentError,
    LoopkitError,
    ParseError,
    TypeInferenceError,
    UnknownNameError,
)

ONE = "{ [i]: 0 <= i < n }"


def make(text: str, kernel_data: Any = None, domain: Any = ONE, **more: Any) -> lk.Kernel:
    return lk.make_kernel(domain, text, kernel_data, **more)


@pytest.mark.parametrize(
    "text",
    [
        "y[i] = foo(x[i])",
        "y[i] = sqr(x[i]) + 1",
        "y[i] = x[i] {if=isnam(x[i])}",
        "y[x[i] + powr(2, 3)] = 1",
        "f(a) := sqr(a)\ny[i] = f(x[i])",
    ],
)
def test_functions_exist(text: str) -> None:
    with pytest.raises(TypeInferenceError, match=r"there is no function '\w+'\ndid you mean"):
        make(text)


def test_what_a_kernel_can_call_itself_is_proposed() -> None:
    """Functions of its own, its rules, and reductions; what is an array is said to be one."""
    own = lk.register_callable("square", {"x": "float32"}, "float32", body="return x*x;")
    for text, more, meant in (
        ("y[i] = squar(x[i])", {"functions": [own]}, "'square'"),
        ("cubed(a) := a**3\ny[i] = cubd(x[i])", {}, "'cubed'"),
        ("y[i] = summ(k, x[k])", {}, "'sum'"),
    ):
        with pytest.raises(TypeInferenceError, match=f"did you mean {meant}") as refused:
            make(text, dtypes={"x": "float32"}, **more)
        assert "there is no function" in str(refused.value)
    with pytest.raises(TypeInferenceError, match=r"'x' is no function: x\[...\] is an element"):
        make("y[i] = x(i)", dtypes={"x": "float32"})
    with pytest.raises(
        TypeInferenceError, match=r"kernel can call besides: .*square.*\nfunctions: "
    ):
        make("y[i] = qqq(x[i])", functions=[own])


def test_functions_take_what_they_take() -> None:
    with pytest.raises(TypeInferenceError, match="'sqrt' takes 1 argument, not 2"):
        make("y[i] = sqrt(x[i], 2)")


@pytest.mark.parametrize(
    "constant",
    [
        "9**9**9",
        "2**2**2**2**2**2",
        "2**-9**9**9",
        "1 << 10**10",
        "10**5000",
        "x[i]*10**400",
        "pow(9, 9**9)",
    ],
)
def test_constants_that_no_type_holds(constant: str) -> None:
    def refused() -> None:
        with pytest.raises(TypeInferenceError, match="larger than all that any type can hold"):
            make(f"y[i] = {constant}").cuda()

    assert seconds(refused, runs=1) < 1


@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000, "1e400", "1e99999"])
def test_numbers_that_no_type_holds(number: str) -> None:
    with pytest.raises(LoopkitError, match="larger than all that any type can hold"):
        make(f"y[i] = {number}", [lk.GlobalArg("y", "float64", "n"), "..."]).cuda()


def test_large_constants_that_types_hold() -> None:
    kernel = make(
        "y[i] = 10**20 + 2**100 + 0.5**10**10 + (-1)**10**10",
        [lk.GlobalArg("y", "float64", "n"), "..."],
    )
    found = kernel.executor("reference")(n=1)
    assert found.tolist() == [float(10**20 + 2**100 + 1)]


@pytest.mark.parametrize("index", ["10**20*i", "123456789012345678901", "i % 12345678901234567890"])
def test_numbers_that_no_index_can_be(index: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"larger than any index|is not affine"):
        make(f"y[i] = x[{index}]")


@pytest.mark.parametrize(
    "condition",
    ["i < 100000000000000000000", "i < 3*4611686018427387904", "4611686018427387904*(4*i) < n"],
)
def test_conditions_hold_numbers_that_an_index_can_be(condition: str) -> None:
    with pytest.raises(InvalidArgumentError, match="larger than any index"):
        make(f"y[i] = 1 {{if={condition}}}")
    with pytest.raises(InvalidArgumentError, match="larger than any index"):
        make(f"y[i] = 1 if {condition} else 2")
    with pytest.raises(LoopkitError, match="larger than any index"):
        make("y[i] = 1", domain=f"{{ [i]: 0 <= i < n and {condition} }}")
    with pytest.raises(InvalidArgumentError, match="larger than any index"):
        make("y[i] = 1", domain=isl.Set(f"[n] -> {{ [i]: 0 <= i < n and {condition} }}"))


def test_the_largest_number_that_an_index_can_be() -> None:
    kernel = make("y[i] = 1", domain="{ [i]: 0 <= i < n and i < 9223372036854775807 }")
    assert kernel.prove().ok
    assert kernel.executor("reference")(n=3).tolist() == [1, 1, 1]


def test_numbers_beyond_64_bits_come_back_from_isl() -> None:
    for number in (2**63 - 1, 2**63, 2**64, 10**20, -(2**63), -(2**64), 0):
        assert _sets.integer(_sets.val(number)) == number


@pytest.mark.parametrize("name", ["infinity", "NaN", "INF", "infty"])
def test_other_names_of_numbers_are_none(name: str) -> None:
    with pytest.raises(ParseError, match=f"there is no constant '{name}'"):
        make(f"y[i] = -{name}")
    assert name in make(f"y[i] = -{name}", [lk.ValueArg(name, "float32"), "..."]).arg_by_name


@pytest.mark.parametrize("name", ["inf", "nan"])
def test_infinity_is_a_number_where_nothing_is_called_so(name: str) -> None:
    kernel = make(f"y[i] = 2*{name}", dtypes={"y": "float32"})
    assert kernel.passed == (*kernel.passed[:1], kernel.arg_by_name["y"])
    with pytest.raises(lk.TypeInferenceError, match=f"{name} is not a value of int32"):
        make(f"y[i] = {name}", dtypes={"y": "int32"}).cuda()
    for text in (f"y[i] = {name}*x[i]", f"<> {name} = x[i]\ny[i] = {name}"):
        data = [lk.ValueArg(name, "float32"), ...] if "<>" not in text else None
        assert text.splitlines()[-1] in str(make(text, data, dtypes={"x, y": "float32"}))
    ruled = make(f"f({name}) := 2*{name}\ny[i] = f(x[i])", dtypes={"x, y": "float32"})
    assert "y[i] = 2*x[i]" in str(ruled.expand_subst())


def test_constants_of_math_h_are_numbers_where_nothing_is_called_so() -> None:
    kernel = make("y[i] = M_PI*M_E", [lk.GlobalArg("y", "float"), lk.ValueArg("n", "int")])
    assert "3.141592653589793*2.718281828459045" in str(kernel)
    assert [*kernel.arg_by_name] == ["y", "n"]
    assert "M_PI" in make("y[i] = M_PI", [lk.ValueArg("M_PI", "float32"), ...]).arg_by_name


INFINITE = ["max(x[i], -inf)", "-inf*x[i]", "if(x[i] < inf, x[i], nan)", "x[i] + 1/inf", "nan"]


@pytest.mark.host
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("value", INFINITE)
def test_infinite_numbers_are_those_of_numpy(value: str, dtype: str) -> None:
    kernel = make(f"y[i] = {value} + 0*x[i]", dtypes={"x, y": dtype})
    x = np.array([1, -np.inf, np.nan, np.inf, -2.5], dtype)
    want = kernel.executor("reference")(x=x)
    for order in ("ascending", "descending", "random"):
        np.testing.assert_array_equal(kernel.executor("host", order=order)(x=x), want)
    assert kernel.prove() and kernel.prove(text=True) and lk.verify(kernel, kernel)
    again = kernel.extract_subst("f", f"{value} + 0*x[i]")
    assert again.expand_subst() == kernel


def test_a_fraction_is_no_integer_to_the_proof() -> None:
    """A maximum of integers and a fraction is not that with the integer below it."""
    a = terms.Term("read", dt.INT32, (), "a")
    one, two = (
        operations.extremum("max", dt.FLOAT64, operations.cast(dt.FLOAT64, a), constant)
        for constant in (terms.const(2.5, dt.FLOAT64), terms.const(2.0, dt.FLOAT64))
    )
    assert one != two


@pytest.mark.parametrize("text", ["y[ii] = x[i]", "y[i] = x[ii]", "y[i] = x[i, ii] + ii"])
def test_a_misspelt_iname_is_no_size(text: str) -> None:
    with pytest.raises(UnknownNameError, match="there is no size or iname 'ii'") as caught:
        make(text)
    assert caught.value.near == ("i",) and caught.value.position is not None


def test_names_in_subscripts_are_bounded_somewhere() -> None:
    with pytest.raises(UnknownNameError, match="there is no size or iname 'off'"):
        make("y[i] = x[i + off]")
    for more in (
        {"assumptions": "off >= 0"},
        {"dtypes": {"off": "int32"}, "assumptions": "off >= 0"},
        {"kernel_data": [lk.GlobalArg("x", "int32", "n + off"), "..."], "assumptions": "off >= 0"},
    ):
        assert "off" in make("y[i] = x[i + off]", **more).sizes
    kernel = make("y[i] = x[i + off] if 0 <= off and i + off < n else 0")
    assert "off" in kernel.sizes
    late = make("y[i] = x[i + off]", [lk.GlobalArg("x", "int32", "n"), "..."], owe_bounds=True)
    assert late.assume("off = 0").prove().ok
    with pytest.raises(UnknownNameError, match="there is no size or iname 'ii'") as caught:
        make("y[i] = x[ii]", owe_bounds=True)
    assert caught.value.known == ("i", "n")


def test_a_size_that_kernel_data_leaves_out() -> None:
    with pytest.raises(UnknownNameError, match=r"has no '\.\.\.' for what is to be inferred"):
        make("y[i] = 1", [lk.GlobalArg("y", "int32", "n")])


def test_inames_have_no_elements() -> None:
    with pytest.raises(InvalidArgumentError, match="'i' is an iname and has no elements"):
        make("y[i] = i[3]")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("y[i] = y[i] + 1 {dup=i}", "the option 'dup' is not supported"),
        ("y[i] = y[i] + 1 {atomic=often}", "'often' is not a kind of atomic access"),
        ("y[i] = 1 {tags=a, tag=b}", "the option 'tags' is given twice"),
        ("<int3{tags=a:b}2> s = 1", "nothing may follow the options"),
        ("<{tags=a}", "is never closed"),
        ("<", "is never closed"),
        ("y[i] = 010", "'010' is no number: write a 0 in front"),
    ],
)
def test_texts_that_say_nothing(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        make(text)


@pytest.mark.parametrize("domain", [3, None, 2.5])
def test_what_is_no_domain(domain: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="domains are texts or isl sets"):
        make("y[i] = 1", domain=domain)


# {{{ rules


def doubling(depth: int) -> str:
    rules = [f"f{k}(x) := f{k - 1}(x) + f{k - 1}(x + 1)" for k in range(1, depth + 1)]
    return "\n".join(["f0(x) := a[x]", *rules, f"y[i] = f{depth}(i)"])


@pytest.mark.parametrize("depth", [13, 22, 200])
def test_rules_that_stand_for_too_much(depth: int) -> None:
    def refused() -> None:
        with pytest.raises(ParseError, match="expands to an expression of more than 100,000 parts"):
            make(doubling(depth))

    assert seconds(refused, runs=1) < 1


def test_rules_that_nest() -> None:
    kernel = make(doubling(5), dtypes={"a": "int64"})
    found = kernel.executor("reference")(a=np.arange(8), n=3)
    weights = [1, 5, 10, 10, 5, 1]
    assert found.tolist() == [sum(w * (i + k) for k, w in enumerate(weights)) for i in range(3)]


def test_arguments_of_rules_are_counted_where_they_stand() -> None:
    kernel = make(
        "f(x, y) := x - 2*y\ng(y, x) := f(y, x) + y\nz[i] = g(a[i], b[i])", dtypes={"a, b": "int64"}
    )
    found = kernel.executor("reference")(a=np.arange(3), b=np.arange(3) + 5)
    assert found.tolist() == [2 * k - 2 * (k + 5) for k in range(3)]


@pytest.mark.parametrize("used", ["y[i] = f(i)", "y[i] = 1"])
def test_rules_that_use_themselves(used: str) -> None:
    with pytest.raises(ParseError, match="substitution rule 'f' uses itself: f -> g -> f"):
        make(f"f(x) := g(x) + 1\ng(x) := f(x + 1)\n{used}")


# }}}


def test_long_texts() -> None:
    kernel = make("y[i] = " + " - ".join(f"a[i + {k}]" for k in range(3000)))
    assert len(kernel.statements) == 1
    kernel = make("\n".join(f"y{k}[i] = a[i]" for k in range(500)))
    assert len(kernel.statements) == 500
