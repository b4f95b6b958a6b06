"""What stands in for the GPU in the process that runs kernels for another one.

It runs programs on the CPU.  Some names make it fail as a GPU or a process can.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from loopkit._errors import CompileError, ResourceError
from loopkit._host import compile_host
from loopkit._program import ArrayParam, Program
from loopkit._run.buffers import Buffer
from loopkit._run.driver import DriverError


def _spoil(arguments: Sequence[Any]) -> None:
    for argument in arguments:
        if isinstance(argument, Buffer) and argument.address:
            ctypes.memset(argument.address, 0xEE, argument.size)


class OnCpu:
    """The engine."""

    def __init__(self) -> None:
        self._modules: dict[Program, Any] = {}

    def __call__(
        self, program: Program, device: int, grid: tuple[int, int, int], arguments: Sequence[Any]
    ) -> None:
        if program.name == "illegal":
            _spoil(arguments)
            raise DriverError(f"illegal on cuda:{device} failed: an illegal access", 700)
        if program.name == "memory":
            raise DriverError("allocating 8 bytes on the device failed", 2)
        if program.name == "killed":
            _spoil(arguments)
            os.kill(os.getpid(), signal.SIGKILL)
        if program.name == "left":
            os._exit(3)
        if program.name == "slow":
            time.sleep(60)
        if program.name == "hungry":
            raise ResourceError("too much shared memory", instead="make the tiles smaller")
        if program.name == "wrong":
            raise CompileError("rejected", source="a source", log="a log")
        if program.name == "bug":
            raise ZeroDivisionError("a mistake")
        print("printed while it runs")
        if program not in self._modules:
            self._modules[program] = compile_host(program)
        self._modules[program].launch(
            [
                _array(p, a) if isinstance(p, ArrayParam) else a
                for p, a in zip(program.params, arguments, strict=True)
            ],
            grid,
        )


def _array(param: ArrayParam, buffer: Buffer) -> np.ndarray[Any, Any]:
    if not buffer.goes_in and not buffer.comes_out:
        return np.empty(buffer.size // param.dtype.itemsize, param.dtype)
    memory = (ctypes.c_char * buffer.size).from_address(buffer.address)
    return np.frombuffer(memory, param.dtype)


def cannot_start() -> None:
    """An engine that fails before the first request."""
    raise ImportError("something is not installed there")
