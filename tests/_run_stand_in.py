"""A CPU that stands in for the GPU: what the driver is asked for happens in host memory."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from _run_programs import loaded
from seams import (
    CUDA,
    ArrayParam,
    DriverError,
    Layout,
    LoadedProgram,
    Program,
    compile_host,
    copies,
    driver,
)
from seams import run_launch as launch


class Cpu:
    """The driver of a device that is none.

    Parameters
    ----------
    fails:
        The call that fails first, or ``"launch"``; after an error that spoils the context all
        others do.
    status:
        The number of its error.
    """

    def __init__(self, fails: str = "", status: int = 700) -> None:
        self.calls: list[str] = []
        self.fails = fails
        self.status = status
        self._memory: dict[int, Any] = {}
        self._lock = threading.Lock()

    def install(self, monkeypatch: pytest.MonkeyPatch) -> driver.Device:
        """Have it used instead of a GPU; returns the device."""
        device = object.__new__(driver.Device)
        vars(device).update(
            index=0,
            name="Test GPU",
            lost="",
            target=CUDA,
            context=1,
            _streams=[],
        )
        flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
        limits = SimpleNamespace(CU_LIMIT_STACK_SIZE=0)
        api = SimpleNamespace(CUstream_flags=flags, CUlimit=limits)

        def on(modules: Any, strided: frozenset[str], device: Any) -> LoadedProgram:
            return loaded(modules.program(strided), device, 1)

        monkeypatch.setattr(driver, "device", lambda index: device)
        monkeypatch.setattr(driver, "_devices", {0: device})
        monkeypatch.setattr(driver, "current_device", lambda: 0)
        monkeypatch.setattr(driver, "call", self.call)
        monkeypatch.setattr(driver, "api", lambda: api)
        monkeypatch.setattr(driver, "describe_status", lambda status: f"CUDA error {status}")
        monkeypatch.setattr(launch, "launcher", self.launcher)
        monkeypatch.setattr(copies.Modules, "on", on)
        return device

    def call(self, name: str, *args: Any, doing: str = "") -> Any:
        """One call of the driver."""
        failed = self.fails in self.calls and self.status in driver.STICKY
        self.calls.append(name)
        if name == self.fails or failed:
            raise DriverError(f"{doing or name} failed: CUDA error {self.status}", self.status)
        with self._lock:
            return getattr(self, name, lambda *args: 1)(*args)

    def cuMemAllocAsync(self, size: int, stream: int) -> int:
        """Memory filled with what nobody wants."""
        memory = (ctypes.c_char * size)(*(b"\xee" * size))
        self._memory[ctypes.addressof(memory)] = memory
        return ctypes.addressof(memory)

    def cuMemFreeAsync(self, pointer: int, stream: int) -> None:
        """Give it back."""
        del self._memory[pointer]

    def cuMemsetD8Async(self, pointer: int, value: int, size: int, stream: int) -> None:
        """Fill memory."""
        ctypes.memset(pointer, value, size)

    def cuMemcpyHtoDAsync(self, to: int, source: int, size: int, stream: int) -> None:
        """Copy in."""
        ctypes.memmove(to, source, size)

    cuMemcpyDtoHAsync = cuMemcpyHtoDAsync

    def launcher(self, *call: Any) -> Callable[[], None]:
        """A launch with everything laid out beforehand."""
        return partial(self.launch, *call)

    def launch(
        self,
        there: LoadedProgram,
        grid: tuple[int, int, int],
        stream: int,
        arguments: Sequence[Any],
        layouts: Mapping[str, Layout],
    ) -> None:
        """What a launch does, on the CPU."""
        for pointer, size in launch.cleared(there, arguments, layouts):
            self.call("cuMemsetD8Async", pointer, 0, size, stream)
        self.calls.append("launch")
        launch.check(self.status if self.fails == "launch" else 0, there)
        program = there.program
        compile_host(program).launch(
            [
                self._array(p, a) if isinstance(p, ArrayParam) else a
                for p, a in zip(program.params, arguments, strict=True)
            ],
            grid,
        )

    def _array(self, param: ArrayParam, pointer: int) -> np.ndarray[Any, Any]:
        low = max(at for at in [*self._memory] if at <= pointer)
        memory, start = self._memory[low], pointer - low
        count = (len(memory) - start) // param.dtype.itemsize
        return np.frombuffer(memory, param.dtype, count, start)

    @property
    def is_empty(self) -> bool:
        """Whether all memory was given back."""
        return not self._memory


def uses(program: Program) -> Any:
    """What an executor takes for a program that has no variants."""
    return lambda strided: program
