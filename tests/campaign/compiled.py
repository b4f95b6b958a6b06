"""Running generated source on the CPU, many kernels to one compilation.

The source text, the runtime and its orders of threads are those of the host
executor.  What differs makes faults show: shared and private memory begin as
garbage, accesses to them are checked, arguments lie between guard zones.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from seams import (
    ArrayParam,
    ErrorRecord,
    Program,
    cleared_in,
    evaluate,
    host_launch,
    launch_error,
    own_arguments,
    turns_of,
)
from seams import compiler as host_compiler

import loopkit as lk

from .data import Case

_FLAGS = ("-O0", "-ftrivial-auto-var-init=pattern", "-fsanitize=bounds", "-w")
# Called where a subscript of a shared or private array is out of bounds: the runtime reports
# a fault, as for any other access to memory that is not there.
_PRELUDE = """
extern "C" void __ubsan_handle_out_of_bounds(void *, void *) { *(volatile int *)8 = 0; }
extern "C" void __ubsan_handle_out_of_bounds_abort(void *, void *) { *(volatile int *)8 = 0; }
static __thread __attribute__((used)) char lk_anchor_byte;
LK_EXPORT void *lk_anchor() { return &lk_anchor_byte; }
"""
_WAITS = re.compile(r"\b__(sync|shfl|ballot|any|all|match|reduce|trap|nanosleep|brkpt)")
_HEADER = re.compile(r"^#include <.*>$", re.MULTILINE)
_numbers = itertools.count()

ORDERS = ("ascending", "descending", "random")
_GUARD = 65  # elements before and behind every array, which begins at an odd place
_GARBAGE = 99  # of any type


@dataclass(frozen=True)
class Wrong:
    """A run whose results differ from the text's, or that failed."""

    sizes: dict[str, int]
    order: str
    what: str


class Compiled:
    """A program that can be launched."""

    def __init__(self, program: Program, library: ctypes.CDLL, number: int) -> None:
        self.program = program
        self._library = library
        self._entries: dict[str, tuple[int, int | None]] = {}
        for part in program.parts:
            entry, plain = (
                host_launch._address(getattr(library, f"lk_{kind}_{number}_{part.name}"))
                for kind in ("entry", "plain")
            )
            self._entries[part.name] = entry, None if _WAITS.search(program.source) else plain

    def call(self, memory: _Memory, sizes: dict[str, int], order: str, seed: int) -> None:
        """Run all launches of a call; raises :class:`LaunchError`."""
        pointers = memory.pointers
        for turn in turns_of(self.program, sizes):
            memory.clear(turn.program)
            values = {name: ctypes.c_longlong(value) for name, value in turn.values.items()}
            places = {name: ctypes.addressof(value) for name, value in values.items()}
            own = own_arguments(self.program, replace(turn, values=places), list(pointers))
            self._launch(turn.program, (ctypes.c_void_p * len(own))(*own), turn.grid, order, seed)

    def _launch(
        self, program: Program, pointers: Any, grid: tuple[int, int, int], order: str, seed: int
    ) -> None:
        error = ErrorRecord()
        entry, plain = self._entries[program.name]
        job = host_launch._Job(
            entry=entry,
            plain=plain,
            anchor=host_launch._address(self._library.lk_anchor),
            guard=None,
            arguments=ctypes.addressof(pointers),
            grid=grid,
            block=program.block,
            order=host_launch.ORDERS[order],
            workers=1,
            seed=seed,
            error=ctypes.pointer(error),
        )
        assert host_launch._runtime is not None
        if host_launch._runtime.lk_launch(ctypes.byref(job)) != 0:
            raise launch_error(program, error)


def compile_all(programs: Sequence[Program]) -> list[Compiled]:
    """Compile programs together; raises :class:`CompileError` if any of them is rejected.

    None may have dynamic shared memory (a schedule of small tiles has none).
    """
    compiler = host_compiler.need_compiler()
    host_launch._load_runtime(compiler)
    # Headers stay outside of the programs' namespaces, where they would hide functions of all.
    headers = sorted({line for p in programs for line in _HEADER.findall(p.source)})
    units = (_unit(p, number) for number, p in enumerate(programs))
    text = "".join([_PRELUDE, *(f"{line}\n" for line in headers), *units])
    flags = [
        f for f in compiler.kernel_flags(False) if not f.startswith(("-O", "-m", "-Wl", "-shared"))
    ]
    with tempfile.TemporaryDirectory(prefix="loopkit-campaign-") as folder:
        unit = Path(folder) / "kernels.cpp"
        unit.write_text(text, encoding="utf-8")
        made, library = str(unit.with_suffix(".o")), Path(folder) / f"k{next(_numbers)}.so"
        include = [f"-I{host_compiler.HERE}", "-include", "cuda_words.h"]
        _call([*compiler.command, *flags, *_FLAGS, *include, "-c", str(unit), "-o", made], text)
        link = ["-shared", "-Wl,-Bsymbolic", made, "-o", str(library)]
        _call([*compiler.command, *link], text)
        loaded = ctypes.CDLL(str(library))
    return [Compiled(program, loaded, number) for number, program in enumerate(programs)]


def _unit(program: Program, number: int) -> str:
    source = _HEADER.sub("", program.source.replace('extern "C"', ""))
    unit = f"""
namespace lk_unit_{number} {{
{source}
}}
"""
    return unit + "".join(_entries(part.name, number) for part in program.parts)


