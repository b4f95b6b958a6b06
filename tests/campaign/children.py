"""Work in a process of its own, which may die or never end without harm."""

from __future__ import annotations

import faulthandler
import os
import pickle
import select
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any


class DeadError(Exception):
    """The process ended by itself, or had to be ended."""


def told(work: Callable[[], Iterator[Any]], seconds: float) -> Iterator[Any]:
    """What ``work`` yields in a forked process; raises :class:`DeadError` if that ends early.

    ``seconds`` is how long it may be silent.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        _tell(work, writer)
    os.close(writer)
    ended = False
    try:
        with os.fdopen(reader, "rb") as stream:
            while True:
                item = _next(stream, time.monotonic() + seconds)
                if item is None:
                    ended = True
                    return
                yield item[0]
    finally:
        if not ended:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _tell(work: Callable[[], Iterator[Any]], writer: int) -> None:
    status = 1
    faulthandler.disable()  # faults are what is looked for
    try:
        for item in work():
            data = pickle.dumps((item,))
            _write(writer, len(data).to_bytes(8, "little") + data)
        _write(writer, bytes(8))
        status = 0
    finally:
        os._exit(status)  # nothing of the parent's is closed or printed twice


def _write(writer: int, data: bytes) -> None:
    while data:
        data = data[os.write(writer, data) :]


def _next(stream: Any, end: float) -> tuple[Any] | None:
    head = _read(stream, 8, end)
    size = int.from_bytes(head, "little")
    if not size:
        return None
    found: tuple[Any] = pickle.loads(_read(stream, size, end))
    return found


def _read(stream: Any, count: int, end: float) -> bytes:
    data = b""
    while len(data) < count:
        ready, _, _ = select.select([stream.fileno()], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise DeadError("it did not end in time")
        more = os.read(stream.fileno(), count - len(data))
        if not more:
            raise DeadError("the process died")
        data += more
    return data
