"""Compilation of a program for the CPU, and its launches there."""

from __future__ import annotations

import ctypes
import math
import os
import re
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from loopkit._errors import CompileError
from loopkit._host import sanitizer
from loopkit._host.abi import ErrorRecord, bind, launch_error
from loopkit._host.compiler import Binary, Compiler, binary, need_compiler
from loopkit._program import ArrayParam, Program, check_grid, check_resources
from loopkit._target import CUDA

Order = Literal["ascending", "descending", "random"]
ORDERS: dict[str, int] = {"ascending": 0, "descending": 1, "random": 2}

# Below this many CUDA threads, starting OS threads costs more than it brings.
_WORTH_SHARING = 1 << 14

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DYNAMIC_SHARED = re.compile(
    r"\bextern\s+__shared__\s+(?:__align__\s*\(\s*\w+\s*\)\s*)?"
    r"(?P<type>[A-Za-z_][\w\s]*?)\s*(?P<name>[A-Za-z_]\w*)\s*\[\s*\]"
)

#: Held for a moment only, but for `_first_use`: while the runtime is compiled.
_lock = threading.Lock()
_first_use = threading.Lock()
_compiling: dict[str, threading.Lock] = {}
_modules: dict[str, HostModule] = {}
_runtime: ctypes.CDLL | None = None


def _after_fork() -> None:
    """Replace locks in a forked process, where a thread that held them does not exist."""
    global _lock, _first_use
    _lock, _first_use = threading.Lock(), threading.Lock()
    _compiling.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _Job(ctypes.Structure):
    """``lk_job`` of abi.h."""

    _fields_ = (
        ("entry", ctypes.c_void_p),
        ("plain", ctypes.c_void_p),
        ("anchor", ctypes.c_void_p),
        ("guard", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("order", ctypes.c_int),
        ("workers", ctypes.c_int),
        ("seed", ctypes.c_ulonglong),
        ("error", ctypes.POINTER(ErrorRecord)),
    )


class HostModule:
    """A program compiled for the CPU; made by :func:`compile_host`."""

    def __init__(self, program: Program, made: Binary, *, sanitize: bool) -> None:
        self.program = program
        self.path = made.path
        self.sanitize = sanitize
        #: Whether the kernel has no barrier and no warp operation: its threads
        #: then run in a loop instead of as fibres.  What it takes from the runtime says it.
        self.plain = b"\0lk_rt_" not in made.contents
        self._library = None if sanitize else made.load()
        self._binary = made if sanitize else None

    def __repr__(self) -> str:
        return f"<HostModule '{self.program.name}' at {self.path}>"

    def launch(
        self,
        args: Sequence[Any],
        grid: tuple[int, int, int],
        *,
        order: Order = "ascending",
        seed: int = 0,
        workers: int | None = None,
    ) -> None:
        """Run all blocks of ``grid``; returns when all are done.

        Parameters
        ----------
        args
            One per parameter of the program, in its order, and checked to fit it: a number
            for a value, a NumPy array for a pointer.  Arrays are passed by data pointer.
        grid
            Blocks along x, y and z.
        order
            The order in which the threads of a block run between barriers, and in
            which blocks run.  ``"descending"`` and ``"random"`` expose barriers
            that are missing.
        seed
            Of the random order: the same seed gives the same order.
        workers
            OS threads that share the blocks.  By default one for every CPU when
            the order is ascending and the launch is large, otherwise one.
        """
        program = self.program
        check_resources(program, CUDA, "the host executor")
        check_grid(program, grid, CUDA)
        bound = bind(program, args)
        if min(grid) == 0:
            return
        seed &= 0xFFFFFFFFFFFFFFFF
        if self._binary is not None:
            sanitizer.run(program, self._binary, bound, (ORDERS[order], seed, *grid))
            return
        if workers is None:
            threads = math.prod(program.block) * math.prod(grid)
            large = order == "ascending" and threads >= _WORTH_SHARING
            workers = len(os.sched_getaffinity(0)) if large else 1
        assert self._library is not None
        assert _runtime is not None
        error, pointers = ErrorRecord(), bound.pointers()
        job = _Job(
            entry=_address(self._library.lk_entry),
            plain=_address(self._library.lk_plain) if self.plain else None,
            anchor=_address(self._library.lk_anchor),
            guard=None,
            arguments=ctypes.addressof(pointers),
            grid=grid,
            block=program.block,
            order=ORDERS[order],
            workers=workers,
            seed=seed,
            error=ctypes.pointer(error),
        )
        if _runtime.lk_launch(ctypes.byref(job)) != 0:
            raise launch_error(program, error)
        bound.finish()


def compile_host(program: Program, *, sanitize: bool = False) -> HostModule:
    """Compile ``program`` for the CPU.

    With ``sanitize``, every launch runs in a process of its own under the address
    and undefined behaviour sanitizers: an access outside an array, or outside a
    row of a shared array, becomes an :class:`~loopkit._errors.OutOfBoundsError`.
    """
    compiler = need_compiler()
    text = _translation_unit(program)
    key = compiler.key("kernel", text, " ".join(compiler.kernel_flags(sanitize)))
    with _lock:
        mine = _compiling.setdefault(key, threading.Lock())
    with mine:  # other threads that need it wait for it instead of compiling it as well
        module = _modules.get(key)
        if module is not None and module.program == program:
            return module
        if not sanitize:
            _load_runtime(compiler)

        source = program.source
        build = partial(compiler.build_kernel, text, sanitize=sanitize, source=source)
        module = _modules[key] = HostModule(program, binary(key, build), sanitize=sanitize)
        return module


def _load_runtime(compiler: Compiler) -> None:
    # One for the process, whichever compiler made it: kernels find it by name.
    global _runtime
    with _first_use:
        if _runtime is None:
            library = compiler.runtime().load(ctypes.RTLD_GLOBAL)
            library.lk_launch.restype = ctypes.c_int
            _runtime = library


def _translation_unit(program: Program) -> str:
    sizes = [8 if isinstance(p, ArrayParam) else p.dtype.itemsize for p in program.params]
    entry = ", ".join([program.name, *map(str, sizes), "0"])
    return (
        f'#line 1 "{program.name}.cu"\n{program.source}\n'
        f'#line 1 "{program.name}.entry"\n{_dynamic_shared(program)}\nLK_ENTRY({entry})\n'
    )


def _dynamic_shared(program: Program) -> str:
    found = {
        match["name"]: " ".join(match["type"].split())
        for match in _DYNAMIC_SHARED.finditer(_COMMENT.sub(" ", program.source))
    }
    if not found:
        return "LK_NO_DYNAMIC_SHARED()"
    if len(found) > 1:
        names = ", ".join(f"'{name}'" for name in found)
        raise CompileError(
            f"'{program.name}' declares dynamic shared memory under several names: {names}",
            source=program.source,
            instead="declare one array and divide it",
        )
    [(name, type_name)] = found.items()
    return f"LK_DYNAMIC_SHARED({type_name}, {name}, {program.dynamic_shared})"


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value
