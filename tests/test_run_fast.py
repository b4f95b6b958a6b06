"""Specialised calls, with a GPU and a library of arrays that exist only here."""

from __future__ import annotations

import ctypes
import dataclasses
import inspect
import struct
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pymbolic.primitives as p
import pytest
from _run_programs import MATMUL, SUMDIFF, axpy, loaded, m, n
from launch_kernels import eliminated, looked_back, summed, swept
from seams import (
    CUDA,
    ArrayInfo,
    ArrayKind,
    ArrayParam,
    Check,
    Layout,
    LoadedProgram,
    Location,
    Program,
    copies,
    driver,
    executor,
    fast,
    kinds,
    module,
    packing,
)
from seams import run_launch as launch

from loopkit import AssumptionError, InvalidArgumentError, LaunchError


class Tensor:
    """An array on the GPU that is not there; its memory is NumPy's."""

    def __init__(self, data: Any) -> None:
        self.data = data

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)
    strides = property(lambda self: self.data.strides)
    at = property(lambda self: self.data.__array_interface__["data"][0])


class TensorKind(ArrayKind):
    name = "Tensor"
    has_guard = True
    stream = 0

    def describe(self, x: Any, name: str = "the array") -> ArrayInfo:
        strides = tuple(s // x.dtype.itemsize for s in x.strides)
        where = Location("cuda", 0)
        return ArrayInfo(self, x, x.at, x.shape, strides, x.dtype, where)

    def empty(self, layout: Layout, dtype: Any, location: Any) -> Any:
        assert layout.is_contiguous
        return Tensor(np.zeros(layout.shape, dtype))

    def stream_source(self, index: int, constants: dict[str, Any]) -> str:
        constants["_kind"] = self
        return "_kind.stream"

    def guard(self, var: str, info: Any, devices: int, constants: dict[str, Any]) -> list[str]:
        constants[f"_{var}_type"] = type(info.object)
        constants[f"_{var}_shape"] = info.shape
        constants[f"_{var}_dtype"] = info.dtype
        constants[f"_{var}_strides"] = info.object.strides
        return [
            f"type({var}) is _{var}_type",
            f"{var}.shape == _{var}_shape",
            f"{var}.dtype == _{var}_dtype",
            f"{var}.strides == _{var}_strides",
        ]

    def pointer(self, var: str) -> str:
        return f"{var}.at"


class Gpu:
    """Stands for the driver: reads what a launch was given, out of memory."""

    def __init__(self) -> None:
        self.kind = TensorKind()
        self.launches: list[SimpleNamespace] = []
        self.loaded: dict[int, LoadedProgram] = {}
        self.resolved = 0
        self.status = 0
        self.device = SimpleNamespace(
            index=0,
            target=CUDA,
            current=self._current,
            working=self._current,
            wait=lambda *_: None,
            recover=lambda error: error,
        )
        self.pushed = 0

    def _current(self) -> Any:
        self.pushed += 1
        return memoryless()

    def load(self, program: Program, device: Any) -> LoadedProgram:
        function = 1000 + len(self.loaded)
        made = loaded(program, device, function)
        self.loaded |= {one.function: one for one in (made, *made.parts.values())}
        return made

    def launch(self, config: Any, function: Any, params: Any, extra: Any) -> int:
        assert extra is None
        loaded = self.loaded[function.value]
        head = struct.unpack("<7I4xQQI4x", ctypes.string_at(config.value, 56))
        layout = packing(loaded.program)
        pointers = struct.unpack(
            f"<{len(layout.offsets)}Q", ctypes.string_at(params.value, 8 * len(layout.offsets))
        )
        values = {}
        for param, pointer in zip(loaded.program.params, pointers, strict=True):
            dtype = np.dtype("u8") if isinstance(param, ArrayParam) else param.dtype
            raw = ctypes.string_at(pointer, dtype.itemsize)
            values[param.name] = np.frombuffer(raw, dtype)[0].item()
        assert head[8:] == (0, 0)
        self.launches.append(
            SimpleNamespace(
                program=loaded.program,
                grid=head[:3],
                block=head[3:6],
                shared=head[6],
                stream=head[7],
                values=values,
            )
        )
        return self.status


class memoryless:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: Any) -> None: ...


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    made = Gpu()
    monkeypatch.setitem(kinds._kinds, Tensor, made.kind)
    monkeypatch.setattr(driver, "device", lambda index: made.device)
    monkeypatch.setattr(driver, "device_count", lambda: 1)
    monkeypatch.setattr(driver, "describe_status", lambda status: f"CUDA error {status}")
    monkeypatch.setattr(module, "load", made.load)
    monkeypatch.setattr(launch, "launch_function", lambda: made.launch)
    return made


