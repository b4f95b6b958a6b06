"""Reductions: the statements they become, and where these stand."""

from __future__ import annotations

import math
import textwrap

import numpy as np
import pymbolic.primitives as prim
import pytest
from kernel_outline import outline
from pymbolic.primitives import Max
from seams import run_reference

import loopkit as lk
from loopkit import AddressSpace, InvalidArgumentError, ParseError, make_kernel, register_reduction

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
    from seams import infer_types

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


UNLAWFUL = {
    "the first": ((0, lambda a, b: a), "commutative: combine(-1, 0) is -1, and combine(0, -1"),
    "difference": ((0, lambda a, b: a - b), "is not commutative"),
    "mean": ((0, lambda a, b: (a + b) / 2), "is not associative: combine(combine("),
    "one more": ((0, lambda a, b: a + b + 1), "has another neutral element: combine(0, -1) is 0"),
    "largest from 0": ((0, lambda a, b: Max((a, b))), "combine(0, -1) is 0"),
    "lines": (((1, 0), lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1])), "is not commutative"),
    "not even in order": ((0, lambda a, b: a - b, True), "is not associative"),
}


@pytest.mark.parametrize("name", UNLAWFUL)
def test_laws_of_an_operation(name: str) -> None:
    (neutral, combine, *ordered), why = UNLAWFUL[name]
    with pytest.raises(InvalidArgumentError) as caught:
        register_reduction("own", neutral, combine, ordered=bool(ordered))
    assert why in str(caught.value)


def test_laws_hold_for_what_there_is() -> None:
    """For whole numbers or for fractions, and within the bounds that are given."""
    register_reduction("own", -1, lambda a, b: Max((a, b)), within=(0, 100))
    register_reduction("own", (1, 0), lambda a, b: (a[0] * b[0], a[1] + b[1]))
    register_reduction("own", lambda t: np.finfo(t).min, lambda a, b: Max((a, b)), within=(0, 5.5))
    register_reduction("own", 0, _combine)
    log, exp = (prim.Variable(name) for name in ("log", "exp"))
    register_reduction("own", -math.inf, lambda a, b: log(exp(a) + exp(b)))
    with pytest.raises(InvalidArgumentError, match="within names 'y', which is no"):
        register_reduction("own", (1, 0), lambda a, b: a, within={"y": (0, 1)})
    with pytest.raises(InvalidArgumentError, match="is ordered, and has a reference"):
        register_reduction("own", 0, lambda a, b: a, np.add, ordered=True)


LAST = register_reduction(
    "last", 0, lambda a, b: prim.If(prim.Comparison(b, "!=", 0), b, a), ordered=True
)
LINES = register_reduction(
    "lines",
    (1, 0),
    lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]),
    components=("factor", "rest"),
    ordered=True,
)
IN_ORDER = {
    "last": ("u[i] = 2*last(k, x[i, k]*(k + 1))", LAST),
    "lines": ("u[i], v[i] = lines(k, x[i, k], y[i, k] + x[i, k])", LINES),
    "inner": ("u[i] = last(k, max(l, x[i, k]*l))", LAST),
}


@pytest.mark.host
@pytest.mark.parametrize("name", IN_ORDER)
def test_the_order_of_terms_is_kept(name: str) -> None:
    text, operation = IN_ORDER[name]
    text = make_kernel(
        "{ [i, k, l]: 0 <= i < n and 0 <= k < m and 0 <= l < 4 }",
        text,
        dtypes={a: "int64" for a in "xy" if f"{a}[" in text},
        reductions=[operation],
        assumptions="n, m >= 1",
    )
    assert f"ordered {operation.name} over k" in str(text)
    x, y = np.random.default_rng(1).integers(-3, 4, (2, 5, 11))
    given = {n: v for n, v in (("x", x), ("y", y)) if n in text.arg_by_name}
    split = text.split_iname("k", 4).add_prefetch("x", "k_inner", default_tag=None)
    for knl in (text, split.split_iname("i", 2, outer_tag="g.0", inner_tag="l.0")):
        assert knl.prove().ok and lk.verify(text, knl)
        found = knl.executor("host", order="random")(**given)
        for one, two in zip(found, text.executor("reference")(**given), strict=True):
            np.testing.assert_array_equal(one, two)
    if name == "lines":
        factor, rest = text.executor("reference")(**given)
        last = np.zeros(5, int)
        for column, more in zip(x.T, (x + y).T, strict=True):
            last = last * column + more
        assert rest.tolist() == last.tolist() and factor.tolist() == x.prod(1).tolist()
    for step in (
        lambda: split.prioritize_loops("k_inner, k_outer"),
        lambda: text.map_domain("{ [k] -> [q]: q = -k }"),
        lambda: text.split_iname("k", 4, inner_tag="l.0"),
        lambda: text.split_iname("k", 4, outer_tag="g.0"),
    ):
        with pytest.raises(lk.LoopkitError, match="would "):
            step()
