"""The process that runs kernels for one whose CUDA context is lost (`relaunch`).

It reads requests from its standard input until that ends, and the process with it;
answers go to what was its standard output.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import queue
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from loopkit._program import Program
from loopkit._run import copies, driver, exchange
from loopkit._run.buffers import Buffer, View
from loopkit._run.module import LoadedProgram, check_grid, load

#: Carries out one launch: program, device, grid, and arguments in host memory.
Engine = Callable[[Program, int, tuple[int, int, int], Sequence[Any]], None]


class Gpu:
    """The engine that uses a GPU."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[int, int], tuple[Program, LoadedProgram]] = {}

    def __call__(
        self,
        program: Program,
        index: int,
        grid: tuple[int, int, int],
        arguments: Sequence[Any],
    ) -> None:
        device = driver.device(index)
        with device.current():
            key = id(program), index
            if key not in self._loaded:
                self._loaded[key] = program, load(program, device)
            loaded = self._loaded[key][1]
            check_grid(program, grid, device.limits)
            with device.stream() as stream:
                copies.Transfer(loaded, grid, arguments, stream).run()


def main(engine: str) -> None:
    """Serve, with the engine that ``module:name`` makes, until the standard input ends."""
    # The key that interrupts goes to all processes of a terminal; the other one decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = _take_standard_streams()
    module, _, name = engine.partition(":")
    carry_out: Engine = getattr(importlib.import_module(module), name)()
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, inbox), daemon=True).start()
    exchange.send(answers, None)  # ready
    view = View()
    programs: dict[int, Program] = {}
    while True:
        answer = _serve(inbox.get(), carry_out, view, programs)
        exchange.send(answers, answer)
        if answer is not None and answer.lost:
            os._exit(0)


def _take_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Where requests come from and answers go to; what libraries print goes to stderr."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no stderr either
        os.dup2(nothing, 1)
    os.close(nothing)
    return requests, answers


def _read(requests: BinaryIO, inbox: queue.SimpleQueue[Any]) -> None:
    """Read requests in a thread of its own: a kernel must not outlive who asked for it."""
    while True:
        try:
            inbox.put(exchange.receive(requests))
        except (EOFError, OSError):
            os._exit(0)
        except Exception as error:  # something in it cannot be imported here
            inbox.put(error)


def _serve(
    request: Any, carry_out: Engine, view: View, programs: dict[int, Program]
) -> exchange.Failure | None:
    try:
        if isinstance(request, Exception):
            raise request
        if request.program is not None:
            programs[request.key] = request.program
        base = view.open(request.arena)
        arguments = [
            dataclasses.replace(a, address=base + a.address) if isinstance(a, Buffer) else a
            for a in request.arguments
        ]
        carry_out(programs[request.key], request.device, request.grid, arguments)
    except Exception as error:
        return exchange.Failure.of(error)
    return None
