"""Measuring on a GPU: one that the CPU stands in for, whose clock is known; and a real one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _run_programs import loaded
from _run_stand_in import Cpu
from seams import DEVICES, driver, flusher, on_gpu, timed

import loopkit as lk

LAUNCH, FLUSH, COPY = 3e-3, 50e-3, 7e-3
H100 = DEVICES["H100 SXM"]


class Timed(Cpu):
    """A stand-in whose clock goes on by known times."""

    now = 0.0

    def cuMemcpyDtoDAsync(self, to: int, source: int, size: int, stream: int) -> None:
        """Copy, which takes a while."""
        self.cuMemcpyHtoDAsync(to, source, size, stream)
        self.now += COPY

    def cuEventCreate(self, flags: int) -> list[float]:
        """An event that has not happened."""
        return []

    def cuEventRecord(self, event: list[float], stream: int) -> None:
        """It happens now."""
        event.append(self.now)

    def cuEventElapsedTime(self, begin: list[float], end: list[float]) -> float:
        """In milliseconds."""
        (first,), (second,) = begin, end
        return 1e3 * (second - first)

    def launcher(self, there: Any, grid: Any, *arguments: Any) -> Any:
        """A launch that takes its time."""

        def run() -> None:
            if there.program.name == "read_all":
                self.calls.append("flush")
                self.now += FLUSH
            else:
                self.launch(there, grid, *arguments)
                self.now += LAUNCH

        return run


@pytest.fixture
def cpu(monkeypatch: pytest.MonkeyPatch) -> Timed:
    made = Timed()
    made.install(monkeypatch)
    monkeypatch.setattr(on_gpu, "load", lambda program, device: loaded(program, device, 2))
    monkeypatch.setattr(on_gpu, "launcher", made.launcher)
    monkeypatch.setattr(on_gpu, "attribute", lambda name, index: 1 << 20)
    monkeypatch.setattr(on_gpu, "device_here", lambda: H100)
    monkeypatch.setattr("loopkit._measure.measure.WARM_UP", 0.0)
    return made


def update() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }", "b[i] = a[i] + b[i]", dtypes={"a, b": "float32"}
    ).split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")


@pytest.mark.host
@pytest.mark.parametrize("flush", [True, False])
def test_launches_alone_are_timed(cpu: Timed, flush: bool) -> None:
    a, b = np.arange(70, dtype="f4"), np.ones(70, "f4")
    found = lk.measure(update(), a=a, b=b, executor="cuda", flush_l2=flush, seconds=1e-3)
    np.testing.assert_allclose(found.times, LAUNCH)
    assert found.device is H100 and found.flush_l2 is flush
    assert ("flush" in cpu.calls) is flush
    assert cpu.is_empty
    assert found.in_place == ("b",)
    np.testing.assert_array_equal(b, 1)
    assert found.roofline is not None
    assert found.share == pytest.approx(found.roofline.seconds / LAUNCH)
    assert found.roofline.moved == 3 * 4 * 70
    assert f"L2 {'flushed before each launch' if flush else 'left as it is'}" in str(found)
    assert "of the roofline" in str(found) and "H100 SXM" in str(found)


@pytest.mark.host
def test_each_launch_begins_with_the_first_values(cpu: Timed) -> None:
    a, b = np.arange(70, dtype="f4"), np.full(70, 5, "f4")
    with on_gpu.on_gpu(update(), {"a": a, "b": b, "n": 70}, flush_l2=True) as run:
        run.slot(4)
        np.testing.assert_array_equal(run.outputs()["b"], a + 5)
        np.testing.assert_array_equal(run.outputs()["b"], a + 5)
    assert cpu.is_empty


def sums() -> lk.Kernel:
    """Running sums by blocks that look back at those before them."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j <= i }", "y[i] = sum(j, x[j])", dtypes={"x, y": "float32"}
    )
    knl = knl.realize_reduction(force_scan=True, by="lookback")
    return knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")


