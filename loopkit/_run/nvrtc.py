"""From source to binary, with NVRTC; no GPU and no driver is needed."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from loopkit import _cache, _once
from loopkit._cached import cached_property
from loopkit._errors import CompileError, MissingDependencyError
from loopkit._frozen import dataclass
from loopkit._program import Program
from loopkit._run import resources


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
    def resources(self) -> resources.Resources:
        """What the binary uses."""
        return resources.from_log(self.log, self.program, self.arch)


# A binary out of NVRTC's own cache comes without the assembler's report.
_BASE_OPTIONS = ("--std=c++17", "--ptxas-options=-v", "--no-cache")
#: Older ones compile some loop nests wrongly: docs/checking.md says which, under what is trusted.
SOUND_SINCE = (13, 2)
UPGRADE = "pip install --upgrade nvidia-cuda-nvrtc"


@functools.cache
def nvrtc_version() -> str:
    """``13.4``; an error that names the remedy where there is no NVRTC."""
    return ".".join(str(n) for n in _checked(_nvrtc().nvrtcVersion()))


def known_fault(version: str) -> str:
    """What this version of NVRTC (``13.4``) is known to do wrong; empty if that is nothing."""
    if tuple(int(part) for part in version.split(".")) >= SOUND_SINCE:
        return ""
    sound = ".".join(str(part) for part in SOUND_SINCE)
    return (
        f"NVRTC {version} compiles some loop nests to wrong addresses, without a word; "
        f"{sound} and newer do not"
    )


@functools.cache
def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except Exception as error:  # what a half-installed toolkit raises is of many types
        raise MissingDependencyError(
            f"NVRTC, which compiles the kernels, cannot be loaded: {error}",
            instead="pip install 'loopkit[cuda]'",
        ) from error
    return nvrtc


def supported_archs() -> tuple[str, ...]:
    """The architectures that this NVRTC compiles for, as ``sm_90``."""
    (archs,) = _checked(_nvrtc().nvrtcGetSupportedArchs())
    return tuple(f"sm_{arch}" for arch in archs)


def compile_program(program: Program, arch: str, *, with_lines: bool = False) -> CompiledProgram:
    """Compile ``program`` for ``arch`` (``sm_80``, ``sm_90a``, ...), or recall it.

    ``with_lines`` adds the table of lines that debuggers use, and changes no instruction.
    Raises `CompileError` with the numbered source if the compiler rejects it.
    """
    version = nvrtc_version()
    fault = known_fault(version)
    if fault:
        _once.warn("nvrtc", f"{fault}: {UPGRADE}")
    options = (*program.options, *(("--generate-line-info",) if with_lines else ()))
    made = _compiled(program.name, program.source, arch, version, options)
    return CompiledProgram(program, arch, *made)


@functools.lru_cache(maxsize=256)
def _compiled(
    name: str, source: str, arch: str, version: str, options: tuple[str, ...]
) -> tuple[bytes, str, str]:
    """The binary, the PTX and what the compiler said, from the cache or made now."""
    key = _cache.key_of(name, source, arch, version, *options)
    entry = _cache.load("cuda", key)
    if entry is None or entry.parts.keys() != {"cubin", "ptx", "log"}:
        parts = _compile(name, source, arch, options)
        _cache.store("cuda", key, parts)
    else:
        parts = entry.parts
    return parts["cubin"], parts["ptx"].decode(), parts["log"].decode()


def _compile(name: str, source: str, arch: str, own: tuple[str, ...]) -> dict[str, bytes]:
    nvrtc = _nvrtc()
    architecture = f"--gpu-architecture={arch}"
    options = [architecture, *_BASE_OPTIONS, *include_options(source), *own]
    (handle,) = _checked(
        nvrtc.nvrtcCreateProgram(source.encode(), f"{name}.cu".encode(), 0, [], [])
    )
    try:
        status, *_ = nvrtc.nvrtcCompileProgram(handle, len(options), [o.encode() for o in options])
        log = _text(handle, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        if int(status):
            raise _error(name, source, arch, status, log.decode())
        cubin = _bytes(handle, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        ptx = _text(handle, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    finally:
        nvrtc.nvrtcDestroyProgram(handle)
    return {"cubin": cubin, "ptx": ptx, "log": log}


def _error(name: str, source: str, arch: str, status: Any, log: str) -> CompileError:
    (why,) = _checked(_nvrtc().nvrtcGetErrorString(status))
    if "ARCH" in log.upper() and "gpu-architecture" in log:
        return CompileError(
            f"NVRTC {nvrtc_version()} does not compile for {arch}",
            log=log,
            instead=f"it knows {', '.join(supported_archs())}, and those with the suffix a",
        )
    return CompileError(
        f"NVRTC {nvrtc_version()} rejects the source of {name} for {arch} ({why.decode()})",
        source=source,
        log=log,
    )


def _bytes(handle: Any, size_of: Any, get: Any) -> bytes:
    (size,) = _checked(size_of(handle))
    buffer = bytes(size)  # filled in place by the binding
    _checked(get(handle, buffer))
    return buffer


def _text(handle: Any, size_of: Any, get: Any) -> bytes:
    text = _bytes(handle, size_of, get).rstrip(b"\0")
    return text.decode(errors="replace").encode()


def _checked(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    status, *values = answer
    if int(status):
        raise CompileError(f"NVRTC fails with {status}")
    return tuple(values)


_PROBE = "cuda_fp16.h"


def include_options(source: str) -> tuple[str, ...]:
    """The options that make the headers of ``source`` known; none for none."""
    return (f"--include-path={include_directory()}",) if "#include" in source else ()


@functools.cache
def include_directory() -> str:
    """A directory with CUDA's headers, those that NVRTC itself carries before all others."""
    for places in (_bundled(), _installed()):
        for folder in places:
            if (folder / _PROBE).is_file():
                return str(folder)
    raise MissingDependencyError(
        f"{_PROBE}, which this kernel's types need, is not installed",
        instead="pip install --upgrade 'loopkit[cuda]' brings an NVRTC that has it inside; "
        "or set CUDA_HOME to a CUDA toolkit",
    )


def _bundled() -> Iterator[Path]:
    """Where NVRTC puts the headers that newer ones carry, unless they are there already."""
    nvrtc = _nvrtc()
    install = getattr(nvrtc, "nvrtcInstallBundledHeaders", None)
    if install is None or _checked(nvrtc.nvrtcVersion()) < (13, 3):
        return

    def filled(folder: Path) -> Path:
        with contextlib.suppress(RuntimeError):  # whether it did shows
            install(os.fsencode(folder), 0)
        return folder

    kept = _cache.find(f"headers-{nvrtc_version()}")
    if kept is not None:
        yield filled(kept)
    yield filled(_cache.private() / "headers")


def _installed() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "include"
    with contextlib.suppress(ImportError, AttributeError, RuntimeError):
        from cuda import pathfinder

        found = pathfinder.find_nvidia_header_directory("cudart")
        if found:
            yield Path(found)
    spec = importlib.util.find_spec("nvidia")
    for place in spec.submodule_search_locations or () if spec else ():
        yield from sorted(Path(place).glob("*/include"))
    yield Path("/usr/local/cuda/include")
