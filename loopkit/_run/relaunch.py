"""Calls go on in another process when this process's CUDA context is lost.

After an illegal access and its like the driver refuses all work to the process, in
old contexts and in new ones, on purpose: its documentation says that the process must
be ended and started anew.  A process that holds arrays in host memory need not end for
that.  It starts another Python, which has a context of its own; the arrays of each call
go there and back through memory that both see.  It is kept, ends with this process, and
when a kernel spoils its context as well, the next call gets a fresh one.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import dataclasses
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from multiprocessing import spawn
from typing import Any, BinaryIO, cast

from loopkit import _once
from loopkit._errors import LaunchError
from loopkit._program import Program
from loopkit._run import driver, exchange
from loopkit._run.buffers import Arena, Buffer

GPU = "loopkit._run.worker:Gpu"
# Not multiprocessing's way, which runs the user's script again in the new process.
_START = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from loopkit._run import worker
worker.main(sys.argv[2])
"""
_ALIGNMENT = 256
_OUT_OF_MEMORY = 2
# How many seconds the process may take to end by itself.
_PATIENCE = 5
# For how many milliseconds an interrupt may go unnoticed.
_TURN = 200

_lock = threading.Lock()
_worker: Worker | None = None


def run(
    program: Program,
    device: driver.Device,
    grid: tuple[int, int, int],
    arguments: Sequence[Any],
) -> None:
    """Carry out one launch with arguments in host memory, in another process."""
    global _worker
    _warn(device)
    with _lock:
        if _worker is None or not _worker.is_usable():
            if _worker is not None:
                _worker.close()
            _worker = Worker(GPU)
        _worker.launch(program, device.index, grid, arguments)


def _after_fork() -> None:
    """A thread that is not in the new process may have held the lock."""
    global _lock, _worker
    _lock, _worker = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _warn(device: driver.Device) -> None:
    _once.warn(
        "context",
        f"this process's CUDA context on {device!r} is lost ({device.lost}). Calls with arrays "
        "in host memory go through another process from now on: the same results at a higher "
        "cost. Arrays on the device are lost with the context; for those, start this process anew.",
    )


class Worker:
    """The other process.

    Parameters
    ----------
    engine:
        ``module:name`` of what makes the callable that carries out the launches there.
    """

    def __init__(self, engine: str) -> None:
        self._owner = os.getpid()
        self._keys: dict[Program, int] = {}
        self._arena = Arena()
        try:
            self._process = _start_python(
                [_START, json.dumps([str(entry) for entry in sys.path]), engine],
                self._arena.inherited,
            )
        except BaseException:
            self._arena.close()
            raise
        self._requests = cast(BinaryIO, self._process.stdin)
        self._answers = cast(BinaryIO, self._process.stdout)
        atexit.register(self.close)
        try:
            self._receive()  # it is ready
        except BaseException as error:
            gone = isinstance(error, EOFError | OSError)
            self.close(gently=gone)
            if not gone:
                raise
            why = f"it {_how_it_ended(self._process)}, and wrote why to the standard error output"
            raise _does_not_start(why) from None

    def is_usable(self) -> bool:
        """Whether it runs, and belongs to this process, not to one that this was forked from."""
        return self._owner == os.getpid() and self._process.poll() is None

    def launch(
        self,
        program: Program,
        device: int,
        grid: tuple[int, int, int],
        arguments: Sequence[Any],
    ) -> None:
        """Copy to shared memory, have it launched, and copy back what it wrote."""
        placed, size = _place(arguments)
        self._arena.reserve(size)
        base = self._arena.address
        for argument, there in zip(arguments, placed, strict=True):
            if isinstance(argument, Buffer) and argument.goes_in:
                ctypes.memmove(base + there.address, argument.address, argument.size)
        key = self._keys.get(program)
        request = exchange.Request(
            len(self._keys) if key is None else key,
            program if key is None else None,
            device,
            grid,
            tuple(placed),
            self._arena.ticket,
        )
        answer = self._ask(request, program.name)
        if answer is not None:
            raise self._failure(answer)
        self._keys.setdefault(program, request.key)  # otherwise it may not have got there
        for argument, there in zip(arguments, placed, strict=True):
            if isinstance(argument, Buffer) and argument.comes_out:
                ctypes.memmove(argument.address, base + there.address, argument.size)
        self._arena.trim()

    def _ask(self, request: exchange.Request, kernel: str) -> exchange.Failure | None:
        try:
            exchange.send(self._requests, request)
            answer: exchange.Failure | None = self._receive()
        except BaseException as error:  # an interrupt as well: the answer would come too late
            gone = isinstance(error, EOFError | OSError)
            self.close(gently=gone)
            if not gone:
                raise
            raise LaunchError(
                f"the process that ran {kernel} for this one {_how_it_ended(self._process)}",
                instead="the next call gets a new one",
            ) from None
        return answer

    def _receive(self) -> Any:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(self._answers, select.POLLIN)
            # In short turns: the signal of an interrupt may have gone to another thread, or
            # some library may have asked that it disturbs nobody who reads.
            while not poll.poll(_TURN):
                pass
        return exchange.receive(self._answers)

    def _failure(self, answer: exchange.Failure) -> Exception:
        error = answer.error()
        if answer.lost:
            self.close()
            error.instead = (
                "it ran in another process, because this one's CUDA context is lost; that "
                f"process ended, and the next call gets a new one; {driver.ADVICE}"
            )
        elif getattr(error, "status", 0) == _OUT_OF_MEMORY:
            holders = " and ".join(driver.gpu_libraries())
            if holders:
                error.instead = (
                    f"the lost context still holds the memory of {holders}; it is free again "
                    "when this process has ended"
                )
        return error

    def close(self, *, gently: bool = True) -> None:
        """End it; nothing happens if that was done before."""
        atexit.unregister(self.close)
        if self._owner != os.getpid():
            return
        process = self._process
        if not gently:
            process.kill()
        with contextlib.suppress(OSError):
            self._requests.close()  # which it takes as the end
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._answers.close()
        self._arena.close()


def _start_python(arguments: list[str], inherited: tuple[int, ...]) -> subprocess.Popen[bytes]:
    python = spawn.get_executable()
    if not python or getattr(sys, "frozen", False):
        raise _does_not_start(
            "it is not known which program is Python here "
            "(multiprocessing.set_executable(...) says it)"
        )
    try:
        return subprocess.Popen(
            [os.fsdecode(python), "-c", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=inherited,
        )
    except OSError as error:
        raise _does_not_start(str(error)) from error


def _does_not_start(why: str) -> LaunchError:
    return LaunchError(
        f"the process that calls need since this one's CUDA context is lost does not start: {why}",
        instead="start this process anew",
    )


def _place(arguments: Sequence[Any]) -> tuple[list[Any], int]:
    """The arguments with offsets for addresses, and how many bytes they take."""
    placed, at = [], 0
    for argument in arguments:
        if isinstance(argument, Buffer):
            argument = dataclasses.replace(argument, address=at)
            if argument.goes_in or argument.comes_out:
                at += -(-argument.size // _ALIGNMENT) * _ALIGNMENT
        placed.append(argument)
    return placed, at


def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    if code is None or code >= 0:
        return f"ended with status {code}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"