@pytest.mark.host
def test_what_must_hold_zeros_is_cleared_before_each_measured_launch(cpu: Timed) -> None:
    x = np.arange(100, dtype="f4")
    with on_gpu.on_gpu(sums(), {"x": x}, flush_l2=True) as run:
        run.slot(3)
        np.testing.assert_array_equal(run.outputs()["y"], np.cumsum(x))


@pytest.mark.gpu
@pytest.mark.nvrtc
def test_a_real_gpu_measures_scans_that_look_back() -> None:
    x = np.ones(5000, "f4")
    with on_gpu.on_gpu(sums(), {"x": x}, flush_l2=False) as run:
        timed(run, 0.01)
        np.testing.assert_array_equal(run.outputs()["y"], np.cumsum(x))


class Interface:
    """An array "on the GPU"."""

    def __init__(self, cpu: Cpu, array: np.ndarray[Any, Any], step: int = 1) -> None:
        self.pointer = cpu.cuMemAllocAsync(array.nbytes * step, 0)
        self.memory = np.frombuffer(cpu._memory[self.pointer], array.dtype)[::step]
        self.memory[...] = array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            **self.memory.__array_interface__,
            "data": (self.pointer, False),
            "version": 3,
            "stream": 1,
        }


@pytest.mark.host
def test_arrays_on_the_gpu_are_read_there_and_never_written(
    cpu: Timed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "pointer_device", lambda pointer: 0)
    a, b = (Interface(cpu, np.full(70, value, "f4")) for value in (2, 3))
    with on_gpu.on_gpu(update(), {"a": a, "b": b, "n": 70}, flush_l2=False) as run:
        run.slot(2)
        np.testing.assert_array_equal(run.outputs()["b"], 5)
        np.testing.assert_array_equal(b.memory, 3)
        a.memory[...], b.memory[...] = 4, 9
        np.testing.assert_array_equal(run.outputs()["b"], 4 + 3)
    with pytest.raises(lk.InvalidArgumentError, match=r"a\[n\] of float32 is missing"):
        lk.measure(update(), b=b, executor="cuda")  # random numbers would be on the host


@pytest.mark.host
def test_arrays_on_the_gpu_keep_their_strides(cpu: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "pointer_device", lambda pointer: 0)
    a, b = (Interface(cpu, np.arange(70, dtype="f4") + n, step=n) for n in (2, 3))
    with on_gpu.on_gpu(update(), {"a": a, "b": b, "n": 70}, flush_l2=True) as run:
        run.slot(2)
        np.testing.assert_array_equal(run.outputs()["b"], 2 * np.arange(70) + 5)
    np.testing.assert_array_equal(b.memory, np.arange(70) + 3)


