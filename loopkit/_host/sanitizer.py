"""Launches in a separate process under the compiler's sanitizers."""

from __future__ import annotations

import ctypes
import os
import re
import struct
import subprocess
from pathlib import Path

import numpy as np
from numpy.lib.array_utils import byte_bounds

from loopkit import _cache
from loopkit._errors import LaunchError, LoopkitError, OutOfBoundsError, Witness
from loopkit._frozen import dataclass
from loopkit._host.abi import Array, Bound, ErrorRecord, launch_error, quote
from loopkit._host.compiler import Binary, need_compiler
from loopkit._program import ArrayParam, Program

_MAGIC = 0x31424F4A4B4C
_FAILED_LAUNCH = 3
_GUARD_SIZE = 4096  # lk_guard_size of abi.h

_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:verify_asan_link_order=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}

_ARRAY = re.compile(r"^loopkit array (\d+) (\d+) (\d+)$", re.MULTILINE)
_GUARD = re.compile(r"^loopkit guard (\d+)$", re.MULTILINE)
_THREAD = re.compile(r"^loopkit thread (\d+) (\d+) (\d+) block (\d+) (\d+) (\d+)$", re.MULTILINE)
_ACCESS = re.compile(r"^(READ|WRITE) of size (\d+) at (0x[0-9a-f]+)", re.MULTILINE)
_SEGV = re.compile(r"SEGV on unknown address (0x[0-9a-f]+)")
_SEGV_WRITES = re.compile(r"caused by a (READ|WRITE) memory access")
_UNDEFINED = re.compile(r"^[^\n]*?\.cu:(\d+):\d+: runtime error: (.*)$", re.MULTILINE)
_OUTSIDE = re.compile(r"out of bounds|insufficient space|null pointer")


@dataclass
class _Placed:
    """The value of a parameter, and where the bytes that it spans lie in the job file."""

    array: Array
    low: int
    size: int
    offset: int

    @property
    def shift(self) -> int:
        """From the first of the bytes to the first element: strides may be negative."""
        return int(self.array.ctypes.data) - self.low

    def contents(self) -> Array:
        """All bytes that the array spans, gaps between its elements included."""
        return np.ctypeslib.as_array((ctypes.c_uint8 * self.size).from_address(self.low))

    def copy_back(self, data: Array) -> None:
        """Give the array the values that the job file holds now."""
        array, start = self.array, self.offset + self.shift
        if self.size:
            array[...] = np.ndarray(array.shape, array.dtype, data.data, start, array.strides)


def run(program: Program, kernel: Binary, bound: Bound, launched: tuple[int, ...]) -> None:
    """Launch ``kernel`` under the sanitizers and copy its results back.

    ``launched`` are the order of threads, the seed of the random one, and the grid.
    """
    driver = need_compiler().driver().file()
    with _cache.working() as folder:
        job = folder / "job"
        placed, error_offset = _write_job(job, program, bound, launched)
        try:
            done = subprocess.run(
                [str(driver), str(kernel.file()), str(job)],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                env={**os.environ, **_OPTIONS},
            )
        except OSError as error:
            why = f"the process that runs '{program.name}' under the sanitizers does not start"
            raise LaunchError(f"{why}: {error}") from error
        data = np.fromfile(job, dtype=np.uint8)
    if done.returncode == _FAILED_LAUNCH:
        raise launch_error(program, ErrorRecord.from_buffer_copy(data.tobytes(), error_offset))
    if done.returncode != 0:
        raise _read_report(program, placed, done.stderr, done.returncode)
    for place, param in zip(placed, program.params, strict=True):
        if isinstance(param, ArrayParam) and param.is_written:
            place.copy_back(data)
    bound.finish()


def _write_job(
    path: Path, program: Program, bound: Bound, launched: tuple[int, ...]
) -> tuple[list[_Placed], int]:
    placed = []
    end = _aligned(8 * (11 + 5 * len(program.params)))
    for value in bound.values:
        low, high = byte_bounds(value) if value.size else (value.ctypes.data,) * 2
        placed.append(_Placed(value, low, high - low, end))
        end = _aligned(end + high - low)
    head = (_MAGIC, *launched, *program.block, end, len(placed))
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{len(head)}Q", *head))
        for param, place in zip(program.params, placed, strict=True):
            numbers = (place.size, place.offset, place.shift, place.low % 16)
            file.write(struct.pack("<5Q", isinstance(param, ArrayParam), *numbers))
        for place in placed:
            file.seek(place.offset)
            place.contents().tofile(file)
        file.truncate(end + len(bytes(ErrorRecord())))
    return placed, end


def _aligned(offset: int) -> int:
    return (offset + 63) // 64 * 64


def _read_report(program: Program, placed: list[_Placed], report: str, status: int) -> LoopkitError:
    asked = f"running '{program.name}' under the sanitizers"
    where = _THREAD.search(report)
    if where is not None:
        numbers = tuple(map(int, where.groups()))
        asked += f", block {numbers[3:]}, thread {numbers[:3]}"
    undefined = _UNDEFINED.search(report)
    if undefined is not None:
        line, what = int(undefined[1]), undefined[2]
        why = f"{what}\n{quote(program, line)}"
        if _OUTSIDE.search(what):
            witness = Witness(kind="out of bounds")
            return OutOfBoundsError(why, witness=witness, asked=asked)
        return LaunchError(why, asked=asked)
    frame = re.search(rf"{re.escape(program.name)}\.cu:(\d+)", report)
    source = f"\n{quote(program, int(frame[1]))}" if frame else ""
    access, segv = _ACCESS.search(report), _SEGV.search(report)
    if access is not None:
        verb, size, address = access[1], int(access[2]), int(access[3], 16)
    elif segv is not None:
        writes = _SEGV_WRITES.search(report)
        verb, size, address = writes[1] if writes else "access", 0, int(segv[1], 16)
    else:
        tail = "\n".join(report.strip().splitlines()[-20:])
        return LaunchError(
            f"the process that ran it ended with status {status}{source}\n{tail}", asked=asked
        )
    name, text = _locate(program, placed, report, address)
    many = f" of {size} bytes" if size else ""
    why = f"{verb.lower()}{many} {text}{source}"
    return OutOfBoundsError(why, witness=Witness(kind="out of bounds", array=name), asked=asked)


def _locate(
    program: Program, placed: list[_Placed], report: str, address: int
) -> tuple[str | None, str]:
    """The array that ``address`` is nearest to, and where from it that is."""
    guard = _GUARD.search(report)
    if guard is not None and 0 <= address - int(guard[1]) < _GUARD_SIZE:
        offset = program.dynamic_shared + address - int(guard[1])
        return None, (
            f"outside dynamic shared memory: byte offset {offset}, "
            f"and a block has {program.dynamic_shared} bytes of it"
        )
    near = []
    for match in _ARRAY.finditer(report):
        index, begin, size = map(int, match.groups())
        near.append((max(begin - address, address - (begin + size) + 1, 0), index, begin, size))
    # Arrays are gigabytes apart: an address further away belongs to none of them.
    if not near or min(near)[0] > 1 << 33:
        return None, f"at address {address:#x}, outside every array and every shared array"
    _, index, begin, size = min(near)
    name, value = program.params[index].name, placed[index].array
    element, rest = divmod(address - begin - placed[index].shift, value.dtype.itemsize)
    inside = f" (byte {rest} of it)" if rest else ""
    shape = "x".join(map(str, value.shape)) or "1"
    return name, (
        f"outside array '{name}': element offset {element}{inside}, and the array of {shape} "
        f"{value.dtype} elements spans {size // value.dtype.itemsize}"
    )
