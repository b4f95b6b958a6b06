"""Calls that go on in another process, with a stand-in for the GPU."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from _run_programs import AXPY_SOURCE, MATMUL, SUMDIFF, axpy, loaded

from loopkit import _once
from loopkit._errors import CompileError, LaunchError, ResourceError
from loopkit._run import buffers, copies, driver, relaunch
from loopkit._run.driver import DriverError
from loopkit._run.executor import CudaExecutor

STAND_IN = "_run_stand_in:OnCpu"


@pytest.fixture(scope="module")
def shared() -> Iterator[dict[str, relaunch.Worker]]:
    """The process that a test leaves behind for the next, which saves a second each time."""
    made: dict[str, relaunch.Worker] = {}
    yield made
    for worker in made.values():
        worker.close()


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch, shared: dict[str, relaunch.Worker]) -> Iterator[Any]:
    """A device whose context is lost; what runs instead of it, runs on the CPU."""

    class Device(SimpleNamespace):
        def __repr__(self) -> str:
            return "<cuda:0 No GPU>"

    monkeypatch.setattr(driver, "device", lambda index: Device(index=index, lost="it failed"))
    monkeypatch.setattr(driver, "current_device", lambda: 0)
    monkeypatch.setattr(relaunch, "GPU", STAND_IN)
    monkeypatch.setattr(relaunch, "_worker", shared.pop("worker", None))
    monkeypatch.setattr(_once, "given", {"context": True})
    yield relaunch
    if relaunch._worker is not None:
        shared["worker"] = relaunch._worker


@pytest.fixture
def fresh(lost: Any) -> Any:
    """`lost` without a process yet, so that what a new one writes to stderr is captured."""
    if lost._worker is not None:
        lost._worker.close()
        lost._worker = None
    return lost


def named(name: str) -> CudaExecutor:
    source = AXPY_SOURCE.replace("axpy", name)
    return CudaExecutor(lambda strided: dataclasses.replace(axpy(), name=name, source=source))


def works(knl: Any = None) -> None:
    x, y = np.arange(5, dtype="f4"), np.ones(5, "f4")
    assert (knl or CudaExecutor(axpy))(x=x, y=y, alpha=2) is y
    np.testing.assert_array_equal(y, 2 * x + 1)


# -- what calls do


@pytest.mark.host
def test_the_same_results_in_another_process(fresh: Any, capfd: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((50, 70), dtype="f4"), rng.random((70, 33), dtype="f4")
    knl = CudaExecutor(lambda strided: MATMUL)
    np.testing.assert_allclose(knl(a=a, b=b), a @ b, rtol=1e-5)
    pid = fresh._worker._process.pid
    assert pid != os.getpid()
    c = np.zeros((50, 33), "f4")
    assert knl(a=a, b=b, c=c) is c
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    np.testing.assert_allclose(knl(a=a[:, ::-1], b=b[::-1]), a @ b, rtol=1e-5)
    bound = knl.bind(a=a, b=b, c=c)
    c[...] = 0
    assert bound() is c
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    assert fresh._worker._process.pid == pid
    out, err = capfd.readouterr()
    assert out == "" and "printed while it runs" in err


@pytest.mark.host
def test_strides_scratch_and_nothing(lost: Any) -> None:
    x, y = np.arange(20, dtype="f4"), np.ones(20, "f4")
    CudaExecutor(axpy)(x=x[::2], y=y[1::2], alpha=2)
    np.testing.assert_array_equal(y[1::2], 2 * x[::2] + 1)
    assert (y[::2] == 1).all()
    both = CudaExecutor(lambda strided: SUMDIFF)
    a, b = np.arange(1000, dtype="f4"), np.ones(1000, "f4")
    s, d = both(a=a, b=b)
    np.testing.assert_array_equal(s, a + 1)
    np.testing.assert_array_equal(d, a - 1)
    assert both(a=a[:0], b=b[:0]).s.shape == (0,)


@pytest.mark.host
def test_large_arrays_are_not_kept_twice(lost: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers.Arena, "KEPT", 1 << 16)
    knl = CudaExecutor(axpy)
    for n in (10, 100_000, 1000, 200_000, 100_000):
        x, y = np.arange(n, dtype="f4"), np.ones(n, "f4")
        knl(x=x, y=y, alpha=2)
        np.testing.assert_array_equal(y, 2 * x + 1)
        assert lost._worker._arena._size <= 1 << 16


@pytest.mark.host
def test_one_warning_that_names_the_caller(lost: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_once, "given", {})
    with pytest.warns(RuntimeWarning, match=r"<cuda:0 No GPU> is lost \(it failed\)") as seen:
        works()
        works()
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert "start this process anew" in str(seen[0].message)


@pytest.mark.host
def test_threads(lost: Any) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                works()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# -- what can go wrong


@pytest.mark.host
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("illegal", r"illegal on cuda:0 failed: an illegal access\n.*the next call gets a new one"),
        ("killed", "killed for this one was ended by SIGKILL\nthe next call gets a new one"),
        ("left", "the process that ran left for this one ended with status 3"),
    ],
)
def test_a_process_that_is_lost_is_replaced(lost: Any, name: str, message: str) -> None:
    works()
    before = lost._worker._process
    x, y = np.arange(5, dtype="f4"), np.ones(5, "f4")
    with pytest.raises(LaunchError, match=message):
        named(name)(x=x, y=y, alpha=2)
    np.testing.assert_array_equal(x, np.arange(5))
    np.testing.assert_array_equal(y, 1)
    assert before.wait(5) is not None
    works()
    assert lost._worker._process.pid != before.pid


@pytest.mark.host
def test_other_errors_come_back_as_they_are(lost: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    works()
    pid = lost._worker._process.pid
    y = np.ones(5, "f4")
    with pytest.raises(ResourceError, match="too much shared memory\nmake the tiles smaller"):
        named("hungry")(x=y, y=y.copy(), alpha=2)
    with pytest.raises(CompileError, match=r"rejected\na log\n1 \| a source") as caught:
        named("wrong")(x=y, y=y.copy(), alpha=2)
    assert caught.value.source == "a source"
    with pytest.raises(LaunchError, match=r"ZeroDivisionError\('a mistake'\)") as unforeseen:
        named("bug")(x=y, y=y.copy(), alpha=2)
    assert "_run_stand_in.py" in unforeseen.value.__notes__[0]
    monkeypatch.setattr(driver, "gpu_libraries", lambda: ["PyTorch"])
    with pytest.raises(LaunchError, match="still holds the memory of PyTorch"):
        named("memory")(x=y, y=y.copy(), alpha=2)
    works()
    assert lost._worker._process.pid == pid


@pytest.mark.host
def test_ended_between_two_calls(lost: Any) -> None:
    works()
    before = lost._worker._process
    before.kill()
    before.wait()
    works()
    assert lost._worker._process.pid != before.pid


@pytest.mark.host
@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_an_interrupt_ends_the_launch(lost: Any) -> None:
    works()
    before = lost._worker._process

    def interrupt() -> None:
        time.sleep(0.5)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # to this thread, not that

    thread = threading.Thread(target=interrupt)
    y = np.ones(5, "f4")
    thread.start()
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        named("slow")(x=y, y=y.copy(), alpha=2)
    thread.join()
    assert time.perf_counter() - started < 20
    assert before.poll() is not None
    works()


def test_a_process_that_does_not_start(
    fresh: Any, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setattr(fresh, "GPU", "_run_stand_in:cannot_start")
    knl, y = CudaExecutor(axpy), np.ones(5, "f4")
    with pytest.raises(LaunchError, match="does not start: it ended with status 1"):
        knl(x=y, y=y.copy(), alpha=2)
    assert "something is not installed there" in capfd.readouterr().err
    monkeypatch.setattr(fresh.spawn, "get_executable", lambda: "/no/such/python")
    with pytest.raises(LaunchError, match=r"does not start: .*/no/such/python"):
        knl(x=y, y=y.copy(), alpha=2)
    monkeypatch.setattr(fresh.spawn, "get_executable", lambda: None)
    with pytest.raises(LaunchError, match="which program is Python here"):
        knl(x=y, y=y.copy(), alpha=2)


@pytest.mark.host
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_gets_one_of_its_own(lost: Any) -> None:
    works()
    pid = lost._worker._process.pid
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about threads
        child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            works()
            status = 0 if lost._worker._process.pid != pid else 2
            lost._worker.close()
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    works()
    assert lost._worker._process.pid == pid


# -- who is to blame


class FailingDriver:
    """Stands for a driver that fails from some call on."""

    def __init__(self, fails: str, status: int = 700) -> None:
        self.calls: list[str] = []
        self.fails = fails
        self.status = status

    def call(self, name: str, *args: Any, doing: str = "") -> Any:
        self.calls.append(name)
        if name == self.fails or (self.fails in self.calls and self.status in driver.STICKY):
            raise DriverError(f"{doing or name} failed: CUDA error {self.status}", self.status)
        return len(self.calls)

    def launch(self, *args: Any) -> int:
        self.calls.append("launch")
        return self.status if self.fails == "launch" else 0


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, lost: Any) -> Callable[..., Any]:
    def make(fails: str, status: int = 700) -> Any:
        made = FailingDriver(fails, status)
        device = object.__new__(driver.Device)
        vars(device).update(
            index=0,
            name="Test GPU",
            lock=threading.RLock(),
            generation=0,
            lost="",
            limits=driver.Limits(),
            context=1,
            _streams=[],
            _ours=False,
            _handle=0,
        )
        there = loaded(axpy(), device, 1)
        monkeypatch.setattr(driver, "device", lambda index: device)
        monkeypatch.setattr(driver, "call", made.call)
        monkeypatch.setattr(driver, "api", lambda: SimpleNamespace(CUstream_flags=FLAGS))
        monkeypatch.setattr(driver, "describe_status", lambda status: f"CUDA error {status}")
        monkeypatch.setattr(copies.launch, "launch_function", lambda: made.launch)
        monkeypatch.setattr(copies.Modules, "on", lambda self, strided, device: there)
        return made, device

    return make


FLAGS = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)


@pytest.mark.host
@pytest.mark.parametrize(
    "first", ["cuCtxPushCurrent", "cuStreamCreate", "cuMemAllocAsync", "cuMemcpyHtoDAsync"]
)
def test_a_call_that_has_not_begun_goes_on_elsewhere(failing: Any, first: str) -> None:
    gpu, device = failing(first)
    works()
    assert device.lost == "work on <cuda:0 Test GPU> failed: CUDA error 700"
    assert "launch" not in gpu.calls
    gpu.calls.clear()
    works()
    assert gpu.calls == []


@pytest.mark.host
@pytest.mark.parametrize("where", ["launch", "cuStreamSynchronize", "cuMemcpyDtoHAsync"])
def test_a_call_that_has_begun_fails(failing: Any, where: str) -> None:
    _, device = failing(where)
    x, y = np.arange(5, dtype="f4"), np.ones(5, "f4")
    with pytest.raises(LaunchError, match="CUDA error 700") as caught:
        CudaExecutor(axpy)(x=x, y=y, alpha=2)
    assert "calls with NumPy arrays work all the same" in str(caught.value)
    assert device.lost
    np.testing.assert_array_equal(y, 1)
    works()


def test_what_spoils_nothing_stays_here(failing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relaunch, "run", None)
    for where, status in (("cuMemAllocAsync", 2), ("launch", 701)):
        _, device = failing(where, status)
        y = np.ones(5, "f4")
        with pytest.raises(LaunchError, match=f"CUDA error {status}"):
            CudaExecutor(axpy)(x=y, y=y.copy(), alpha=2)
        assert not device.lost


def test_results_are_copied_after_the_kernel_has_ended(failing: Any) -> None:
    gpu, _ = failing("")
    y = np.ones(5, "f4")
    CudaExecutor(axpy)(x=y, y=y.copy(), alpha=2)
    after = gpu.calls[gpu.calls.index("launch") :]
    assert after.index("cuStreamSynchronize") < after.index("cuMemcpyDtoHAsync")
    assert after[-4:-1] == ["cuStreamSynchronize", "cuMemFreeAsync", "cuMemFreeAsync"]
