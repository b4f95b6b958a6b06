"""A program on a device: the check of its resources, compilation, and loading."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from loopkit._cached import cached_property
from loopkit._errors import LaunchError, ResourceError
from loopkit._frozen import dataclass
from loopkit._program import ArrayParam, Program, check_resources
from loopkit._run import driver
from loopkit._run.nvrtc import CompiledProgram, compile_program
from loopkit._run.scalars import struct_code
from loopkit._target import CUDA

# The most that a thread reads or writes at once, in bytes.
_WIDEST_ACCESS = 16


@dataclass(frozen=True)
class Packing:
    """How arguments lie in memory: a ``struct`` format, and the offset of each."""

    format: str
    offsets: tuple[int, ...]
    size: int


def packing(program: Program) -> Packing:
    """The layout of the program's arguments; each stands at a multiple of its size."""
    codes, offsets, at = [], [], 0
    for param in program.params:
        code, size = "Q", 8
        if not isinstance(param, ArrayParam):
            code, size = struct_code(param.dtype), param.dtype.itemsize
        skip = -at % min(16, size)
        codes.append(f"{skip}x{code}" if skip else code)
        offsets.append(at + skip)
        at += skip + size
    return Packing("".join(codes), tuple(offsets), at)


@dataclass(frozen=True)
class LoadedProgram:
    """A program whose binary is loaded on one device."""

    program: Program
    compiled: CompiledProgram
    device: driver.Device
    function: int
    parts: Mapping[str, LoadedProgram] = field(default_factory=dict)
    """The functions of a program of several launches, by name; it has none of its own."""

    @cached_property
    def packing(self) -> Packing:
        """How the arguments lie in memory."""
        return packing(self.program)

    @cached_property
    def dynamic_shared(self) -> int:
        """Bytes of shared memory that a launch asks for: a block's end at a whole 16 bytes.

        The compiler reads neighbours at once: of ``int a[5]`` the last one in 8 bytes, half
        of which it drops.  They are the block's own then, and memcheck has nothing to say.
        """
        declared = self.compiled.resources.shared
        return self.program.dynamic_shared + -declared % _WIDEST_ACCESS


def load(program: Program, device: driver.Device) -> LoadedProgram:
    """Compile ``program`` for ``device`` and load it there; the device must be current."""
    for part in program.parts:
        check_resources(part, device.target, repr(device))
    compiled = compile_program(program, device.arch)
    for one in compiled.parts:
        _check_registers(one, device)
    doing = f"loading {program.name} on {device!r}"
    module = driver.call("cuModuleLoadData", compiled.cubin, doing=doing)
    if not program.launches:
        return _function(compiled, module, device)
    parts = {one.program.name: _function(one, module, device) for one in compiled.parts}
    return LoadedProgram(program, compiled, device, 0, parts)


def _check_registers(compiled: CompiledProgram, device: driver.Device) -> None:
    used, most = compiled.resources, device.target.registers
    if used.registers * used.threads > most:
        raise ResourceError(
            f"{compiled.program.name} needs {used.registers} registers for each of "
            f"{used.threads} threads, but a block on {device!r} has {most} in all",
            instead="make the block smaller, or let each thread compute less",
        )


def _function(compiled: CompiledProgram, module: Any, device: driver.Device) -> LoadedProgram:
    """One function of a loaded module, ready to be launched."""
    name = compiled.program.name
    doing = f"loading {name} on {device!r}"
    function = driver.call("cuModuleGetFunction", module, name.encode(), doing=doing)
    loaded = LoadedProgram(compiled.program, compiled, device, int(function))
    shared = loaded.dynamic_shared
    if compiled.resources.static_shared + shared > CUDA.static_shared:
        doing = f"asking for {shared} bytes of shared memory for {name}"
        most = driver.api().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.call("cuFuncSetAttribute", function, most, shared, doing=doing)
    return loaded


class Modules:
    """The loaded variants of one kernel: by which arrays are strided, and by device."""

    def __init__(self, program_for: Callable[[frozenset[str]], Program]) -> None:
        #: Gives the variant for arrays of which those named have strides of their own.
        self.program = program_for
        self._loaded: dict[tuple[frozenset[str], int], LoadedProgram] = {}
        self._lock = threading.Lock()

    def on(self, strided: frozenset[str], device: driver.Device) -> LoadedProgram:
        """The variant, loaded on ``device``, which must be current."""
        program = self.program(strided)
        with self._lock:
            found = self._loaded.get((strided, device.index))
            if found is None:
                found = self._loaded[strided, device.index] = load(program, device)
            return found


def stream_handle(stream: Any) -> int:
    """The driver's handle of a stream, given as a number or as some library's object."""
    is_number = isinstance(stream, (int, np.integer))
    try:
        handle = stream if is_number else _handle_of(stream)
    except Exception:  # whatever an object does that is no stream
        handle = None
    if handle is None or isinstance(stream, bool) or not 0 <= handle < 1 << 64:
        shown = str(stream) if is_number else f"an object of type {type(stream).__name__}"
        raise LaunchError(
            f"stream: {shown} is no CUDA stream",
            instead="pass a stream of PyTorch, CuPy, Numba or cuda.core, or its handle as an "
            "integer",
        )
    return int(handle)


def take_stream(names: Collection[str], kwargs: dict[str, Any]) -> int | None:
    """The handle of a call's ``stream=``, taken out of it; not where that is one of ``names``."""
    stream = None if "stream" in names else kwargs.pop("stream", None)
    return None if stream is None else stream_handle(stream)


def _handle_of(stream: Any) -> int | None:
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        _, handle = protocol() if callable(protocol) else protocol
        return int(handle)
    for name in ("cuda_stream", "ptr", "handle"):  # PyTorch, CuPy, Numba
        handle = getattr(stream, name, None)
        if handle is not None:
            return int(getattr(handle, "value", handle) or 0)
    return None
