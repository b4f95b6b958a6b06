"""The host executor on programs written by hand."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from _run_programs import MATMUL, SUMDIFF, axpy
from seams import HostExecutor, Program

import loopkit as lk
from loopkit import InvalidArgumentError

pytestmark = pytest.mark.host


def only(program: Program) -> Any:
    def program_for(strided: frozenset[str]) -> Program:
        assert not strided
        return program

    return program_for


@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
def test_matmul(order: Literal["ascending", "descending", "random"]) -> None:
    knl = HostExecutor(only(MATMUL), order=order, seed=3)
    rng = np.random.default_rng(0)
    a = rng.random((20, 7), dtype=np.float32)
    b = rng.random((7, 33), dtype=np.float32)
    np.testing.assert_allclose(knl(a=a, b=b), a @ b, rtol=1e-5)
    c = np.zeros((20, 33), np.float32)
    assert knl(a, b, c) is c
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_strided_arrays_ask_for_a_variant() -> None:
    asked: list[frozenset[str]] = []

    def program_for(strided: frozenset[str]) -> Program:
        asked.append(strided)
        return axpy(strided)

    knl = HostExecutor(program_for)
    x, y = np.arange(20, dtype="f4"), np.ones(10, "f4")
    knl(x=x[::2], y=y, alpha=2)
    np.testing.assert_array_equal(y, 2 * x[::2] + 1)
    y = np.ones(20, "f4")
    knl(x=x[::-2], y=y[1::2], alpha=3)
    np.testing.assert_array_equal(y[1::2], 3 * x[::-2] + 1)
    assert (y[::2] == 1).all()
    assert asked == [frozenset(), frozenset("x"), frozenset("xy")]


def test_several_outputs_and_scratch() -> None:
    knl = HostExecutor(only(SUMDIFF))
    a, b = np.arange(70, dtype="f4"), np.ones(70, "f4")
    s, d = knl(a=a, b=b)
    np.testing.assert_array_equal(s, a + 1)
    np.testing.assert_array_equal(d, a - 1)
    d = np.zeros(70, "f4")
    assert knl(a=a, b=b, d=d).d is d


def test_bind() -> None:
    knl = HostExecutor(axpy)
    x, y = np.ones(5, "f4"), np.zeros(5, "f4")
    bound = knl.bind(x=x, y=y, alpha=2)
    assert bound() is y and bound() is y
    np.testing.assert_array_equal(y, 4)


def test_zero_size() -> None:
    empty = np.zeros(0, "f4")
    assert HostExecutor(only(SUMDIFF))(a=empty, b=empty).s.shape == (0,)
    assert HostExecutor(axpy)(x=empty, y=empty, alpha=1) is empty


def test_wrong_arguments_do_not_stick() -> None:
    knl = HostExecutor(axpy)
    with pytest.raises(InvalidArgumentError):
        knl(x=np.zeros(3, "f4"), y=np.zeros(4, "f4"), alpha=1)
    assert knl(x=np.ones(3, "f4"), y=np.zeros(3, "f4"), alpha=1).sum() == 3


def test_tensors_of_pytorch_on_the_host() -> None:
    torch = pytest.importorskip("torch")
    knl = HostExecutor(only(MATMUL))
    a, b = torch.rand(20, 7), torch.rand(7, 33)
    c = knl(a=a, b=b)
    assert isinstance(c, torch.Tensor)
    torch.testing.assert_close(c, a @ b)
    mine = torch.zeros(20, 33)
    assert knl(a=a, b=b, c=mine) is mine
    torch.testing.assert_close(mine, a @ b)


def test_arrays_of_jax_on_the_host() -> None:
    jax = pytest.importorskip("jax")
    with jax.default_device(jax.devices("cpu")[0]):
        x, y = jax.numpy.ones(5, "float32"), jax.numpy.ones(5, "float32")
        result = HostExecutor(axpy)(x=x, y=y, alpha=2)
    assert isinstance(result, jax.Array)
    np.testing.assert_array_equal(np.asarray(result), 3)
    np.testing.assert_array_equal(np.asarray(y), 1)


@pytest.mark.parametrize("executor", ["host", "reference"])
def test_extents_that_are_negative_for_small_sizes(executor: str) -> None:
    knl = lk.make_kernel(
        "{ [i]: 2 <= i < n and i mod 2 = 1 }", "u[i - 2] = e[2*i - 3]", dtypes={"u, e": "int32"}
    )
    run = knl.executor(executor)
    for n, extent in [(-3, 0), (0, 0), (1, 0), (2, 0), (4, 4), (6, 8)]:
        e = np.arange(extent, dtype=np.int32)
        u = run(n=n, e=e)
        assert u.shape == (extent // 2,)
        for i in range(3, n, 2):
            assert u[i - 2] == e[2 * i - 3]
