"""Comparing two kernels on random data: what is the same, what differs, and what is no question."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seams import check_same

import loopkit as lk
from loopkit import InvalidArgumentError, LoopkitError, ResourceError, UnknownNameError

KNL = lk.make_kernel("{ [i]: 0 <= i < n }", "c[i] = a[i]*2", dtypes={"a, c": "float32"})
N = {"n": 5}


def refused(error: type[LoopkitError], match: str, *kernels: Any, **options: Any) -> None:
    with pytest.raises(error, match=match):
        lk.auto_test_vs_ref(*(kernels or (KNL, KNL)), **{"executor_name": "reference", **options})


@pytest.mark.parametrize("value", [5, 0, np.int64(3)])
def test_equal_kernels(value: int) -> None:
    found = lk.auto_test_vs_ref(KNL, KNL, parameters={"n": value}, executor_name="reference")
    assert found.errors == {"c": 0.0} and found.executor == "reference"


@pytest.mark.parametrize("value", ["x", 1.5, None, True, [1], 2**31, 10**50])
def test_no_sizes(value: Any) -> None:
    refused(InvalidArgumentError, "n: an integer|n = .* does not fit", parameters={"n": value})


def test_no_questions() -> None:
    refused(InvalidArgumentError, "needs a value for 'n'")
    refused(InvalidArgumentError, "'a' would have the shape", parameters={"n": -1})
    refused(UnknownNameError, "no size or scalar argument 'm'", parameters={"n": 5, "m": 3})
    refused(InvalidArgumentError, "parameters maps names to values", parameters=[5])
    refused(InvalidArgumentError, "takes two kernels, not int", KNL, 3, parameters=N)
    refused(UnknownNameError, "no executor 'hots'", parameters=N, executor_name="hots")
    refused(UnknownNameError, "no executor '3'", parameters=N, ref_executor=3)
    refused(InvalidArgumentError, "seed is an integer", parameters=N, seed="x")
    refused(InvalidArgumentError, "seed is an integer", parameters=N, seed=-1)
    for tolerance in ("x", -1.0, float("nan"), []):
        refused(InvalidArgumentError, "tolerance is a number", parameters=N, tolerance=tolerance)
    wide = lk.make_kernel(
        "{ [i, j]: 0 <= i, j < n }", "c[i, j] = 1", [lk.ValueArg("n", "int64"), "..."]
    )
    refused(ResourceError, "no memory for 'c'", wide, wide, parameters={"n": 2**62})
    with pytest.raises(InvalidArgumentError, match="generate_code_v2 takes a kernel, not 3"):
        lk.generate_code_v2(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("arch", ["sm_1", "--help", "sm_90a\0", 90, ["sm_90a"], ""])
@pytest.mark.parametrize("view", ["ptx", "cubin", "sass", "resources"])
def test_no_architectures(view: str, arch: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="is no architecture of GPUs"):
        getattr(KNL, view)(arch)


def compared(expected: Any, got: Any, dtype: Any = np.float64) -> float:
    return check_same("x", np.array(expected, dtype), np.array(got, dtype), None)


def test_what_is_the_same() -> None:
    inf, nan = float("inf"), float("nan")
    assert compared([1, inf, -inf, nan], [1, inf, -inf, nan]) == 0
    assert compared([2**63 - 1], [2**63 - 1], np.int64) == 0
    assert compared([1, 1e6], [1 + 1e-3, 1e6], np.complex64) < 1e-8


@pytest.mark.parametrize(
    ("expected", "got", "dtype"),
    [
        ([1, float("inf")], [1, -float("inf")], np.float64),
        ([1, float("inf")], [1, 7], np.float64),
        ([1, float("nan")], [1, 7], np.float32),
        ([2**62 + 1], [2**62], np.int64),
        ([2**64 - 1, 0], [2**64 - 2, 0], np.uint64),
        ([True], [False], np.bool_),
        ([1.0], [1.0 + 1e-12], np.complex128),
    ],
)
def test_what_differs(expected: Any, got: Any, dtype: Any) -> None:
    with pytest.raises(LoopkitError, match="'x' differs"):
        compared(expected, got, dtype)
    with pytest.raises(LoopkitError, match=r"'x' has the shape"):
        compared(expected, [got], dtype)
