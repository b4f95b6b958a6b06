"""Arrays in host memory on a GPU, and what calls say when the CUDA context is lost."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from _run_programs import MATMUL, SUMDIFF, axpy
from _run_stand_in import Cpu, uses
from seams import CudaExecutor

from loopkit import LaunchError

pytestmark = pytest.mark.host


@pytest.fixture
def cpu(monkeypatch: pytest.MonkeyPatch) -> Cpu:
    made = Cpu()
    made.install(monkeypatch)
    return made


def works(knl: Any = None) -> None:
    x, y = np.arange(5, dtype="f4"), np.ones(5, "f4")
    assert (knl or CudaExecutor(axpy))(x=x, y=y, alpha=2) is y
    np.testing.assert_array_equal(y, 2 * x + 1)


def fails(match: str) -> None:
    x, y = np.arange(5, dtype="f4"), np.ones(5, "f4")
    with pytest.raises(LaunchError, match=match):
        CudaExecutor(axpy)(x=x, y=y, alpha=2)
    np.testing.assert_array_equal(x, np.arange(5))
    np.testing.assert_array_equal(y, 1)


# -- arrays in host memory


def test_arrays_go_there_and_come_back(cpu: Cpu) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((50, 70), dtype="f4"), rng.random((70, 33), dtype="f4")
    knl = CudaExecutor(uses(MATMUL))
    np.testing.assert_allclose(knl(a=a, b=b), a @ b, rtol=1e-5)
    c = np.zeros((50, 33), "f4")
    assert knl(a=a, b=b, c=c) is c
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    np.testing.assert_allclose(knl(a=a[:, ::-1], b=b[::-1]), a @ b, rtol=1e-5)
    bound = knl.bind(a=a, b=b, c=c)
    c[...] = 0
    assert bound() is c
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    assert cpu.is_empty


def test_strides_scratch_and_nothing(cpu: Cpu) -> None:
    x, y = np.arange(20, dtype="f4"), np.ones(20, "f4")
    CudaExecutor(axpy)(x=x[::2], y=y[1::2], alpha=2)
    np.testing.assert_array_equal(y[1::2], 2 * x[::2] + 1)
    assert (y[::2] == 1).all()
    both = CudaExecutor(uses(SUMDIFF))
    a, b = np.arange(1000, dtype="f4"), np.ones(1000, "f4")
    s, d = both(a=a, b=b)
    np.testing.assert_array_equal(s, a + 1)
    np.testing.assert_array_equal(d, a - 1)
    s, d = both(a=a[:0], b=b[:0])
    assert s.shape == d.shape == (0,)
    assert cpu.is_empty


def test_results_are_copied_after_the_kernel_has_ended(cpu: Cpu) -> None:
    works()
    after = cpu.calls[cpu.calls.index("launch") :]
    assert after.index("cuStreamSynchronize") < after.index("cuMemcpyDtoHAsync")


def test_threads(cpu: Cpu) -> None:
    failures: list[BaseException] = []
    knl = CudaExecutor(axpy)

    def work() -> None:
        try:
            for _ in range(20):
                works(knl)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and cpu.is_empty


# -- a context that is lost

LOST = (
    r"this process's CUDA context on <cuda:0 Test GPU> is lost, and the driver gives it no other: "
    r"restart this process; executor\(\"host\", sanitize=True\) finds accesses outside of arrays"
)


@pytest.mark.parametrize(
    "first",
    ["cuCtxPushCurrent", "cuStreamCreate", "cuMemAllocAsync", "cuMemcpyHtoDAsync"],
)
def test_what_others_did_is_not_blamed_on_a_call(first: str, monkeypatch: Any) -> None:
    """Whoever asks the driver next is told that a kernel failed."""
    cpu = Cpu(first)
    device = cpu.install(monkeypatch)
    fails(rf"^work on <cuda:0 Test GPU> failed: CUDA error 700\n{LOST}$")
    assert device.lost and "launch" not in cpu.calls
    cpu.calls.clear()
    again = rf"^an earlier call failed: work on <cuda:0 Test GPU> failed: CUDA error 700\n{LOST}$"
    fails(again)
    x = np.ones(5, "f4")
    with pytest.raises(LaunchError, match=again):  # before it is judged what arrays share
        CudaExecutor(axpy)(x=x, y=x[:], alpha=2)
    assert cpu.calls == []


def test_what_arrays_share_is_told_where_nothing_is_lost(cpu: Cpu) -> None:
    x = np.ones(5, "f4")
    with pytest.raises(LaunchError, match="y shares memory with x"):
        CudaExecutor(axpy)(x=x, y=x[:], alpha=2)
    works()


@pytest.mark.parametrize("where", ["launch", "cuStreamSynchronize", "cuMemcpyDtoHAsync"])
def test_a_call_that_has_begun_is_named(where: str, monkeypatch: Any) -> None:
    device = Cpu(where).install(monkeypatch)
    fails(rf"axpy .*<cuda:0 Test GPU> failed: CUDA error 700\n{LOST}$")
    assert device.lost
    fails(rf"^an earlier call failed: .*axpy.*\n{LOST}$")


@pytest.mark.parametrize(("where", "status"), [("cuMemAllocAsync", 2), ("launch", 701)])
def test_what_spoils_nothing_is_told_once(where: str, status: int, monkeypatch: Any) -> None:
    cpu = Cpu(where, status)
    device = cpu.install(monkeypatch)
    fails(f"CUDA error {status}$")
    assert not device.lost
    cpu.fails = ""
    works()
    assert cpu.is_empty
