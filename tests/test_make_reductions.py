"""Reductions: the statements they become, and where these stand."""

from __future__ import annotations

import math
import textwrap

import numpy as np
import pytest
from kernel_outline import outline

from loopkit._arrays import AddressSpace
from loopkit._errors import InvalidArgumentError, ParseError
from loopkit._make import make_kernel, register_reduction
from loopkit._reference import run_reference

DOMAIN = "{ [i, k, l]: 0 <= i < n and 0 <= k < m and 0 <= l < 4 }"


def test_a_sum() -> None:
    kernel = make_kernel(DOMAIN, "c[i] = 2*sum(k, a[i, k]) + b[i]", dtypes={"a, b": "float32"})
    expected = """
    i:
      acc = 0
      k:
        acc sum= a[i, k]
      c[i] = 2*acc + b[i]
    """
    assert outline(kernel) == textwrap.dedent(expected).strip()
    start, update, use = kernel.statements
    assert [s.id for s in kernel.statements] == ["insn_init", "insn_update", "insn"]
    assert [s.kind for s in kernel.statements] == ["init", "update", "user"]
    assert (start.inames, update.inames, use.inames) == ({"i"}, {"i", "k"}, {"i"})
    assert kernel.reduced_inames(update) == ("k",)
    accumulator = kernel.temporary_by_name["acc"]
    assert accumulator.accumulates == "sum"
    assert accumulator.address_space is AddressSpace.PRIVATE
    assert accumulator.dtype == np.dtype("float32")


def test_nested_and_several() -> None:
    kernel = make_kernel(
        DOMAIN,
        "c[i] = sum(k, a[i, k]*max(l, b[k, l])) + product((k, l), b[k, l])",
        dtypes={"a, b": "float32"},
    )
    expected = """
    i:
      acc = 0
      k:
        acc_0 = -inf
        l:
          acc_0 max= b[k, l]
        acc sum= a[i, k]*acc_0
      acc_1 = 1
      k:
        l:
          acc_1 product= b[k, l]
      c[i] = acc + acc_1
    """
    assert outline(kernel) == textwrap.dedent(expected).strip()


def test_one_iname_reduced_by_two_statements() -> None:
    kernel = make_kernel(DOMAIN, "c = sum(k, a[k])\nd = sum(k, b[k])", dtypes={"a,b": "float32"})
    expected = """
    acc = 0
    k:
      acc sum= a[k]
    c = acc
    acc_0 = 0
    k:
      acc_0 sum= b[k]
    d = acc_0
    """
    assert outline(kernel) == textwrap.dedent(expected).strip()


def test_rules_with_reductions_stay_and_their_uses_name_the_accumulators() -> None:
    kernel = make_kernel(
        DOMAIN,
        "f(x) := sum(k, g(k)*x)\ng(x) := 2*a[x]\nc[i] = f(i) + f(3)",
        dtypes={"a": "float32"},
    )
    assert [r.name for r in kernel.substitutions] == ["f", "g"]
    assert outline(kernel).count("sum= g(k)") == 2
    assert str(kernel.statement_by_id["insn"].rhs).count("acc") == 2


def test_the_reduction_has_the_conditions_of_its_statement() -> None:
    kernel = make_kernel(DOMAIN, "c[i] = sum(k, a[i, k]) {if=i < 3}", dtypes={"a": "float32"})
    assert all(len(s.predicates) == 1 for s in kernel.statements)


@pytest.mark.parametrize(
    ("operation", "dtype", "neutral", "result"),
    [
        ("sum", "float32", 0, "float32"),
        ("sum", "int8", 0, "int64"),
        ("product", "uint16", 1, "uint64"),
        ("sum", "bfloat16", 0, "float32"),
        ("sum", "bool", 0, "int64"),
        ("product", "complex64", 1, "complex64"),
        ("max", "float16", -math.inf, "float16"),
        ("max", "int16", -(2**15), "int16"),
        ("max", "uint8", 0, "uint8"),
        ("min", "int64", 2**63 - 1, "int64"),
        ("min", "float64", math.inf, "float64"),
        ("any", "bool", False, "bool"),
        ("all", "int32", True, "bool"),
    ],
)
def test_what_reductions_start_from(
    operation: str, dtype: str, neutral: object, result: str
) -> None:
    kernel = make_kernel(DOMAIN, f"c = {operation}(k, a[k])", dtypes={"a": dtype})
    assert kernel.statements[0].rhs == neutral
    assert type(kernel.statements[0].rhs) is type(neutral)
    assert str(kernel.temporary_by_name["acc"].dtype) == result
    # What types say later is the same as what they say at once.
    from loopkit._make import infer_types

    later = make_kernel(DOMAIN, f"c = {operation}(k, a[k])")
    arrays = tuple(a if a.name != "a" else kernel.arg_by_name["a"] for a in later.args)
    assert infer_types(later.with_(args=arrays)).statements == kernel.statements


def test_an_empty_range() -> None:
    kernel = make_kernel(
        DOMAIN,
        "c[i] = sum(k, a[k])\nd[i] = max(k, a[k])\ne[i] = all(k, a[k] > 0)",
        dtypes={"a": "float32"},
    )
    found = run_reference(kernel, {"a": np.zeros(0, "f"), "n": 2})
    assert found["c"].tolist() == [0, 0]
    assert found["d"].tolist() == [-math.inf] * 2
    assert found["e"].tolist() == [True] * 2


def test_an_operation_of_ones_own() -> None:
    xor = register_reduction("xor", 0, _combine, np.bitwise_xor)
    kernel = make_kernel(DOMAIN, "c = xor(k, a[k])", dtypes={"a": "int32"}, reductions=[xor])
    values = np.array([5, 9, 12], "i4")
    assert run_reference(kernel, {"a": values, "n": 1})["c"] == 5 ^ 9 ^ 12
    assert kernel.reductions == (xor,)
    with pytest.raises(InvalidArgumentError, match="'sum' is already a reduction"):
        register_reduction("sum", 0, _combine, np.add)


def _combine(a: object, b: object) -> object:
    import pymbolic.primitives as prim

    return prim.BitwiseXor((a, b))


def test_reducing_over_what_one_is_inside_of() -> None:
    with pytest.raises(ParseError, match="'sum' cannot reduce over 'k'"):
        make_kernel(DOMAIN, "c[k] = sum(k, a[k])")
    with pytest.raises(InvalidArgumentError) as caught:
        make_kernel(DOMAIN, "<> t = a[k]\nc = t + sum(k, t)", dtypes={"a": "float32"})
    assert "reduces over 'k', but reads 't'" in str(caught.value)


def test_the_maximum_of_two_values_is_no_reduction() -> None:
    kernel = make_kernel(DOMAIN, "c[i] = max(i, 3) + max(a[i], i)", dtypes={"a": "float32"})
    assert len(kernel.statements) == 1


def test_what_a_function_of_the_users_raises_names_it() -> None:
    own = register_reduction("own", object, lambda a, b: a, lambda a, b: a)
    with pytest.raises(InvalidArgumentError, match="neutral of the reduction 'own' raised TypeE"):
        make_kernel("{ [i]: 0 <= i < n }", "y = own(i, x[i])", reductions=[own])
