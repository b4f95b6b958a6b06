"""The C++ compiler: how it is found and called, and the cache of binaries.

Binaries are built once for all processes, and loaded from the cache folder.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from loopkit import _cache
from loopkit._called import warn_once
from loopkit._errors import CompileError, MissingDependencyError
from loopkit._frozen import dataclass

#: The C++ files that a kernel is compiled against, and those of the runtime.
HERE = Path(__file__).resolve().parent
RUNTIME_SOURCES = ("scheduler.cpp", "launch.cpp", "faults.cpp", "switch.cpp")
DRIVER_SOURCES = (*RUNTIME_SOURCES, "driver.cpp")

# Every kernel means what its text says, on any CPU: nothing is contracted or
# reassociated, signed integers wrap as the GPU's do, and vector accesses by cast
# pointers (float4 over float) are what generated code does all the time.
_KERNEL_FLAGS = (
    "-std=c++17",
    "-fPIC",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-asynchronous-unwind-tables",
    "-fvisibility=hidden",
    "-Wno-attributes",
    # A frame that would not fit the stack of a fibre is refused, not run.
    "-Werror=frame-larger-than=131072",
)
# Some compilers link libstdc++ statically; the runtime is loaded globally, and what it exported of
# that would stand in for the libstdc++ that extension modules loaded later bring.
_HIDE_LIBRARIES = "-Wl,--exclude-libs,ALL"
# Known to g++ only.  Shared arrays are thread-local and never need a
# constructor; a unique symbol would keep a library from ever being unloaded.
# Where g++ 12 vectorizes an outer loop, it does not see that a store overwrites what itself
# has stored in an earlier iteration, and the wrong value stays.
_GCC_FLAGS = ("-fno-gnu-unique", "-fno-extern-tls-init", "-fno-tree-loop-vectorize")
_SANITIZE_FLAGS = (
    "-O1",
    "-g1",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize=vptr,shift-base",
    "-fno-sanitize-recover=all",
)
# Fortified, longjmp refuses to leave a fibre's stack for the thread's own.
_RUNTIME_FLAGS = [
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-pthread",
    "-U_FORTIFY_SOURCE",
]
_REJECTED = "the CPU's C++ compiler rejects the generated source"
_NO_RUNTIME = "the host executor's runtime does not compile"


def find_compiler() -> str | None:
    """The C++ compiler to use: ``$CXX``, ``g++``, ``clang++`` or ``c++``; None without one.

    ``$CXX`` may hold arguments (``ccache g++``); it is returned as it stands.
    """
    chosen = os.environ.get("CXX", "").strip()
    wrong = _what_is_wrong_with(chosen) if chosen else ""
    if chosen and not wrong:
        return chosen
    found = next((name for name in ("g++", "clang++", "c++") if shutil.which(name)), None)
    if wrong and found is not None:
        warn_once("compiler", f"{wrong}; {found} is used instead")
    return found


def _what_is_wrong_with(command: str) -> str:
    """Why ``command`` names no compiler; empty if it does."""
    asked = f"the environment variable CXX is {command!r}"
    try:
        program = shlex.split(command)[0]
    except ValueError as error:
        return f"{asked}, which is no command: {error}"
    return "" if shutil.which(program) else f"{asked}, and there is no program {program!r}"


def need_compiler() -> Compiler:
    """The compiler, ready for use; an error that says how to get one if there is none."""
    if not sys.platform.startswith("linux"):
        raise MissingDependencyError(
            f"the host executor runs on Linux only, and this is {platform.system()}",
            instead="the reference executor runs everywhere",
        )
    command = find_compiler()
    if command is None:
        raise MissingDependencyError(
            "the host executor needs a C++ compiler, and there is none: neither $CXX nor g++, "
            "clang++ or c++ can be found",
            instead="install one (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++; "
            "conda: conda install gxx) or name yours in the environment variable CXX",
        )
    return _describe(command)


@dataclass(frozen=True)
class Compiler:
    """A compiler: its command line's beginning and what ``--version`` says."""

    command: tuple[str, ...]
    version: str

    def kernel_flags(self, sanitize: bool) -> tuple[str, ...]:
        """All flags for a kernel, linking included."""
        own = ("-Wno-unknown-warning-option",) if "clang" in self.version else _GCC_FLAGS
        speed = _SANITIZE_FLAGS if sanitize else ("-O2", *_cpu_flags())
        return (*_KERNEL_FLAGS, *own, *speed, "-shared", "-Wl,-Bsymbolic", _HIDE_LIBRARIES)

    def build_kernel(
        self, text: str, output: Path, *, sanitize: bool, source: str, why: str = _REJECTED
    ) -> None:
        """Compile ``text`` to a shared library; an error says ``why``, and shows ``source``."""
        with _cache.working() as folder:
            unit = folder / "kernel.cpp"
            unit.write_text(text, encoding="utf-8")
            words = [f"-I{HERE}", "-include", "cuda_words.h"]
            arguments = [*self.kernel_flags(sanitize), *words, str(unit), "-o", str(output)]
            self._run(arguments, why, source)

    def key(self, *parts: str) -> str:
        """A key for what this compiler makes of ``parts`` and of the C++ files here."""
        return _cache.key_of(_own_sources(), *parts, self.version, " ".join(self.command))

    def runtime(self) -> Binary:
        """The scheduler, which all kernels of a process share."""
        return binary(self.key("runtime"), self._build_runtime)

    def driver(self) -> Binary:
        """The program that runs a kernel under the sanitizers."""
        return binary(self.key("driver"), self._build_driver)

    def _build_runtime(self, output: Path) -> None:
        files = [str(HERE / name) for name in RUNTIME_SOURCES]
        arguments = [*_RUNTIME_FLAGS, "-shared", _HIDE_LIBRARIES, *files, "-o", str(output)]
        self._run(arguments, _NO_RUNTIME)

    def _build_driver(self, output: Path) -> None:
        # The runtime in it is compiled without the sanitizers: it knows what it does, and it
        # has to write where kernels must not.
        with _cache.working() as folder:
            objects = []
            for name in DRIVER_SOURCES:
                objects.append(str(folder / f"{name}.o"))
                files = ["-c", str(HERE / name), "-o", objects[-1]]
                self._run([*_RUNTIME_FLAGS, "-DLK_ASAN", *files], _NO_RUNTIME)
            link = ["-fsanitize=address,undefined", "-rdynamic", "-pthread", *objects, "-ldl"]
            why = "this compiler cannot link the sanitizers that sanitize=True needs"
            self._run([*link, "-o", str(output)], why)

    def _run(self, arguments: list[str], why: str, source: str = "") -> None:
        command = [*self.command, *arguments]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False
            )
        except OSError as error:
            raise CompileError(f"{why}: {command[0]} cannot be run: {error}") from error
        if done.returncode != 0:
            raise CompileError(why, source=source, log=done.stderr or done.stdout)


