"""The interface between Python and the C++ runtime: arguments, and records of errors."""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from loopkit._errors import LaunchError
from loopkit._frozen import dataclass
from loopkit._program import ArrayParam, Program, ValueParam
from loopkit._target import CUDA

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Bound:
    """Arguments that fit their parameters: 0-d arrays for values, arrays for pointers.

    ``copies`` are arrays that had to be moved to meet an alignment, each with the
    caller's array that gets the results.
    """

    values: list[Array]
    params: tuple[ValueParam | ArrayParam, ...]
    copies: list[tuple[Array, Array]] = field(default_factory=list)

    def pointers(self) -> ctypes.Array[ctypes.c_void_p]:
        """For each parameter where its value lies, as ``lk_entry`` takes them."""
        places = [
            np.array(value.ctypes.data, np.uintp) if isinstance(param, ArrayParam) else value
            for param, value in zip(self.params, self.values, strict=True)
        ]
        result = (ctypes.c_void_p * len(places))(*(place.ctypes.data for place in places))
        result._loopkit_keeps = places  # type: ignore[attr-defined]
        return result

    def finish(self) -> None:
        """Copy results from aligned copies back to the caller's arrays."""
        for moved, original in self.copies:
            original[...] = moved


def bind(program: Program, args: Sequence[Any]) -> Bound:
    """Arguments that fit their parameters, where a kernel can read them."""
    bound = Bound([], program.params)
    for param, arg in zip(program.params, args, strict=True):
        if not isinstance(param, ArrayParam):
            bound.values.append(np.array(arg, dtype=param.dtype))
            continue
        moved = _aligned(program, param, arg)
        bound.values.append(moved)
        if moved is not arg and param.is_written:
            bound.copies.append((moved, arg))
    return bound


def _aligned(program: Program, param: ArrayParam, arg: Array) -> Array:
    """``arg`` itself, or a copy of it that begins at a multiple of what its elements need."""
    needed = arg.dtype.alignment
    if arg.ctypes.data % needed == 0:
        return arg
    if not (arg.flags.c_contiguous or arg.flags.f_contiguous):
        raise LaunchError(
            f"argument '{param.name}' of '{program.name}' must begin at a multiple of "
            f"{needed} bytes, and the view that came does not",
            instead="pass a contiguous array, or a view that begins there",
        )
    return arg.copy(order="K")  # NumPy's own memory begins at a multiple of 16


# The enumerations of abi.h.
_DIVERGENT_BARRIER, _BARRIER_AFTER_RETURN, _WARP_DEADLOCK = 1, 2, 3
_LANE_NOT_IN_MASK, _TRAP, _NO_MEMORY, _FAULT = 4, 5, 6, 7
_READY, _AT_BARRIER, _AT_WARP, _RETURNED = 0, 1, 2, 3

_SIGNALS: dict[int, str] = {
    signal.SIGFPE: "divided an integer by zero",
    signal.SIGSEGV: "accessed memory that is not there",
    signal.SIGBUS: "accessed memory that is not there",
}


class ErrorRecord(ctypes.Structure):
    """``lk_error`` of abi.h."""

    _fields_ = (
        ("failure", ctypes.c_int),
        ("block", ctypes.c_uint * 3),
        ("thread", ctypes.c_int),
        ("line", ctypes.c_int),
        ("signal", ctypes.c_int),
        ("count", ctypes.c_uint),
        ("state", ctypes.c_int * CUDA.block_threads),
        ("at_line", ctypes.c_int * CUDA.block_threads),
        ("mask", ctypes.c_uint * CUDA.block_threads),
    )


def launch_error(program: Program, record: ErrorRecord) -> LaunchError:
    """The exception for an error ``record``."""
    if record.failure == _NO_MEMORY:
        return LaunchError(f"there is no memory for the threads of a block of '{program.name}'")
    asked = f"running '{program.name}', block {tuple(record.block)}"
    thread = "a thread" if record.thread < 0 else f"thread {thread_index(program, record.thread)}"
    line = quote(program, record.line)
    if record.failure == _LANE_NOT_IN_MASK:
        why = (
            f"{thread} calls a warp operation whose mask {record.mask[record.thread]:#010x} "
            f"does not name it (lane {record.thread % CUDA.warp})\n{line}"
        )
        return LaunchError(why, asked=asked, instead="every calling lane must be in the mask")
    if record.failure == _TRAP:
        return LaunchError(f"{thread} executed a trap\n{line}", asked=asked)
    if record.failure == _FAULT:
        what = _SIGNALS.get(record.signal, f"was stopped by signal {record.signal}")
        instead = "run it with sanitize=True: it names the array, the index and the line"
        return LaunchError(f"{thread} {what}", asked=asked, instead=instead)
    why, instead = {
        _DIVERGENT_BARRIER: (
            "threads of one block wait at different barriers",
            "every thread of a block must come to the same barrier: move it out of the branch",
        ),
        _BARRIER_AFTER_RETURN: (
            "some threads of the block wait at a barrier after others have returned",
            "let every thread reach the barrier, and guard the work instead of returning early",
        ),
        _WARP_DEADLOCK: (
            "a warp operation waits for lanes that never come to it",
            "every lane that the mask names must call the same operation with the same mask",
        ),
    }[record.failure]
    return LaunchError(
        "\n".join((f"{why}:", *_who_waits(program, record))), asked=asked, instead=instead
    )


def _who_waits(program: Program, record: ErrorRecord) -> Iterable[str]:
    groups: dict[tuple[int, int, int], list[int]] = {}
    for i in range(record.count):
        state = record.state[i]
        line = record.at_line[i] if state in (_AT_BARRIER, _AT_WARP) else 0
        mask = record.mask[i] if state == _AT_WARP else 0
        groups.setdefault((state, line, mask), []).append(i)
    for (state, line, mask), members in sorted(groups.items()):
        where = {
            _AT_BARRIER: f"at the barrier of\n{quote(program, line)}",
            _AT_WARP: f"at the warp operation (mask {mask:#010x}) of\n{quote(program, line)}",
            _RETURNED: "returned",
        }
        yield f"  {_threads(program, members)} {where.get(state, 'still running')}"


def _threads(program: Program, members: list[int]) -> str:
    ranges: list[list[int]] = []
    for i in members:
        if ranges and ranges[-1][1] == i - 1:
            ranges[-1][1] = i
        else:
            ranges.append([i, i])
    shown = [
        "..".join(str(thread_index(program, end)) for end in sorted({*ends})) for ends in ranges[:4]
    ]
    more = ", ..." if len(ranges) > 4 else ""
    noun = "thread" if len(members) == 1 else f"{len(members)} threads:"
    return f"{noun} {', '.join(shown)}{more}"


def thread_index(program: Program, linear: int) -> tuple[int, int, int]:
    """``threadIdx`` of the thread with linear index ``linear``."""
    x, y, _ = program.block
    return (linear % x, linear // x % y, linear // x // y)


def quote(program: Program, line: int) -> str:
    """Source line ``line`` as a message shows it, with the statement it comes from."""
    lines = program.source.splitlines()
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    origin = ""
    if 0 < line <= len(program.lines):
        entry = program.lines[line - 1]
        parts = [p for p in (entry.statement, entry.step) if p]
        origin = f"   ({', '.join(parts)})" if parts else ""
    return f"    line {line}: {text}{origin}"