def tensor(*shape: int) -> Tensor:
    return Tensor(np.zeros(shape, np.float32))


def executor_of(
    program: Program | Callable[[frozenset[str]], Program], gpu: Gpu
) -> executor.CudaExecutor:
    made = executor.CudaExecutor((lambda _: program) if isinstance(program, Program) else program)
    resolve = made.plan.resolve

    def counted(args: Any, kwargs: Any) -> Any:
        gpu.resolved += 1
        return resolve(args, kwargs)

    made.plan.resolve = counted  # type: ignore[method-assign]
    return made


def test_second_call_is_specialised(gpu: Gpu) -> None:
    knl = executor_of(MATMUL, gpu)
    a, b, c = tensor(20, 7), tensor(7, 33), tensor(20, 33)
    assert knl(a=a, b=b, c=c) is c
    assert gpu.resolved == 1
    a2 = tensor(20, 7)
    gpu.kind.stream = 77
    assert knl(a=a2, b=b, c=c) is c
    assert knl(a2, b, c) is c
    assert gpu.resolved == 1 and gpu.pushed == 1
    expected = {"n": 20, "m": 33, "l": 7, "a": a.at, "b": b.at, "c": c.at}
    first, second, third = gpu.launches
    assert first.values == expected and first.stream == 0
    assert second.values == third.values == {**expected, "a": a2.at} and second.stream == 77
    for one in gpu.launches:
        assert (one.grid, one.block, one.shared) == ((3, 2, 1), (16, 16, 1), 0)


def test_other_shapes_get_their_own(gpu: Gpu) -> None:
    knl = executor_of(MATMUL, gpu)
    calls = [(tensor(i, 7), tensor(7, 16), tensor(i, 16)) for i in range(1, 5)]
    for _ in range(3):
        for a, b, c in calls:
            knl(a=a, b=b, c=c)
    assert gpu.resolved == 4
    assert [one.values["n"] for one in gpu.launches] == [1, 2, 3, 4] * 3


def test_the_chain_stays_short(gpu: Gpu) -> None:
    knl = executor_of(MATMUL, gpu)
    for i in range(1, 3 * fast.CHAIN):
        knl(a=tensor(i, 7), b=tensor(7, 16))
    assert len(knl._chain) == fast.CHAIN
    steps, function = 0, knl.call
    while function != knl._checked_call:
        function = function.__globals__["_next"]  # type: ignore[attr-defined]
        steps += 1
    assert steps == fast.CHAIN


def test_a_kept_function_does_not_lengthen_the_chain(gpu: Gpu) -> None:
    knl = executor_of(MATMUL, gpu)
    a, b, c = tensor(20, 7), tensor(7, 33), tensor(20, 33)
    knl(a=a, b=b, c=c)
    old = knl.call
    for _ in range(5):
        old(a=a, b=b)
    assert len(knl._chain) == 2


def test_many_shapes_that_come_again_are_checked_once(gpu: Gpu) -> None:
    knl = executor_of(MATMUL, gpu)
    calls = [(tensor(i, 7), tensor(7, 16), tensor(i, 16)) for i in range(1, 3 * fast.CHAIN)]
    for _ in range(3):
        for a, b, c in calls:
            assert knl(a=a, b=b, c=c) is c
    assert gpu.resolved == len(calls)
    assert len(knl._chain) == fast.CHAIN and len(knl._spare) == len(calls) - fast.CHAIN
    with pytest.raises(LaunchError, match="shares memory"):
        square = tensor(7, 7)
        for _ in range(fast.CHAIN + 1):
            knl(a=square, b=square, c=square)