@functools.cache
def _describe(command: str) -> Compiler:
    words = tuple(shlex.split(command))
    try:
        done = subprocess.run(
            [*words, "--version"], capture_output=True, text=True, errors="replace", check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingDependencyError(
            f"the C++ compiler '{command}' cannot be run: {error}",
            instead="name a working one in the environment variable CXX",
        ) from error
    return Compiler(words, done.stdout.strip())


@functools.cache
def _cpu_flags() -> tuple[str, ...]:
    # Without a fused multiply-add of the CPU's own, fmaf is a call.
    if platform.machine() not in ("x86_64", "AMD64"):
        return ()
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    has = set(line.split())
    return ("-mavx2", "-mfma") if {"avx2", "fma"} <= has else ()


_PART = "binary"


@dataclass(frozen=True)
class Binary:
    """A library or a program: its bytes, and a file that begins with them."""

    key: str
    path: Path
    contents: bytes

    def load(self, mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL:
        """The library, in this process."""
        try:
            return ctypes.CDLL(str(self.path), mode=mode)
        except OSError:  # removed meanwhile, or where nothing may be executed
            kept = _keep(self.key, self.contents)
        try:
            return ctypes.CDLL(str(kept), mode=mode)
        except OSError as error:
            raise CompileError(
                f"what was compiled for the CPU cannot be loaded: {error}"
            ) from error

    def file(self) -> Path:
        """A file that is there now: the cache's may have been removed."""
        return self.path if self.path.exists() else _keep(self.key, self.contents)


def binary(key: str, build: Callable[[Path], None]) -> Binary:
    """What is kept under ``key``, which ``build`` writes to a file if it is not there."""
    entry = _cache.load("host", key)
    if entry is None:
        with _cache.working() as folder:
            output = folder / _PART
            build(output)
            if not output.exists():
                raise CompileError("the C++ compiler ended well, and wrote nothing")
            contents = output.read_bytes()
        entry = _cache.store("host", key, {_PART: contents})
        if entry is None:
            return Binary(key, _keep(key, contents), contents)
    return Binary(key, entry.path, entry.parts[_PART])


def _keep(key: str, contents: bytes) -> Path:
    """The binary in a file of this process's own."""
    path = _cache.private() / key
    with _cache.writing():
        _cache.write(path, contents)
    return path


@functools.cache
def _own_sources() -> bytes:
    total = hashlib.sha256()
    for path in sorted((*HERE.glob("*.h"), *HERE.glob("*.cpp"))):
        total.update(path.name.encode())
        total.update(path.read_bytes())
    return total.digest()
