"""Compilation with NVRTC, and the resources of a binary; needs neither a GPU nor a driver."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

from loopkit import _cache
from loopkit._cached import cached_property
from loopkit._called import warn_once
from loopkit._errors import CompileError, MissingDependencyError
from loopkit._frozen import dataclass
from loopkit._printed import Printed
from loopkit._program import Program


@dataclass(frozen=True)
class Resources(Printed):
    """Registers a thread; shared memory a block; stack and spills a thread; all in bytes.

    ``shared`` is static and dynamic shared memory together.  Spill bytes are stores
    and loads of registers that did not fit, as they stand in the code.
    """

    arch: str
    registers: int
    static_shared: int
    dynamic_shared: int
    stack: int
    spill_stores: int
    spill_loads: int
    threads: int

    @property
    def shared(self) -> int:
        """Shared memory that a block takes."""
        return self.static_shared + self.dynamic_shared

    def __str__(self) -> str:
        spills = "no spills"
        if self.spill_stores or self.spill_loads:
            spills = f"{self.spill_stores} bytes spilled, {self.spill_loads} reloaded"
        shared = f"{self.shared} bytes of shared memory"
        if self.dynamic_shared:
            shared += f" ({self.dynamic_shared} of them dynamic)"
        parts = [f"{self.registers} registers a thread", f"{shared} a block", spills]
        if self.stack:
            parts.insert(2, f"{self.stack} bytes of stack a thread")
        return f"{self.arch}: {self.threads} threads a block, {', '.join(parts)}"


_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")


def from_log(log: str, program: Program, arch: str) -> Resources:
    """Read the report of ``--ptxas-options=-v`` about the program's own function."""
    entry = r"ptxas info\s*: Compiling entry function"
    reports = re.findall(rf"{entry} '{re.escape(program.name)}'.*?(?={entry}|\Z)", log, re.DOTALL)
    report = reports[-1] if reports else ""
    used = _REGISTERS.search(report)
    if used is None:
        raise CompileError(
            f"the compiler did not report what {program.name} uses",
            source=program.source,
            log=log,
        )
    # The frame of a called function is reported first, if any; the entry's own comes last.
    frames = _FRAME.findall(report)
    stack, stores, loads = map(int, frames[-1]) if frames else (0, 0, 0)
    shared = _SHARED.search(report)
    return Resources(
        arch=arch,
        registers=int(used[1]),
        static_shared=sum(int(n) for n in shared.groups() if n) if shared else 0,
        dynamic_shared=program.dynamic_shared,
        stack=stack,
        spill_stores=stores,
        spill_loads=loads,
        threads=program.block[0] * program.block[1] * program.block[2],
    )


#: The disassemblers, and how each is asked for the machine code of a file.
_DISASSEMBLERS = {"nvdisasm": "-c", "cuobjdump": "--dump-sass"}


def find_tool(*names: str) -> str:
    """Where the first of some of CUDA's command line tools is that is installed."""
    for name in names:
        found: Any = shutil.which(name)
        with contextlib.suppress(ImportError, AttributeError):
            from cuda import pathfinder

            found = pathfinder.find_nvidia_binary_utility(name) or found
        if found is not None:
            return str(found)
    raise MissingDependencyError(
        f"{' or '.join(names)} is not installed", instead="pip install 'loopkit[cuda]'"
    )


def disassemble(cubin: bytes, tools: Sequence[str] = tuple(_DISASSEMBLERS)) -> str:
    """The machine code of a binary as text, by the first of ``tools`` that is there."""
    tool = find_tool(*tools)
    return _run_tool(tool, cubin, _DISASSEMBLERS[Path(tool).stem])


def nvdisasm(cubin: bytes, *options: str) -> str:
    """What ``nvdisasm`` prints about a binary."""
    return _run_tool(find_tool("nvdisasm"), cubin, *options)


def _run_tool(tool: str, cubin: bytes, *options: str) -> str:
    with tempfile.TemporaryDirectory(prefix="loopkit-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        done = subprocess.run(
            [tool, *options, str(path)], capture_output=True, text=True, check=False, timeout=300
        )
    if done.returncode:
        raise CompileError(f"{tool} cannot read the binary", log=done.stderr)
    return done.stdout


@dataclass(frozen=True)
class CompiledProgram:
    """A binary with what the compiler said about it."""

    program: Program
    arch: str
    cubin: bytes
    ptx: str
    log: str

    @cached_property
    def parts(self) -> tuple[CompiledProgram, ...]:
        """What it is for each launch: one binary holds the functions of all."""
        if not self.program.launches:
            return (self,)
        return tuple(replace(self, program=part) for part in self.program.parts)

    @cached_property
    def resources(self) -> Resources:
        """What the binary uses."""
        return from_log(self.log, self.program, self.arch)


#: Older ones miscompile some loop nests: docs/running.md, known miscompilations.
SOUND_SINCE = "13.2"
_importing = threading.Lock()
UPGRADE = "pip install --upgrade nvidia-cuda-nvrtc"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@functools.cache
def nvrtc_version() -> str:
    """``13.4``; an error that names the remedy where there is no NVRTC."""
    try:
        return ".".join(str(n) for n in _ask("nvrtcVersion"))
    except Exception as error:  # what a half-installed toolkit raises is of many types
        raise MissingDependencyError(
            f"NVRTC, which compiles the kernels, cannot be loaded: {error}",
            instead="pip install 'loopkit[cuda]'",
        ) from error