def test_outputs_are_allocated(gpu: Gpu) -> None:
    knl = executor_of(MATMUL, gpu)
    a, b = tensor(20, 7), tensor(7, 33)
    first, second = knl(a=a, b=b), knl(a=a, b=b)
    assert gpu.resolved == 1
    assert second.shape == (20, 33) and second is not first
    assert [one.values["c"] for one in gpu.launches] == [first.at, second.at]
    mine = tensor(20, 33)
    for _ in range(2):
        assert knl(a=a, b=b, c=mine) is mine
        assert knl(a=a, b=b) is not mine
    assert gpu.resolved == 2
    gpu.resolved = 1
    third = knl(a=a, b=b, stream=5)  # memory for another stream: the full way
    assert gpu.resolved == 2 and gpu.launches[-1].stream == 5 and third.shape == (20, 33)


def test_several_outputs_and_scratch(gpu: Gpu) -> None:
    knl = executor_of(SUMDIFF, gpu)
    a, b, d = tensor(70), tensor(70), tensor(70)
    for _ in range(2):
        result = knl(a=a, b=b, d=d)
        assert result._fields == ("s", "d") and result.d is d
        values = gpu.launches[-1].values
        assert values["s"] == result.s.at and values["t"] not in (a.at, b.at, d.at, values["s"])
    assert gpu.resolved == 1


def test_scalars_vary_without_a_check(gpu: Gpu) -> None:
    knl = executor_of(axpy, gpu)
    x, y = tensor(5), tensor(5)
    for alpha in (1.0, 2.0, 3.0):
        knl(x=x, y=y, alpha=alpha)
    assert gpu.resolved == 1
    assert [one.values["alpha"] for one in gpu.launches] == [1, 2, 3]
    with pytest.raises(InvalidArgumentError, match=r"alpha = 1e\+39 does not fit float32"):
        knl(x=x, y=y, alpha=1e39)
    with pytest.raises(InvalidArgumentError, match="alpha: a number"):
        knl(x=x, y=y, alpha="1")
    knl(x=x, y=y, alpha=4)
    assert gpu.launches[-1].values["alpha"] == 4


def test_sizes_given_by_name_are_compared(gpu: Gpu) -> None:
    knl = executor_of(axpy, gpu)
    x, y = tensor(5), tensor(5)
    knl(x=x, y=y, alpha=1.0, n=5)
    knl(x=x, y=y, alpha=1.0, n=5)
    assert gpu.resolved == 1
    for wrong in (6, True, 5.0):
        with pytest.raises(InvalidArgumentError):
            knl(x=x, y=y, alpha=1.0, n=wrong)


def test_assumptions_on_varying_scalars(gpu: Gpu) -> None:
    k = p.Variable("k")
    source = axpy()
    program = dataclasses.replace(
        source,
        params=(*source.params, dataclasses.replace(source.params[0], name="k")),
        arguments=("x", "y", "alpha", "n", "k"),
        checks=(Check(p.Comparison(k, "<", n), "k < n"),),
    )
    knl = executor_of(program, gpu)
    x, y = tensor(5), tensor(5)
    for i in range(5):
        knl(x=x, y=y, alpha=1.0, k=i)
    assert gpu.resolved == 1 and [one.values["k"] for one in gpu.launches] == list(range(5))
    with pytest.raises(AssumptionError, match="k < n, but k = 5"):
        knl(x=x, y=y, alpha=1.0, k=5)


