"""What this process and the one that runs kernels for it say to each other.

Messages are pickles with their length before them: one that cannot be read does not
spoil those that follow.
"""

from __future__ import annotations

import pickle
import traceback
from dataclasses import dataclass
from typing import Any, BinaryIO

from loopkit._errors import LaunchError, LoopkitError
from loopkit._program import Program
from loopkit._run import driver
from loopkit._run.buffers import Ticket


@dataclass(frozen=True)
class Request:
    """One launch.

    ``key`` stands for the program, which comes along with the first request of that
    key.  Addresses of `Buffer` objects among ``arguments`` count from the beginning of
    ``arena``.
    """

    key: int
    program: Program | None
    device: int
    grid: tuple[int, int, int]
    arguments: tuple[Any, ...]
    arena: Ticket


@dataclass(frozen=True)
class Failure:
    """A launch that failed, and whether the process that says so is of no more use."""

    kind: type[LoopkitError]
    state: dict[str, Any]
    lost: bool

    @staticmethod
    def of(error: Exception) -> Failure:
        """``error``, ready to be sent."""
        if not isinstance(error, LoopkitError):
            where = "".join(traceback.format_exception(error))
            error = LaunchError(f"the process that runs kernels for this one failed: {error!r}")
            error.add_note(f"There:\n{where}")
        status = getattr(error, "status", 0)
        return Failure(type(error), dict(vars(error)), status in driver.STICKY)

    def error(self) -> LoopkitError:
        """The error as it was."""
        # Each class has an `__init__` of its own; what that made of its arguments is here.
        made = self.kind.__new__(self.kind, self.state["why"])
        vars(made).update(self.state)
        return made


def send(file: BinaryIO, message: Any) -> None:
    """Write ``message``; nothing is written if it cannot be pickled."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    file.write(len(data).to_bytes(8, "little") + data)
    file.flush()


def receive(file: BinaryIO) -> Any:
    """Read a message; `EOFError` when the other side is gone."""
    size = int.from_bytes(_exactly(file, 8), "little")
    return pickle.loads(_exactly(file, size))


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data
