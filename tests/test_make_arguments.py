"""Arguments, shapes and types: declared, inferred, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seams import Nested, Strided, infer_types, to_text

from loopkit import (
    AddressSpace,
    ArrayArg,
    GlobalArg,
    InvalidArgumentError,
    Kernel,
    OutOfBoundsError,
    TemporaryVariable,
    TypeInferenceError,
    UninitializedReadError,
    UnknownNameError,
    ValueArg,
    make_kernel,
)

ONE = "{ [i]: 0 <= i < n }"
TWO = "{ [i, j]: 0 <= i < n and 0 <= j < m }"


def shape(kernel: Kernel, name: str) -> str:
    array = kernel.array(name)
    assert array.shape is not None
    return ", ".join(to_text(s) for s in array.shape)


def dtype(kernel: Kernel, name: str) -> str:
    data = kernel.temporary_by_name.get(name) or kernel.arg_by_name[name]
    return str(data.dtype)


# {{{ which arguments there are, and in which order


def test_inferred_arguments_come_sizes_first_and_outputs_last() -> None:
    kernel = make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = alpha * sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, alpha": "float32"},
    )
    assert [a.name for a in kernel.args] == ["n", "m", "l", "alpha", "a", "b", "c"]
    assert kernel.sizes == ("n", "m", "l")


def test_declared_arguments_keep_their_order() -> None:
    kernel = make_kernel(
        ONE,
        "c[i] = a[i] + s*b[i]",
        [GlobalArg("c", "float32"), "...", ValueArg("s", np.dtype("float32")), "b"],
        dtypes={"a, b": "float32"},
    )
    assert [a.name for a in kernel.args] == ["c", "n", "a", "s", "b"]
    kernel = make_kernel(ONE, "c[i] = a[i]", "c, a, n")
    assert [a.name for a in kernel.args] == ["c", "a", "n"]


def test_an_undeclared_name() -> None:
    with pytest.raises(UnknownNameError) as caught:
        make_kernel(ONE, "c[i] = inptu[i]", ["n", GlobalArg("input", "float32"), "c"])
    assert str(caught.value) == (
        "kernel_data declares n, input, c, and has no '...' for what is to be inferred\n"
        "line 1, column 8: there is no variable 'inptu'\n"
        "    c[i] = inptu[i]\n"
        "           ^^^^^\n"
        "did you mean 'input'?"
    )


def test_what_is_declared_twice() -> None:
    with pytest.raises(InvalidArgumentError, match="declares 'a' twice"):
        make_kernel(ONE, "c[i] = a[i]", ["a", GlobalArg("a"), ...])
    with pytest.raises(InvalidArgumentError, match="'i' is an iname"):
        make_kernel(ONE, "c[i] = a[i]", ["i", ...])


def test_a_name_with_different_numbers_of_indices() -> None:
    with pytest.raises(InvalidArgumentError, match="'a' is used with 1 and with 2 indices"):
        make_kernel(TWO, "c[i, j] = a[i] + a[i, j]")
    with pytest.raises(InvalidArgumentError, match="declared with 2 axes, but used with 1"):
        make_kernel(TWO, "c[i, j] = a[i]", [GlobalArg("a", shape="n, m"), ...])
    with pytest.raises(InvalidArgumentError, match="strides or tags of 2 axes, but used with 1"):
        make_kernel("{ [i]: 0 <= i < n }", "y[i] = x[i]", [GlobalArg("x", strides="n, 1"), ...])
    with pytest.raises(InvalidArgumentError, match="declared as a value, but used with 1"):
        make_kernel(TWO, "c[i, j] = a[i]", [ValueArg("a"), ...])


def test_inputs_and_outputs() -> None:
    kernel = make_kernel(
        ONE,
        """
        b[i] = 0
        b[i] = b[i] + a[i]
        c[i] = c[i] + 1
        """,
        dtypes={"a, c": "float32"},
    )
    flags = {a.name: (a.is_input, a.is_output) for a in kernel.args if isinstance(a, ArrayArg)}
    assert flags == {"a": (True, False), "b": (False, True), "c": (True, True)}


@pytest.mark.parametrize("name", ["hi", "i", "a"])
def test_shapes_use_sizes_only(name: str) -> None:
    text = "<> hi = a[i]\nb[i] = t[0] + hi"
    for made in (ArrayArg("t", "int32", name), TemporaryVariable("t", "int32", name)):
        with pytest.raises(InvalidArgumentError, match=f"the shape of 't' uses {name}"):
            make_kernel(ONE, text, [made, ...], dtypes={"a, b": "int32"})


def test_layouts() -> None:
    kernel = make_kernel(TWO, "c[i, j] = a[i, j]", default_order="F", default_offset="auto")
    assert kernel.arg_by_name["a"] == ArrayArg(
        "a",
        None,
        kernel.array("a").shape,
        (Nested(0), Nested(1)),
        0,
        True,
        False,
    )
    assert GlobalArg("a", "float32", "n, m", order="F").dim_tags == (Nested(0), Nested(1))
    assert GlobalArg("a", "float32", (4, 3), strides=(1, 8)).dim_tags == (Strided(1), Strided(8))
    assert GlobalArg("a", dim_tags="N0, stride:8").dim_tags == (Nested(0), Strided(8))
    with pytest.raises(InvalidArgumentError, match="order and strides"):
        GlobalArg("a", order="F", strides=(1,))
    with pytest.raises(InvalidArgumentError, match="default_order is 'C' or 'F'"):
        make_kernel(ONE, "c[i] = 1", default_order="K")


def test_an_order_of_its_own() -> None:
    data = [GlobalArg("a", order="F"), GlobalArg("b", order="C"), ...]
    for default, of_c in (("C", None), ("F", (Nested(0), Nested(1)))):
        kernel = make_kernel(TWO, "c[i, j] = a[i, j] + b[i, j]", data, default_order=default)
        assert kernel.array("a").dim_tags == (Nested(0), Nested(1))
        assert kernel.array("b").dim_tags is None and kernel.array("c").dim_tags == of_c
    flat = make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "c[i, j] = b[[8*i + j]]",
        [GlobalArg("b", shape="n, 8", order="C"), ...],
        default_order="F",
    )
    assert str(flat.statements[0].rhs) == "b[i, j]"


def test_sizes_that_come_later_need_no_declaration() -> None:
    text, data = "c[i, j] = a[i, j]", [GlobalArg("a, c", "float32", shape="n, m")]
    domain = TWO.replace("0 <= j < n", "0 <= j < m")
    with pytest.raises(UnknownNameError, match="no variable 'n'"):
        make_kernel(domain, text, data)
    kernel = make_kernel(domain, text, data, owe_bounds=True)
    assert [a.name for a in kernel.args][:2] == ["a", "c"] and {"n", "m"} >= {*kernel.sizes}
    with pytest.raises(UnknownNameError, match="no variable 'b'"):
        make_kernel(domain, "c[i, j] = b[i, j]", data, owe_bounds=True)


def test_temporaries() -> None:
    kernel = make_kernel(
        TWO,
        "t[i, j] = a[i, j]\nc[i, j] = t[i, j]",
        temporary_variables=[
            TemporaryVariable("t", "float64", shape="n, m", address_space="global"),  # type: ignore[arg-type]
        ],
        dtypes={"a": "float32"},
    )
    t = kernel.temporary_by_name["t"]
    assert (t.dtype, t.address_space) == (np.dtype("float64"), AddressSpace.GLOBAL)
    assert shape(kernel, "t") == "n, m"
    assert dtype(kernel, "c") == "float64"
    kernel = make_kernel(ONE, "<> t[i] = 1\nc[i] = t[i]")
    assert shape(kernel, "t") == "n"


# }}}

# {{{ shapes


@pytest.mark.parametrize(
    ("domain", "index", "expected"),
    [
        (ONE, "i", "n"),
        (ONE, "i + 4", "n + 4"),
        (ONE, "2*i + 1", "2*n"),
        (ONE, "n - 1 - i", "n"),
        (ONE, "i // 4", "(n + 3) // 4"),
        (ONE, "3", "4"),
        ("{ [i]: 2 <= i < 2*n and i mod 2 = 0 }", "i", "2*n - 1"),
        ("{ [i]: 0 <= i < n and i < m }", "i", "min(m, n)"),
        ("{ [i, j]: 0 <= i < n and 0 <= j <= i }", "j", "n"),
        ("{ [i, j]: 0 <= i < n and 0 <= j < m }", "i + j", "n + m - 1"),
        ("{ [i, j]: 0 <= i < n and 0 <= j < m and (i + j) mod 3 = 0 }", "j", "m"),
        (ONE, "max(i - 1, 0)", "n - 1"),
    ],
)
def test_shapes_reach_as_far_as_accesses(domain: str, index: str, expected: str) -> None:
    sizes = "n, m" if "< m" in domain else "n"
    kernel = make_kernel(domain, f"c[i] = a[{index}]", assumptions=f"{sizes} >= 2")
    assert shape(kernel, "a") == expected


def test_the_furthest_access_counts() -> None:
    kernel = make_kernel(ONE, "c[i] = a[i] + a[i + 2] + a[i + 1]")
    assert shape(kernel, "a") == "n + 2"
    kernel = make_kernel(TWO, "c[i, j] = a[i] + a[j]")
    assert shape(kernel, "a") == "max(m, n)"
    kernel = make_kernel(TWO, "c[i, j] = a[i] + a[j]", assumptions="n <= m")
    assert shape(kernel, "a") == "m"


@pytest.mark.parametrize(
    "value",
    [
        "x[i] + x[0]",
        "x[i - 1] + x[i + 1] if 1 <= i and i < n - 1 else x[0]",
        "(x[i - 1] if i > 0 else x[0]) + (x[i + 1] if i + 1 < n else x[n - 1])",
        "x[n - 1]",
    ],
)
@pytest.mark.parametrize("assumptions", [None, "n >= 1"])
def test_a_size_for_which_nothing_is_accessed_needs_no_room(value: str, assumptions: Any) -> None:
    kernel = make_kernel(ONE, f"y[i] = {value}", dtypes={"x": "int32"}, assumptions=assumptions)
    assert shape(kernel, "x") == "n"
    assert kernel.executor("reference")(x=np.arange(3, dtype=np.int32)).shape == (3,)


@pytest.mark.parametrize(
    ("domain", "text", "expected"),
    [
        ("{ [b, t]: 0 <= t < 256 and 0 <= b and 256*b + t < n }", "", "(n + 255) // 256, 256"),
        (
            "{ [b, t]: 0 <= t < 256 and 0 <= 256*b < n }",
            "if 256*b + t < n",
            "(n + 255) // 256, 256",
        ),
        ("{ [b, t]: 0 <= t < 256 and t < n and 0 <= b < 2 }", "", "2, min(256, n)"),
        ("{ [b, t]: 0 <= t < m and 0 <= b < n and t <= b }", "", "n, min(m, n)"),
        ("{ [b, t]: 0 <= b < 4 and (0 <= t < b or n <= t < n + b) }", "", "4, n + 3"),
    ],
)
def test_rows_are_full(domain: str, text: str, expected: str) -> None:
    body = "p[b, t] = b + t"
    kernel = make_kernel(domain, f"{text}\n{body}\nend" if text else body, assumptions="n >= 0")
    assert shape(kernel, "p") == expected


def test_parts_of_a_union_reach_apart() -> None:
    kernel = make_kernel("{ [i]: 0 <= i < 2 or 4 <= i < n }", "c[i] = i")
    assert shape(kernel, "c") == "max(2, n)"
    kernel = make_kernel("{ [i]: 0 <= i < 2 or 4 <= i < n }", "c[i] = i", assumptions="n >= 5")
    assert shape(kernel, "c") == "n"


def test_many_bounds_are_one_minimum() -> None:
    sizes = [f"n{k}" for k in range(10, 26)]
    domain = "{ [i]: 0 <= i and " + " and ".join(f"i < {s}" for s in sizes) + " }"
    kernel = make_kernel(domain, "c[i] = a[i] + a[0]")
    assert shape(kernel, "a") == f"min({', '.join(sizes)})"


def test_an_index_that_could_be_negative_only_where_nothing_runs() -> None:
    assert shape(make_kernel(ONE, "c[i] = a[n]"), "a") == "n + 1"
    with pytest.raises(OutOfBoundsError, match="is negative"):
        make_kernel(ONE, "c[i] = a[n - 2]")
    # The same index in another statement is looked at again.
    with pytest.raises(OutOfBoundsError, match="is negative"):
        make_kernel(ONE, "c[i] = a[n]\nd[0] = a[n]")


def test_conditions_bound_accesses() -> None:
    kernel = make_kernel(ONE, "c[i] = if(i > 0, a[i - 1], 0) + if(i < n - 1, b[i + 1], 0)")
    assert shape(kernel, "a") == "n - 1"
    assert shape(kernel, "b") == "n"
    kernel = make_kernel(ONE, "c[i] = a[i + 1] {if=i < n - 1}")
    assert shape(kernel, "a") == "n"


def test_conditions_on_data_do_not_bound_accesses() -> None:
    text = "<> t = b[i]\nc[i] = a[i] {if=i < t}\nd[i] = a[i] {if=i < s}"
    kernel = make_kernel(ONE, text, dtypes={"a, b, s": "float32"})
    assert [shape(kernel, n) for n in "abcd"] == ["n"] * 4
    kernel = make_kernel(ONE, text, dtypes={"a, b": "float32", "s": "int32"})
    assert [shape(kernel, n) for n in "cd"] == ["n", "min(n, s)"]


def test_accesses_below_zero() -> None:
    with pytest.raises(OutOfBoundsError) as caught:
        make_kernel(ONE, "c[i] = a[i - 2]", dtypes={"a": "float32"})
    assert str(caught.value) == (
        "statement 'insn' accesses a[i - 2] at a[-2] for i=0, n=1: index i - 2 of axis 0 is "
        "negative\n"
        "    c[i] = a[i - 2]\n"
        "    ^^^^^^^^^^^^^^^\n"
        "shift the index, or make the domain start later"
    )
    witness = caught.value.witness
    assert witness is not None
    assert (witness.array, witness.cell, witness.parameters) == ("a", (-2,), {"n": 1})


def test_shapes_that_cannot_be_inferred() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        make_kernel(ONE, "c[i] = a[b[i]]")
    assert str(caught.value) == (
        "the shape of 'a' cannot be inferred: index b[i] of a[b[i]] is not affine\n"
        "declare it: kernel_data=[GlobalArg('a', shape=...), ...]"
    )
    with pytest.raises(InvalidArgumentError, match="has no upper bound"):
        make_kernel("{ [i]: 0 <= i }", "c[i] = 1")


@pytest.mark.parametrize(
    ("index", "extent"),
    [
        ("(i + 1) % 3", "min(3, n + 1)"),
        ("(i + 2) % 5", "min(5, n + 2)"),
        ("2*i % 3", "min(2*n - 1, 3)"),
        ("5*i % 7", "7"),
        ("(3*i + 4) % 11", "11"),
        ("(4*i + n) % 6", "6"),
        ("(i + 1)*2 % 5 // 2", "min(3, n + 1)"),
    ],
)
def test_remainders_bound_indices(index: str, extent: str) -> None:
    """By what exactly the loop leaves of them where that is short, else by a number."""
    kernel = make_kernel(ONE, f"c[{index}] = 1", assumptions="n >= 1")
    assert shape(kernel, "c") == extent


def test_sizes_of_declared_shapes_are_arguments() -> None:
    kernel = make_kernel(ONE, "c[i] = a[b[i]]", [GlobalArg("a", shape="big"), ...])
    assert "big" in kernel.sizes


# }}}

# {{{ types


def test_types_follow_from_the_text() -> None:
    kernel = make_kernel(
        ONE,
        """
        <> x = 2*a[i]
        <float64> y = x
        <> z = x*y
        b[i] = z
        k[i] = i // 2
        """,
        dtypes={"a": "float32"},
    )
    assert [dtype(kernel, n) for n in ("x", "y", "z", "b", "k", "n")] == [
        "float32",
        "float64",
        "float64",
        "float64",
        "None",  # numbers without a type: the array of a call says it
        "int32",
    ]


def test_constants_take_the_type_of_what_is_added() -> None:
    kernel = make_kernel(
        TWO,
        "<> s = 0 {inames=+i}\ns = s + a[i, j]\nb[i] = s\n<> u = 0.5\nc[i] = u",
        dtypes={"a": "float32"},
    )
    assert dtype(kernel, "s") == "float32"
    assert dtype(kernel, "u") == "float64"


def test_types_may_come_later() -> None:
    kernel = make_kernel(ONE, "<> t = 2*a[i]\nb[i] = t")
    assert kernel.array("b").dtype is None
    with pytest.raises(TypeInferenceError) as caught:
        infer_types(kernel)
    assert str(caught.value) == (
        "kernel 'kernel'\n"
        "the type of 'a' (and so those of 'b', 't') is not known\n"
        'give make_kernel dtypes={"a": "float32"}, or call add_dtypes(knl, {"a": "float32"})'
    )


def test_variables_that_are_computed_from_each_other() -> None:
    kernel = make_kernel(
        ONE,
        """
        for i
          <> x = a[i]
          <> y = 1
          x = x + y
          y = y * x
          b[i] = y
        end
        """,
        dtypes={"a": "float32"},
    )
    assert [dtype(kernel, n) for n in "xyb"] == ["float32"] * 3


def test_sizes_are_integers() -> None:
    with pytest.raises(InvalidArgumentError, match="parameter of a domain, but of type float32"):
        make_kernel(ONE, "c[i] = 1", dtypes={"n": "float32"})
    kernel = make_kernel(ONE, "c[i] = 1", dtypes={"n": np.int64})
    assert dtype(kernel, "n") == "int64"


def test_dtypes_of_nothing() -> None:
    with pytest.raises(UnknownNameError, match="there is no variable 'aa'"):
        make_kernel(ONE, "c[i] = a[i]", dtypes={"aa": "float32"})
    with pytest.raises(InvalidArgumentError, match="'i' is an iname"):
        make_kernel(ONE, "c[i] = a[i]", dtypes={"i": "int64"})
    with pytest.raises(InvalidArgumentError, match="'flaot32' is not the name of a type"):
        make_kernel(ONE, "c[i] = a[i]", dtypes={"a": "flaot32"})


# }}}

# {{{ reads before writes


def test_a_cell_that_nothing_wrote() -> None:
    with pytest.raises(UninitializedReadError) as caught:
        make_kernel(ONE, "<> t[i] = a[i]\nb[i] = t[i + 1]", dtypes={"a": "float32"})
    assert str(caught.value) == (
        "statement 'insn_0' reads t[1] before anything has been written there for i=0, n=1: "
        "what 'insn' wrote before does not reach that cell\n"
        "    b[i] = t[i + 1]\n"
        "    ^^^^^^^^^^^^^^^\n"
        "initialise it, or say in the assumptions which sizes are possible"
    )
    witness = caught.value.witness
    assert witness is not None and witness.cell == (1,)


@pytest.mark.parametrize("index", ["i // (n - 1)", "abs(i)", "x[i]"])
@pytest.mark.parametrize("data", [[...], [GlobalArg("a", "float32", shape=(4, 4)), ...]])
def test_a_subscript_without_a_value_beside_one_that_is_wrong(index: str, data: list) -> None:
    """What cannot be computed in the smallest case does not keep the case from being shown."""
    dtypes = {"a": "float32"} | ({"x": "int32"} if "x" in index else {})
    with pytest.raises(OutOfBoundsError, match=r"at a\[-1, (\?|0)\]"):
        make_kernel(ONE, f"b[i] = a[i - 1, {index}]", data, dtypes=dtypes)


def test_a_variable_that_nothing_wrote() -> None:
    with pytest.raises(UninitializedReadError, match="no statement writes 't'"):
        make_kernel(ONE, "b[i] = t", temporary_variables=[TemporaryVariable("t")])
    with pytest.raises(UninitializedReadError, match="statement 'insn' reads t before"):
        make_kernel(ONE, "<> t = t + a[i]\nb[i] = t", dtypes={"a": "float32"})


def test_constants_are_followed_exactly() -> None:
    text = "<> t[0] = 1\nt[1] = 2\nt[3] = 3\nfor i\n b[i] = t[i]\nend"
    make_kernel("{ [i]: 0 <= i < 2 }", text)
    with pytest.raises(UninitializedReadError, match=r"reads t\[2\] before .* for i=2"):
        make_kernel("{ [i]: 0 <= i < 4 }", text)


def test_a_value_of_the_iteration_before() -> None:
    text = """
    for i
      <> p = 0.0 {if=i == 0}
      b[i] = p
      p = a[i]
    end
    """
    make_kernel(ONE, text, dtypes={"a": "float32"})
    with pytest.raises(UninitializedReadError, match=r"reads p before .* for i=0, n=1"):
        make_kernel(ONE, text.replace("i == 0", "i == 1"), dtypes={"a": "float32"})


def test_a_wavefront_reads_what_was_written() -> None:
    domain = "{ [i, j]: 0 <= i, j < n }"
    text = """
    <> t[i, j] = a[i, j] + if(i > 0, t[i - 1, j], 0) + if(j > 0, t[i, j - 1], 0)
    b[i, j] = t[i, j]
    """
    make_kernel(domain, text, dtypes={"a": "float32"})
    with pytest.raises(UninitializedReadError):
        make_kernel(domain, text.replace("t[i - 1, j]", "t[i + 1, j]"), dtypes={"a": "float32"})


def test_what_data_decide_is_left_to_the_run() -> None:
    make_kernel(
        ONE,
        "<> t = 1 {if=a[i] > 0}\nb[i] = t {if=a[i] > 1}",
        dtypes={"a": "float32"},
    )


# }}}
