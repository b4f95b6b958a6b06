"""Programs to change: schedules of the gallery, and random ones, with results to compare with."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from seams import Program, evaluate

import loopkit as lk
from loopkit import Within

from . import kernels, together
from .compiled import Compiled, _Memory, compile_all
from .data import Arrays, Case, Sizes, Truth
from .walk import Walk, walk

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_SIZES = (5, 1, 2, 3, 8, 13, 17, 33, 40)
_MOST = 1 << 16  # elements of an array, and threads of a launch: larger runs take too long


@dataclass(frozen=True)
class Subject:
    """A proven program, and what it computes for some sizes."""

    name: str
    kernel: lk.Kernel
    program: Program
    cases: tuple[Case, ...]


def drawn(r: random.Random, name: str) -> Subject | None:
    """A random schedule of a random kernel; None where there is nothing to change."""
    is_of_threads = r.random() < 0.5
    _, kernel = kernels.draw(r, text=together.draw_text if is_of_threads else kernels.draw_text)
    found = walk(r, Walk(kernel), 8, together=is_of_threads)
    try:
        program = found.kernel.program()
        proof = found.kernel.prove()
    except lk.LoopkitError:
        return None
    if not proof.ok or _is_dynamic(program) or len(program.source) > 9000:
        return None
    truth = Truth(kernel, r.randrange(1 << 30))
    cases = truth.cases(found.kernel, 3, found.fixed)
    cases = [c for c in cases if _runs(program, c.sizes)]
    return Subject(name, found.kernel, program, tuple(cases)) if cases else None


def _is_dynamic(program: Program) -> bool:
    """Whether a launch is to allocate shared memory, which runs here do not do."""
    return any(part.dynamic_shared for part in program.parts)


def gallery(r: random.Random) -> Iterator[Subject]:
    """The schedules of the gallery, in a random order."""
    if str(_EXAMPLES) not in sys.path:
        sys.path.insert(0, str(_EXAMPLES))
    modules = sorted(p.stem for p in _EXAMPLES.glob("*.py") if not p.stem.startswith("_"))
    r.shuffle(modules)
    for module in modules:
        for schedule, kernel in sorted(importlib.import_module(module).make().items()):
            program = kernel.program()
            if _is_dynamic(program):
                continue
            (binary,) = compile_all([program])
            found = tuple(_cases(r, kernel, binary))
            if found and kernel.prove().ok:
                yield Subject(f"{module}: {schedule}", kernel, program, found)


def _cases(r: random.Random, kernel: lk.Kernel, binary: Compiled) -> Iterator[Case]:
    """What the program itself computes: a proven change must not change a bit."""
    made = 0
    for base in _SIZES:
        sizes: Sizes = {n: base + r.randrange(3) for n in kernel.sizes}
        if made == 2:
            return
        if not _runs(binary.program, sizes) or not all(
            evaluate(check.condition, sizes) for check in binary.program.checks
        ):
            continue
        case = Case(sizes, _arguments(r, kernel, sizes), {})
        memory = _Memory(binary.program, case, _with_values(kernel, sizes))
        memory.reset()
        binary.call(memory, _with_values(kernel, sizes), "ascending", 0)
        made += 1
        yield Case(_with_values(kernel, sizes), case.given, memory.contents())


def _arguments(r: random.Random, kernel: lk.Kernel, sizes: Sizes) -> Arrays:
    rng = np.random.default_rng(r.randrange(1 << 30))
    found: Arrays = {}
    for argument in kernel.args:
        if isinstance(argument, lk.ArrayArg):
            shape = [max(0, int(evaluate(s, sizes))) for s in argument.shape or ()]
            found[argument.name] = (rng.integers(-64, 64, shape) / 8).astype(argument.dtype)
    for said in kernel.assertions:
        if isinstance(said, Within):
            low, high = (int(evaluate(bound, sizes)) for bound in (said.lower, said.upper))
            values = found[said.array]
            found[said.array] = (low + values % (high - low)).astype(values.dtype)
    return found


def _with_values(kernel: lk.Kernel, sizes: Sizes) -> Sizes:
    """Sizes, and the arguments that are no sizes."""
    values = {a.name: 3 for a in kernel.args if isinstance(a, lk.ValueArg)}
    return {**values, **sizes}


def _runs(program: Program, sizes: Sizes) -> bool:
    """Whether a launch is small enough to be made many times."""
    grid = [int(evaluate(extent, sizes)) for extent in program.grid]
    return 0 < int(np.prod([*grid, *program.block])) <= _MOST


def subjects(seed: int) -> Iterator[Subject]:
    """Programs without end: now and then one of the gallery."""
    r = random.Random(seed)
    known = gallery(r)
    number = 0
    while True:
        number += 1
        found = next(known, None) if number % 3 == 0 else drawn(r, f"{seed}.{number}")
        if found is not None:
            yield found