def _ask(name: str, *args: Any) -> Any:
    """What a function of NVRTC's answers; an error where it fails."""
    from cuda.bindings import nvrtc

    status, *values = getattr(nvrtc, name)(*args)
    if int(status):
        raise CompileError(f"NVRTC fails with {status}")
    return values[0] if len(values) == 1 else values


@functools.cache  # and no lock is taken any more, in case a process forks
def cuda_core() -> Any:
    """``cuda.core``, which threads must not import for the first time all at once."""
    with _importing:
        from cuda import core
    return core


def known_fault(version: str) -> str:
    """What this version of NVRTC (``13.4``) is known to do wrong; empty if that is nothing."""
    if _numbers(version) >= _numbers(SOUND_SINCE):
        return ""
    return (
        f"NVRTC {version} compiles some loop nests to wrong addresses, without a word; "
        f"{SOUND_SINCE} and newer do not"
    )


def supported_archs() -> tuple[str, ...]:
    """The architectures that this NVRTC compiles for, as ``sm_90``."""
    nvrtc_version()
    return tuple(f"sm_{arch}" for arch in _ask("nvrtcGetSupportedArchs"))


def compile_program(program: Program, arch: str, *, with_lines: bool = False) -> CompiledProgram:
    """Compile ``program`` for ``arch`` (``sm_80``, ``sm_90a``, ...), or recall it.

    ``with_lines`` adds the table of lines that debuggers use, and changes no instruction.
    Raises `CompileError` with the numbered source if the compiler rejects it.
    """
    version = nvrtc_version()
    fault = known_fault(version)
    if fault:
        warn_once("nvrtc", f"{fault}: {UPGRADE}")
    options = (*program.options, *(("--lineinfo",) if with_lines else ()))
    made = _compiled(program.name, program.source, arch, version, options)
    return CompiledProgram(program, arch, *made)


@functools.lru_cache(maxsize=256)
def _compiled(
    name: str, source: str, arch: str, version: str, options: tuple[str, ...]
) -> tuple[bytes, str, str]:
    """The binary, the PTX and what the compiler said, from the cache or made now."""
    key = _cache.key_of(name, source, arch, version, *options)
    entry = _cache.load("cuda", key)
    parts = _compile(name, source, arch, options) if entry is None else entry.parts
    if entry is None:
        _cache.store("cuda", key, parts)
    return parts["cubin"], parts["ptx"].decode(), parts["log"].decode()


def _compile(name: str, source: str, arch: str, options: tuple[str, ...]) -> dict[str, bytes]:
    core = cuda_core()
    asked: dict[str, Any] = {option[2:].replace("-", "_"): True for option in options}
    if "#include" in source:
        asked["include_path"] = include_directory()
    # A binary out of NVRTC's own cache comes without the assembler's report.
    asked |= {"name": f"{name}.cu", "arch": arch, "std": "c++17"}
    asked |= {"ptxas_options": "-v", "no_cache": True}
    compilation, log = core.Program(source, "c++", core.ProgramOptions(**asked)), StringIO()
    try:
        cubin = compilation.compile("cubin", logs=log).code
    except Exception as error:  # its class has no public name
        raise _error(name, source, arch, str(error)) from None
    ptx = bytes(_ask("nvrtcGetPTXSize", compilation.handle))  # filled in place by the binding
    _ask("nvrtcGetPTX", compilation.handle, ptx)
    return {"cubin": bytes(cubin), "ptx": ptx.rstrip(b"\0"), "log": log.getvalue().encode()}


def _error(name: str, source: str, arch: str, log: str) -> CompileError:
    if "ARCH" in log.upper() and "gpu-architecture" in log:
        return CompileError(
            f"NVRTC {nvrtc_version()} does not compile for {arch}",
            log=log,
            instead=f"it knows {', '.join(supported_archs())}, and those with the suffix a",
        )
    why = f"NVRTC {nvrtc_version()} rejects the source of {name} for {arch}"
    return CompileError(why, source=source, log=log)


_PROBE = "cuda_fp16.h"


@functools.cache
def include_directory() -> str:
    """A directory with CUDA's headers, those that NVRTC itself carries before all others."""
    for folder in _places():
        if folder and os.path.isfile(os.path.join(folder, _PROBE)):
            return folder
    raise MissingDependencyError(
        f"{_PROBE}, which this kernel's types need, is not installed",
        instead="pip install --upgrade 'loopkit[cuda]' brings an NVRTC that has it inside; "
        "or set CUDA_HOME to a CUDA toolkit",
    )


def _places() -> Iterator[str | None]:
    """Where headers may be; NVRTC puts those that newer ones carry into the first two."""
    if _numbers(nvrtc_version()) >= (13, 3):
        for kept in (_cache.find(f"headers-{nvrtc_version()}"), _cache.private() / "headers"):
            if kept is not None:
                with contextlib.suppress(Exception):  # whether it did shows
                    _ask("nvrtcInstallBundledHeaders", os.fsencode(kept), 0)
                yield str(kept)
    from cuda import pathfinder

    yield pathfinder.find_nvidia_header_directory("cudart")