@pytest.mark.host
@pytest.mark.parametrize("flush", [True, False])
def test_memory_that_a_launch_finds_cleared_is_cleared_before_each(cpu: Timed, flush: bool) -> None:
    """The tickets of a scan across blocks are counted from 0 in each launch."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "y[i] = sum(j, x[j])",
        dtypes={"x, y": "float32"},
        assumptions="n >= 0",
    ).realize_reduction(force_scan=True, by="lookback")
    knl = knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    x = np.ones(100, "f4")
    with on_gpu.on_gpu(knl, {"x": x, "n": 100}, flush_l2=flush) as run:
        run.slot(3)
        np.testing.assert_array_equal(run.outputs()["y"], x.cumsum())
        np.testing.assert_array_equal(run.outputs()["y"], x.cumsum())


@pytest.mark.host
def test_kernels_take_turns(cpu: Timed) -> None:
    found = lk.compare(
        {"one": update(), "two": update().rename_iname("i_inner", "thread")},
        n=70,
        executor="cuda",
        seconds=1e-3,
    )
    assert found["two"].ratio == pytest.approx(1)
    assert found["two"].errors == (("b", 0.0),)
    assert "of the roofline" in str(found)
    assert cpu.is_empty


@pytest.mark.host
def test_what_fails_leaves_no_memory_behind(cpu: Timed) -> None:
    cpu.fails, cpu.status = "launch", 1
    with pytest.raises(lk.LaunchError, match="failed: CUDA error 1"):
        lk.measure(update(), n=70, executor="cuda")
    assert cpu.is_empty


# -- a real one


def big(n: int = 1 << 26) -> tuple[lk.Kernel, dict[str, int]]:
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = a[i]", dtypes={"a, b": "float32"})
    return knl.split_iname("i", 256, outer_tag="g.0", inner_tag="l.0"), {"n": n}


@pytest.mark.gpu
@pytest.mark.nvrtc
def test_a_copy_reaches_most_of_the_roofline() -> None:
    knl, sizes = big()
    found = lk.measure(knl, **sizes)
    assert found.executor == "cuda" and found.share is not None and found.roofline is not None
    print(found)
    assert found.roofline.bound.name == "memory"
    assert 0.5 < found.share <= 1.05


@pytest.mark.gpu
@pytest.mark.nvrtc
def test_a_flush_costs_small_data_their_cache() -> None:
    """What fits L2 is read faster where it is left there."""
    knl, sizes = big(1 << 20)
    ratios = []
    for _ in range(5):  # in turns: other processes may use the GPU meanwhile
        cold, warm = (lk.measure(knl, flush_l2=flush, **sizes) for flush in (True, False))
        ratios.append(warm.seconds / cold.seconds)
    assert sorted(ratios)[2] < 1, ratios


@pytest.mark.gpu
@pytest.mark.nvrtc
def test_times_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    knl, sizes = big()
    a = torch.rand(sizes["n"], device="cuda")
    b = torch.empty_like(a)
    run = knl.bind(a=a, b=b)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    ratios = []
    for _ in range(5):  # in turns: other processes may use the GPU meanwhile
        found = lk.measure(knl, a=a, b=b, flush_l2=False)
        for _ in range(20):
            run()
        begin.record()
        for _ in range(50):
            run()
        end.record()
        torch.cuda.synchronize()
        ratios.append(found.seconds / (begin.elapsed_time(end) / 50 / 1e3))
    assert sorted(ratios)[2] == pytest.approx(1, rel=0.15), ratios


@pytest.mark.gpu
@pytest.mark.nvrtc
def test_a_real_gpu_gives_each_launch_the_first_values() -> None:
    a, b = np.arange(7000, dtype="f4"), np.full(7000, 5, "f4")
    with on_gpu.on_gpu(update(), {"a": a, "b": b, "n": 7000}, flush_l2=True) as run:
        assert all(seconds > 0 for seconds in timed(run, 0.01))
        np.testing.assert_array_equal(run.outputs()["b"], a + 5)
    torch = pytest.importorskip("torch")
    on = {"a": torch.from_numpy(a).cuda(), "b": torch.from_numpy(b).cuda()}
    with on_gpu.on_gpu(update(), {**on, "n": 7000}, flush_l2=False) as run:
        timed(run, 0.01)
        np.testing.assert_array_equal(run.outputs()["b"], a + 5)
    assert bool((on["b"] == 5).all())


@pytest.mark.gpu
@pytest.mark.nvrtc
def test_schedules_in_turns() -> None:
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
    import transpose

    kernels = transpose.make()
    found = lk.compare(kernels, n=256, m=256)  # the plain one runs on one thread
    print(found)
    assert found.fastest.name == "scheduled"


@pytest.mark.gpu
@pytest.mark.nvrtc
def test_the_cache_is_emptied() -> None:
    """It is read through in about the time that its bytes take."""
    device = driver.device(driver.current_device())
    with device.working(), device.stream() as stream, flusher(device, stream, 50 << 20) as flush:
        clock = on_gpu.Clock(stream, 1)
        flush()
        clock.mark()
        flush()
        clock.mark()
        device.wait(stream, "the flush")
        (seconds,) = clock.seconds()
    assert 200e6 / 20e12 < seconds < 200e6 / 0.1e12
