"""Assertions checked by the cuda executor: in host memory, and on a GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from seams import AssertingExecutor, CudaExecutor, library_holds, parse_expression
from test_assertions import BROKEN, EXPECTED, GOOD, asserted, gather

import loopkit as lk

n = parse_expression("n")

#: Assertions about p and q, and whether [4, 1, 2] and [0, 6, 2] obey them.
CASES: list[tuple[Any, bool]] = [
    (lk.Injective("p"), True),
    (lk.Increasing("p"), False),
    (lk.Increasing("q", True), False),
    (lk.Within("p", 0, parse_expression("n + 1")), True),
    (lk.Within("p", 0, n), False),
    (lk.Within("p", 2, 9), False),
    (lk.Disjoint("p", "q"), False),
]
P, Q = [4, 1, 2], [0, 6, 2]


def check_library(library: Any, make: Any) -> None:
    def holds(assertion: Any, *values: Any) -> bool:
        return library_holds(library, assertion, [make(v) for v in values], {"n": 4})

    for assertion, expected in CASES:
        given = [P if name == "p" else Q for name in assertion.arrays]
        assert holds(assertion, *given) is expected, assertion
    assert not holds(lk.Injective("p"), [3, 1, 3])
    assert not holds(lk.Injective("p"), [[3, 1], [0, 3]])
    assert holds(lk.Increasing("p"), [1, 1, 2]) and holds(lk.Increasing("p", True), [1, 2])
    assert not holds(lk.Increasing("p", True), [1, 1, 2])
    assert holds(lk.Disjoint("p", "q"), [1, 2], [3, 0])
    for assertion in (lk.Injective("p"), lk.Increasing("p"), lk.Within("p", 0, 0)):
        assert holds(assertion, np.zeros(0, np.int64))
    assert holds(lk.Disjoint("p", "q"), np.zeros(0, np.int64), [1])


def test_checks_of_a_library() -> None:
    check_library(np, np.asarray)


def test_checks_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    check_library(torch, lambda values: torch.from_numpy(np.asarray(values)))


def test_arrays_in_host_memory_are_checked_before_a_gpu_is_needed() -> None:
    run = asserted().executor("cuda", check_assertions=True)
    assert isinstance(run, AssertingExecutor) and isinstance(run.inner, CudaExecutor)
    for changes, message in BROKEN.values():
        with pytest.raises(lk.AssumptionError) as caught:
            run(**{**GOOD, **changes})
        assert str(caught.value) == message
    with pytest.raises(lk.UnknownNameError):
        run(**GOOD, z=3)


def test_tensors_in_host_memory() -> None:
    torch = pytest.importorskip("torch")
    run = asserted().executor("cuda", check_assertions=True)
    tensors = {name: torch.from_numpy(value.copy()) for name, value in GOOD.items()}
    tensors["perm"][0] = 0
    with pytest.raises(lk.AssumptionError, match=r"perm\[0\] = perm\[2\] = 0"):
        run(**tensors)


def test_nothing_stands_around_an_executor_that_does_not_check() -> None:
    assert type(asserted().executor("cuda")) is CudaExecutor
    assert type(gather().executor("cuda", check_assertions=True)) is CudaExecutor
    assert type(asserted().executor("cuda", check_assertions=False)) is CudaExecutor


# {{{ on a GPU

LIBRARIES = ["numpy", "torch", "cupy", "jax", "numba", "interface"]


class Interface:
    """Only `__cuda_array_interface__`, of a tensor that it keeps."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.tensor.__cuda_array_interface__


def on_gpu(library: str, arrays: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    if library == "numpy":
        return arrays
    if library in ("torch", "interface"):
        torch = pytest.importorskip("torch")
        tensors = {name: torch.from_numpy(v.copy()).cuda() for name, v in arrays.items()}
        if library == "torch":
            return tensors
        made = {name: Interface(tensor) for name, tensor in tensors.items()}
        return {**made, "y": Interface(torch.zeros(4, device="cuda"))}
    if library == "cupy":
        cupy = pytest.importorskip("cupy")
        return {name: cupy.asarray(v) for name, v in arrays.items()}
    if library == "jax":
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
        if jax.default_backend() not in ("gpu", "cuda"):
            pytest.skip("JAX sees no GPU")
        return {name: jax.numpy.asarray(v) for name, v in arrays.items()}
    cuda = pytest.importorskip("numba.cuda")
    return {name: cuda.to_device(v) for name, v in arrays.items()}


def to_numpy(x: Any) -> np.ndarray[Any, Any]:
    if isinstance(x, Interface):
        x = x.tensor
    for method in ("cpu", "get", "copy_to_host"):
        if hasattr(x, method):
            x = getattr(x, method)()
            break
    return np.asarray(x)


@pytest.fixture
def jax_as_it_was() -> Iterator[None]:
    """JAX's 64 bits, which index data may need, are switched off again."""
    yield
    jax = sys.modules.get("jax")
    if jax is not None:
        jax.config.update("jax_enable_x64", False)


@pytest.mark.gpu
@pytest.mark.usefixtures("jax_as_it_was")
@pytest.mark.parametrize("library", LIBRARIES)
def test_on_a_gpu(library: str) -> None:
    run = asserted().executor("cuda", check_assertions=True)
    for _ in range(2):
        np.testing.assert_array_equal(to_numpy(run(**on_gpu(library, GOOD))), EXPECTED)
        for changes, message in BROKEN.values():
            with pytest.raises(lk.AssumptionError) as caught:
                run(**on_gpu(library, {**GOOD, **changes}))
            assert str(caught.value) == message


@pytest.mark.gpu
def test_views_streams_and_bound_calls() -> None:
    torch = pytest.importorskip("torch")
    run = asserted().executor("cuda", check_assertions=True)
    tensors = on_gpu("torch", GOOD)
    wide = torch.zeros(8, dtype=torch.int32, device="cuda")
    wide[::2] = tensors["perm"]
    tensors["perm"] = wide[::2]
    np.testing.assert_array_equal(run(**tensors).cpu(), EXPECTED)
    side = torch.cuda.Stream()
    bound = run.bind(**tensors, stream=side)
    result = bound()
    side.synchronize()  # or the copy, on another stream, may come first
    np.testing.assert_array_equal(result.cpu(), EXPECTED)
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)  # the check has to wait for what comes after
        wide[4] = 3
    with pytest.raises(lk.AssumptionError, match=r"perm\[0\] = perm\[2\] = 3"):
        bound()
    with pytest.raises(lk.AssumptionError, match=r"perm\[0\] = perm\[2\] = 3"):
        run(**tensors, stream=side)


@pytest.mark.gpu
def test_calls_that_do_not_check_stay_as_they_were() -> None:
    torch = pytest.importorskip("torch")
    knl = asserted()
    tensors = on_gpu("torch", GOOD)
    knl(**tensors)
    torch.cuda.synchronize()
    # After the first call, calls go through a function for exactly such arguments.
    assert knl._default_executor.call.__name__ == "gather"


# }}}
