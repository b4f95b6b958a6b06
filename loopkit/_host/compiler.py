"""Finding the C++ compiler, and what it is asked to do."""

from __future__ import annotations

import functools
import os
import platform
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from loopkit import _cache, _once
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
_GCC_FLAGS = ("-fno-gnu-unique", "-fno-extern-tls-init")
_SANITIZE_FLAGS = (
    "-O1",
    "-g1",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize=vptr,shift-base",
    "-fno-sanitize-recover=all",
)
# Fortified, longjmp refuses to leave a fibre's stack for the thread's own.
_RUNTIME_FLAGS = (
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-pthread",
    "-U_FORTIFY_SOURCE",
)


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
        _once.warn("compiler", f"{wrong}; {found} is used instead")
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

    @property
    def is_clang(self) -> bool:
        """Whether it takes clang's options rather than g++'s."""
        return "clang" in self.version

    def kernel_flags(self, sanitize: bool) -> tuple[str, ...]:
        """All flags for a kernel, linking included."""
        own = ("-Wno-unknown-warning-option",) if self.is_clang else _GCC_FLAGS
        speed = _SANITIZE_FLAGS if sanitize else ("-O2", *_cpu_flags())
        return (*_KERNEL_FLAGS, *own, *speed, "-shared", "-Wl,-Bsymbolic", _HIDE_LIBRARIES)

    def build_kernel(self, text: str, output: Path, *, sanitize: bool, source: str) -> None:
        """Compile ``text`` to a shared library; ``source`` is what an error shows."""
        with _cache.working() as folder:
            unit = folder / "kernel.cpp"
            unit.write_text(text, encoding="utf-8")
            arguments = [
                *self.kernel_flags(sanitize),
                f"-I{HERE}",
                "-include",
                "cuda_words.h",
                str(unit),
                "-o",
                str(output),
            ]
            self._run(arguments, "the CPU's C++ compiler rejects the generated source", source)

    def build_runtime(self, output: Path) -> None:
        """Compile the scheduler, which all kernels of a process share."""
        files = [str(HERE / name) for name in RUNTIME_SOURCES]
        arguments = [*_RUNTIME_FLAGS, "-shared", _HIDE_LIBRARIES, *files, "-o", str(output)]
        self._run(arguments, "the host executor's runtime does not compile", "")

    def build_driver(self, output: Path) -> None:
        """Compile the program that runs a kernel under the sanitizers.

        The runtime in it is compiled without them: it knows what it does, and it
        has to write where kernels must not.
        """
        with _cache.working() as folder:
            objects = []
            for name in DRIVER_SOURCES:
                objects.append(str(folder / f"{name}.o"))
                arguments = [
                    *_RUNTIME_FLAGS,
                    "-DLK_ASAN",
                    "-c",
                    str(HERE / name),
                    "-o",
                    objects[-1],
                ]
                self._run(arguments, "the host executor's runtime does not compile", "")
            link = ["-fsanitize=address,undefined", "-rdynamic", "-pthread", *objects, "-ldl"]
            self._run(
                [*link, "-o", str(output)],
                "this compiler cannot link the sanitizers that sanitize=True needs",
                "",
            )

    def _run(self, arguments: list[str], why: str, source: str) -> None:
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
            [*words, "--version"], capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
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