def _entries(name: str, number: int) -> str:
    arguments = "void **arguments"
    return f"""
LK_EXPORT void lk_entry_{number}_{name}({arguments}) {{
  lk_invoke(&lk_unit_{number}::{name}, arguments);
}}
LK_EXPORT void lk_plain_{number}_{name}({arguments}, lk_thread *self, const lk_index *turns,
                                 unsigned count) {{
  for (unsigned i = 0; i < count; ++i) {{
    self->position = turns[i];
    lk_invoke(&lk_unit_{number}::{name}, arguments);
  }}
}}
"""


def _call(command: list[str], text: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise lk.CompileError("the compiler rejects a batch", source=text, log=done.stderr[:4000])


# {{{ memory


class _Memory:
    """The arguments of one launch, each array between two guard zones."""

    def __init__(self, program: Program, case: Case, sizes: dict[str, int]) -> None:
        self.case = case
        self.buffers: list[tuple[str, Any, Any, Any]] = []  # name, memory, before, after
        self._arrays: dict[str, Any] = {}
        self._cleared: dict[str, Any] = {}
        sizes = {**sizes, **_odd_strides(program, sizes)}
        count = len(program.params)
        self._values = (ctypes.c_longlong * count)()
        self.pointers = (ctypes.c_void_p * count)()
        for at, param in enumerate(program.params):
            place = ctypes.addressof(self._values) + 8 * at
            self.pointers[at] = place
            if isinstance(param, ArrayParam):
                self._values[at] = self._array(param, sizes)
            else:
                raw = np.array(sizes[param.name], dtype=param.dtype).tobytes()
                ctypes.memmove(place, raw, len(raw))

    def _array(self, param: ArrayParam, sizes: dict[str, int]) -> int:
        shape = [max(0, int(evaluate(s, sizes))) for s in param.shape]
        strides = [int(evaluate(s, sizes)) for s in param.strides]
        span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        span = span if min(shape, default=1) else 0
        memory = np.full(span + 2 * _GUARD, _GARBAGE, param.dtype)
        before = memory.copy()
        after = before
        if param.role == "cleared":
            self._cleared[param.name] = _view(memory, shape, strides)
        if param.role == "argument":
            _view(before, shape, strides)[...] = self.case.given[param.name]
            if param.name in self.case.expected:
                after = before.copy()
                _view(after, shape, strides)[...] = self.case.expected[param.name]
            else:
                after = before
        if param.role == "argument" and param.is_written:
            self._arrays[param.name] = _view(memory, shape, strides)
        self.buffers.append((param.name if param.role == "argument" else "", memory, before, after))
        return int(memory.ctypes.data) + _GUARD * param.dtype.itemsize

    def reset(self) -> None:
        for _, memory, before, _ in self.buffers:
            np.copyto(memory, before)

    def clear(self, launch: Program) -> None:
        """Clear what a launch must find cleared."""
        for name in cleared_in(launch.params):
            self._cleared[name][...] = 0

    def contents(self) -> dict[str, Any]:
        """What the arrays hold that a launch writes."""
        return {name: array.copy() for name, array in self._arrays.items()}

    def difference(self) -> str:
        """What is not as it should be; empty where everything is."""
        for name, memory, _, after in self.buffers:
            if not name:  # a temporary: only what lies around it may not change
                inside = slice(_GUARD, len(memory) - _GUARD)
                memory = memory.copy()
                memory[inside] = after[inside]
            # C leaves open which bits a NaN has.
            differs = (memory != after) & ~((memory != memory) & (after != after))
            if differs.any():
                at = int(np.flatnonzero(differs)[0]) - _GUARD
                inside_array = 0 <= at < len(memory) - 2 * _GUARD
                place = "element" if inside_array else "out of bounds: element"
                return (
                    f"{name or 'a temporary'}: {place} {at} is {memory[at + _GUARD]}, "
                    f"not {after[at + _GUARD]}"
                )
        return ""


def _odd_strides(program: Program, sizes: dict[str, int]) -> dict[str, int]:
    """Values for strides that are parameters: every other element, and gaps between rows."""
    found: dict[str, int] = {}
    free = {(p.array, p.axis): p.name for p in program.params if p.role == "stride"}
    for param in program.params:
        if isinstance(param, ArrayParam) and (param.name, 0) in free:
            axes = range(len(param.shape))
            step = 2 if all((param.name, axis) in free for axis in axes) else 1
            for axis in reversed(axes):
                if (param.name, axis) in free:
                    found[free[param.name, axis]] = step
                step = step * max(1, int(evaluate(param.shape[axis], sizes))) + 1
    return found


def _view(memory: Any, shape: Sequence[int], strides: Sequence[int]) -> Any:
    return np.lib.stride_tricks.as_strided(
        memory[_GUARD:], shape, [s * memory.itemsize for s in strides]
    )


# }}}


def runs(compiled: Compiled, cases: Sequence[Case], seed: int) -> Iterator[Wrong | None]:
    """Run a program on all cases in all orders; None for each run that is right."""
    program = compiled.program
    for case in cases:
        sizes = case.sizes
        if not all(evaluate(check.condition, sizes) for check in program.checks):
            continue
        memory = _Memory(program, case, sizes)
        for order in ORDERS:
            memory.reset()
            try:
                compiled.call(memory, sizes, order, seed)
            except lk.LaunchError as error:
                yield Wrong(sizes, order, str(error))
                continue
            what = memory.difference()
            yield Wrong(sizes, order, what) if what else None


def first_wrong(compiled: Compiled, cases: Sequence[Case], seed: int) -> tuple[int, Wrong | None]:
    """How many runs there were, up to the first that is wrong, and that one."""
    count = 0
    for wrong in runs(compiled, cases, seed):
        count += 1
        if wrong is not None:
            return count, wrong
    return count, None