def test_what_does_not_fit_is_checked_in_full(gpu: Gpu) -> None:
    knl = executor_of(MATMUL, gpu)
    a, b, c = tensor(4, 4), tensor(4, 4), tensor(4, 4)
    knl(a=a, b=b, c=c)
    with pytest.raises(LaunchError, match="c shares memory with a"):
        knl(a=a, b=b, c=a)
    both = np.zeros((7, 4), np.float32)
    with pytest.raises(LaunchError, match="c shares memory with b"):
        knl(a=a, b=Tensor(both[:4]), c=Tensor(both[3:]))
    with pytest.raises(InvalidArgumentError, match="is missing"):
        knl(a=a, c=c)
    with pytest.raises(InvalidArgumentError, match="in host memory"):
        knl(a=a, b=b.data, c=c)
    with pytest.raises(InvalidArgumentError, match="dtype"):
        knl(a=a, b=Tensor(np.zeros((4, 4))), c=c)
    with pytest.raises(InvalidArgumentError, match="7 were given"):
        knl(a, b, c, 4, 4, 4, 4)
    with pytest.raises(Exception, match="no argument 'x'"):
        knl(a=a, b=b, c=c, x=1)
    assert len(gpu.launches) == 1
    knl(a=a, b=b, c=c)
    assert len(gpu.launches) == 2


def test_interleaved_memory_stays_allowed(gpu: Gpu) -> None:
    knl = executor_of(axpy, gpu)
    both = np.zeros(20, np.float32)
    for _ in range(2):
        knl(x=Tensor(both[::2]), y=Tensor(both[1::2]), alpha=1.0)
    assert gpu.resolved == 1
    with pytest.raises(LaunchError, match="shares memory"):
        knl(x=Tensor(both[::2]), y=Tensor(both[::2]), alpha=1.0)


def test_strided_variant(gpu: Gpu) -> None:
    knl = executor_of(axpy, gpu)
    x, y = Tensor(np.zeros(20, np.float32)[::2]), tensor(10)
    for _ in range(2):
        knl(x=x, y=y, alpha=1.0)
    knl(x=tensor(10), y=y, alpha=1.0)
    assert gpu.resolved == 2
    assert [one.values.get("x_s0") for one in gpu.launches] == [2, 2, None]


def test_streams(gpu: Gpu) -> None:
    knl = executor_of(axpy, gpu)
    x, y = tensor(5), tensor(5)
    protocol = SimpleNamespace(__cuda_stream__=lambda: (0, 9))
    for stream in (7, SimpleNamespace(cuda_stream=8), protocol, SimpleNamespace(ptr=10)):
        knl(x=x, y=y, alpha=1.0, stream=stream)
    assert [one.stream for one in gpu.launches] == [7, 8, 9, 10]
    with pytest.raises(LaunchError, match="an object of type str is no CUDA stream"):
        knl(x=x, y=y, alpha=1.0, stream="default")


def test_failed_launch_then_the_next_works(gpu: Gpu) -> None:
    knl = executor_of(axpy, gpu)
    x, y = tensor(5), tensor(5)
    knl(x=x, y=y, alpha=1.0)
    gpu.status = 701
    with pytest.raises(LaunchError, match="failed: CUDA error 701"):
        knl(x=x, y=y, alpha=1.0)
    gpu.status = 0
    assert knl(x=x, y=y, alpha=1.0) is y


def test_empty_grid_launches_nothing(gpu: Gpu) -> None:
    knl = executor_of(SUMDIFF, gpu)
    assert knl(a=tensor(0), b=tensor(0)).s.shape == (0,)
    assert not gpu.launches
    assert knl.bind(a=tensor(0), b=tensor(0))().s.shape == (0,)
    assert not gpu.launches


def test_bind(gpu: Gpu) -> None:
    knl = executor_of(axpy, gpu)
    x, y = tensor(5), tensor(5)
    bound = knl.bind(x=x, y=y, alpha=2.0)
    assert not gpu.launches
    assert bound() is y
    gpu.kind.stream = 3
    assert bound() is y and bound(stream=4) is y
    assert [one.stream for one in gpu.launches] == [0, 3, 4]
    assert all(one.values == gpu.launches[0].values for one in gpu.launches)
    gpu.status = 201  # no context in this thread: once more, with one
    with pytest.raises(LaunchError, match="201"):
        bound()
    assert gpu.pushed == 2


