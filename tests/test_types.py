"""Types: names, promotion against NumPy's own, weak constants."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pymbolic.primitives as prim
import pytest
from seams import (
    DTYPES,
    Reduction,
    RunTime,
    as_dtype,
    concrete,
    dtype_name,
    dtype_of,
    parse_expression,
    promote,
    reduction_type,
)

import loopkit as lk
from loopkit import InvalidArgumentError, TypeInferenceError

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
ENV = {f"v_{name}": dtype for name, dtype in DTYPES.items()}


def type_of(text: str, **names: str) -> Any:
    return dtype_of(parse_expression(text), {n: DTYPES[t] for n, t in names.items()}.__getitem__)


@pytest.mark.parametrize("name", DTYPES)
def test_names(name: str) -> None:
    dtype = as_dtype(name)
    assert dtype_name(dtype) == name
    assert as_dtype(dtype) == as_dtype(f"np.{name}") == as_dtype(dtype.type) == dtype
    assert as_dtype(pickle.loads(pickle.dumps(dtype))) == dtype


def test_other_types_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="did you mean 'float"):
        as_dtype("flaot32")
    with pytest.raises(InvalidArgumentError, match="not supported"):
        as_dtype(np.dtype("U3"))
    with pytest.raises(InvalidArgumentError, match="is not a type"):
        as_dtype(3.5)
    assert as_dtype(np.dtype(">f4")) == DTYPES["float32"]


@pytest.mark.parametrize("symbol", ["+", "*", "/", "//", "%", "&", "<<"])
def test_operators_give_numpys_types(symbol: str) -> None:
    for (a, first), (b, second) in itertools.product(ENV.items(), ENV.items()):
        if BFLOAT16 in (first, second):
            continue
        with np.errstate(all="ignore"):
            try:
                expected = eval(f"p {symbol} q", {"p": np.ones(1, first), "q": np.ones(1, second)})
            except TypeError:
                with pytest.raises(TypeInferenceError):
                    dtype_of(parse_expression(f"{a} {symbol} {b}"), ENV.__getitem__)
                continue
        found = dtype_of(parse_expression(f"{a} {symbol} {b}"), ENV.__getitem__)
        assert found == expected.dtype, (a, symbol, b)


@pytest.mark.parametrize("constant", [True, 1, 1.5, 1j])
def test_constants_are_weak(constant: Any) -> None:
    for dtype in DTYPES.values():
        if dtype != BFLOAT16:
            assert promote(dtype, constant) == np.result_type(dtype, constant), dtype


def test_bfloat16_meets_others_as_a_16_bit_float() -> None:
    assert dtype_name(promote(BFLOAT16, 0.5)) == "bfloat16"
    assert dtype_name(promote(BFLOAT16, DTYPES["float16"])) == "float32"
    assert dtype_name(promote(DTYPES["int8"], BFLOAT16)) == "bfloat16"
    assert dtype_name(promote(DTYPES["int16"], BFLOAT16)) == "float32"
    assert dtype_name(promote(DTYPES["int32"], BFLOAT16)) == "float64"
    assert dtype_name(promote(BFLOAT16, 1j)) == "complex64"
    assert DTYPES["bfloat16"] == BFLOAT16


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", RunTime(int)),
        ("2 + 0.5", RunTime(float)),
        ("1/3", RunTime(float)),
        ("2j*3", RunTime(complex)),
        ("1 < 2", "bool"),
        ("if(i < 3, 1, 0.5)", RunTime(float)),
        ("x*if(i < 3, 1, 0.5)", "float32"),
        ("x*(1/3)", "float32"),
        ("x*sqrt(2)", "float32"),
        ("i*0.5", "float64"),
        ("i + x", "float64"),
        ("i/2", "float64"),
        ("i//2 + i%3", "int32"),
        ("x - b", "float32"),
        ("float32(i)*x", "float32"),
        ("sqrt(i)", "float64"),
        ("floor(i)", "int32"),
        ("isnan(x)", "bool"),
        ("not x", "bool"),
        ("x > 0 and i", "bool"),
        ("max(x, 0)", "float32"),
        ("i**2", "int32"),
        ("x**2", "float32"),
    ],
)
def test_expressions(text: str, expected: Any) -> None:
    found = type_of(text, x="float32", i="int32", b="bool")
    assert found == (DTYPES[expected] if isinstance(expected, str) else expected)


def test_numpy_scalars_have_a_type() -> None:
    def env(name: str) -> Any:
        return DTYPES["float32"]

    assert dtype_of(prim.Product((np.float64(2), prim.Variable("x"))), env) == np.float64
    assert dtype_of(ml_dtypes.bfloat16(2), env) == BFLOAT16


def test_what_a_variable_of_weak_type_becomes() -> None:
    kinds = [concrete(RunTime(kind)) for kind in (int, float, complex)]
    assert kinds == [np.int64, np.float64, np.complex128]
    assert concrete(DTYPES["int8"]) == np.int8


def test_reductions() -> None:
    assert reduction_type("sum", DTYPES["bool"]) == np.int64
    assert reduction_type("sum", DTYPES["int8"]) == np.int64
    assert reduction_type("product", DTYPES["uint16"]) == np.uint64
    assert reduction_type("max", DTYPES["int8"]) == np.int8
    assert reduction_type("sum", DTYPES["float16"]) == np.float32
    assert reduction_type("product", DTYPES["float16"]) == np.float16
    assert reduction_type("any", DTYPES["int8"]) == np.bool_
    expr = Reduction("max", ("k",), parse_expression("x"))
    assert dtype_of(expr, lambda name: DTYPES["float32"]) == np.float32


@pytest.mark.parametrize(
    ("text", "stored", "accumulator"),
    [
        ("y[i] = sum(j, x[i, j])", "int32", "int32"),
        ("y[i] = product(j, x[i, j])", "uint32", "uint32"),
        ("y[i] = sum(j, x[i, j])", "int8", "int32"),
        ("y[i] = sum(j, x[i, j])", "int64", "int64"),
        ("y[i] = sum(j, x[i, j])", "float32", "int64"),  # not of the low bits alone
        ("y[i] = sum(j, x[i, j])", "bool", "int64"),
        ("y[i] = sum(j, x[i, j]) // 3", "int32", "int64"),
        ("y[i] = sum(j, x[i, j], dtype=int64)", "int32", "int64"),
        ("y[i] = max(j, int64(x[i, j]))", "int32", "int64"),
    ],
)
def test_sums_are_not_wider_than_what_they_are_stored_as(
    text: str, stored: str, accumulator: str
) -> None:
    kernel = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }", text, dtypes={"x": "int32", "y": stored}
    )
    assert [dtype_name(t.dtype) for t in kernel.temporaries if t.dtype] == [accumulator]
    x = np.random.default_rng(1).integers(-(2**31), 2**31, (5, 7), np.int32)
    wide = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        text.replace(" = ", " = int64(") + ")",
        dtypes={"x": "int32", "y": stored},
    )
    for executor in ("reference", "host"):
        expected = wide.executor("reference")(x=x)
        assert np.array_equal(kernel.executor(executor)(x=x), expected)