def test_names_that_are_words_of_python(gpu: Gpu) -> None:
    source = axpy()
    params = tuple(
        dataclasses.replace(q, name="lambda") if q.name == "alpha" else q for q in source.params
    )
    program = dataclasses.replace(source, params=params, arguments=("x", "y", "lambda", "n"))
    knl = executor_of(program, gpu)
    x, y = tensor(5), tensor(5)
    for value in (1.0, 2.0):
        knl(x=x, y=y, **{"lambda": value})
    assert [one.values["lambda"] for one in gpu.launches] == [1, 2]


def test_threads(gpu: Gpu) -> None:
    knl = executor_of(axpy, gpu)
    sets = [(tensor(5), tensor(5), float(i)) for i in range(8)]
    knl(x=sets[0][0], y=sets[0][1], alpha=0.0)

    def work(x: Any, y: Any, alpha: float) -> None:
        for _ in range(300):
            knl(x=x, y=y, alpha=alpha)

    threads = [threading.Thread(target=work, args=one) for one in sets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    by_alpha = {alpha: (x.at, y.at) for x, y, alpha in sets}
    assert len(gpu.launches) == 1 + 8 * 300
    for one in gpu.launches:
        assert (one.values["x"], one.values["y"]) == by_alpha[one.values["alpha"]]


def test_text_can_be_read(gpu: Gpu) -> None:
    knl = executor_of(MATMUL, gpu)
    knl(a=tensor(4, 4), b=tensor(4, 4), c=tensor(4, 4))
    text = inspect.getsource(knl.call)
    assert text.startswith("def matmul(a=None, b=None, c=None, n=None, m=None, l=None, *_more")
    assert "a.shape == _a_shape" in text and "n is m is l is None" in text


def test_arrays_of_numba_may_have_strides_of_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their array interface says of rows that are one row that they follow each other."""
    interface = {"shape": (3, 4), "strides": None, "data": (4096, False), "typestr": "<f4"}
    interface |= {"version": 3, "stream": None}
    array = SimpleNamespace(strides=(0, 4), __cuda_array_interface__=interface)
    monkeypatch.setattr(driver, "pointer_device", lambda pointer: 1)
    found = kinds.NumbaKind().describe(array)
    assert (found.strides, found.pointer, found.stream) == ((0, 1), 4096, None)
    assert found.location == Location("cuda", 1) and found.object is array


def test_no_arrays_but_sizes_only(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(copies, "run", lambda resolved, *_: seen.append(resolved.values))
    program = Program(
        "iota",
        "",
        (
            MATMUL.params[0],
            dataclasses.replace(MATMUL.params[5], name="o", shape=(n,), strides=(1,)),
        ),
        grid=(n, 1, 1),
        block=(1, 1, 1),
        arguments=("o", "n"),
    )
    executor_of(program, gpu)(n=5)
    assert seen == [{"n": 5}]
    assert str(m) == "m"


def swept_arrays(n: int) -> dict[str, Any]:
    return {"u": tensor(n), "v": tensor(n), "steps": 2}


def test_calls_of_several_launches_are_specialised(gpu: Gpu) -> None:
    """Loops around launches are rolled out for the sizes of a call, on one stream."""
    knl = executor_of(swept().program(), gpu)
    first = swept_arrays(100)
    knl(**first)
    assert gpu.resolved == 1
    once = [(one.program.name, one.grid, one.values) for one in gpu.launches]
    assert [name for name, _, _ in once] == ["jacobi", "jacobi_2"] * 2
    gpu.kind.stream = 9
    other = swept_arrays(100)
    knl(**other)
    assert gpu.resolved == 1 and len(gpu.launches) == 8
    again = gpu.launches[4:]
    assert [(one.program.name, one.grid) for one in again] == [pair[:2] for pair in once]
    assert {one.stream for one in again} == {9}
    assert all(one.values["u"] == other["u"].at for one in again)
    knl(**swept_arrays(100) | {"steps": 3})
    assert gpu.resolved == 2 and len(gpu.launches) == 14


def test_what_launches_hand_over_is_allocated_in_each_call(gpu: Gpu) -> None:
    knl = executor_of(summed().program(), gpu)
    x = tensor(256 * 9)
    for _ in range(3):
        knl(x=x)
    assert gpu.resolved == 1 and len(gpu.launches) == 6
    for part, whole in zip(gpu.launches[::2], gpu.launches[1::2], strict=True):
        assert part.values["p"] == whole.values["p"] and part.grid == (3, 1, 1)


def test_the_iname_of_a_loop_around_launches_is_an_argument(gpu: Gpu) -> None:
    knl = executor_of(eliminated().program(), gpu)
    for _ in range(2):
        knl(a=tensor(5, 5))
    assert gpu.resolved == 1
    assert [one.values["k"] for one in gpu.launches] == [0, 1, 2, 3] * 2


def test_a_launch_that_fails_behind_others_is_no_reason_to_begin_again(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = swept_arrays(100)
    fails_at = 0

    def failing(*args: Any) -> int:
        status = gpu.launch(*args)
        return 719 if len(gpu.launches) == fails_at else status

    monkeypatch.setattr(launch, "launch_function", lambda: failing)
    knl = executor_of(swept().program(), gpu)
    knl(**arrays)  # writes the function
    fails_at = len(gpu.launches) + 2
    with pytest.raises(LaunchError, match="failed: CUDA error 719"):
        knl(**arrays)
    assert len(gpu.launches) == fails_at


def test_many_launches_are_checked_each_time(gpu: Gpu) -> None:
    knl = executor_of(swept().program(), gpu)
    for _ in range(2):
        knl(**swept_arrays(40) | {"steps": fast.LAUNCHES})
    assert gpu.resolved == 2 and len(gpu.launches) == 4 * fast.LAUNCHES


def test_several_launches_bound(gpu: Gpu) -> None:
    knl = executor_of(swept().program(), gpu)
    monkey = knl.bind(**swept_arrays(100))
    assert not gpu.launches
    monkey()
    monkey(stream=4)
    assert [one.stream for one in gpu.launches] == [0] * 4 + [4] * 4
    assert knl.bind(**swept_arrays(100) | {"steps": 0})() is not None
    assert len(gpu.launches) == 8


def test_what_must_hold_zeros_is_cleared_before_each_launch(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a checked call, by a specialised one, and by one that was bound; on the same stream."""
    cleared: list[tuple[int, int, int, int]] = []

    def clear(pointer: int, value: int, size: int, stream: int) -> int:
        cleared.append((pointer, size, stream, len(gpu.launches)))
        assert value == 0
        return 0

    def call(name: str, *arguments: int, doing: str = "") -> None:
        assert name == "cuMemsetD8Async" and doing
        clear(*arguments)

    monkeypatch.setattr(driver, "call", call)
    monkeypatch.setattr(launch, "clear_function", lambda: clear)
    knl = executor_of(looked_back().program(), gpu)
    x = tensor(100)
    knl(x=x)
    knl(x=x)
    assert gpu.resolved == 1
    gpu.kind.stream = 7
    bound = knl.bind(x=x, y=tensor(100))
    bound()
    bound()
    assert [one[3] for one in cleared] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [one[1] for one in cleared] == [4, 4 * 8] * 4
    assert [one[2] for one in cleared] == [0] * 4 + [7] * 4
    for one, (tickets, flags) in zip(
        gpu.launches, zip(cleared[::2], cleared[1::2], strict=True), strict=True
    ):
        assert (one.values["tickets"], one.values["acc_tiles"]) == (tickets[0], flags[0])
        assert len({one.values[name] for name in ("tickets", "acc_tiles", "y")}) == 3
