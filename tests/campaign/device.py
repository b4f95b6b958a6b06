"""``python -m tests.campaign.device``: random accepted schedules on a GPU, against the text.

Run it under ``compute-sanitizer`` to have its tools watch them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from seams import Nested, Strided, known_dtype

import loopkit as lk

from . import kernels
from .data import Case, Truth
from .kernels import Drawn
from .steps import Call, script
from .walk import Walk, walk


@dataclass(frozen=True)
class Picked:
    """A schedule that every check accepted, with cases to run."""

    seed: str
    drawn: Drawn
    calls: tuple[Call, ...]
    kernel: lk.Kernel
    cases: Sequence[Case]

    def source(self) -> str:
        """Python source that makes it."""
        return f"{self.drawn.source()}\n{script(self.calls)}"


def pick(seed: int, steps: int = 8, sizes: int = 3) -> Iterator[Picked]:
    """Schedules that use blocks or threads, without end; the same ones for the same seed."""
    while True:
        r = random.Random(seed)
        drawn, plain = kernels.draw(r)
        truth = Truth(plain, seed)
        for number in range(0 if _cuts_floats(plain) else 6):
            found = walk(r, Walk(plain), steps)
            kernel = found.kernel
            strided = any(isinstance(tag, Strided) for tag in _dim_tags(kernel))
            if strided or not any(tag.is_parallel for _, tag in kernel.tags):
                continue
            try:
                kernel.program()
            except lk.LoopkitError:
                continue
            cases = truth.cases(kernel, sizes, found.fixed)
            if cases:
                yield Picked(f"{seed}.{number}", drawn, found.calls, kernel, cases)
        seed += 1


def _cuts_floats(kernel: lk.Kernel) -> bool:
    """Whether a float is stored as an integer: processors differ where that cannot hold it."""
    types = ((kernel.array(s.written).dtype, known_dtype(kernel, s.rhs)) for s in kernel.statements)
    return any(
        isinstance(written, np.dtype)
        and isinstance(value, np.dtype)
        and (written.kind in "iu" and value.kind == "f")
        for written, value in types
    )


def _dim_tags(kernel: lk.Kernel) -> Iterator[Any]:
    for argument in kernel.args:
        if isinstance(argument, lk.ArrayArg):
            yield from argument.dim_tags or ()


def difference(picked: Picked, executor: str) -> str:
    """What is not as the text says; empty where everything is."""
    kernel = picked.kernel
    run = kernel.executor(executor)
    names = {a.name for a in kernel.passed}
    for case in picked.cases:
        if any(0 in values.shape for values in case.given.values()):
            continue  # nothing to see, and an extent may even be negative
        arrays = {name: np.array(values) for name, values in case.given.items()}
        given = {n: _laid_out(kernel, n, v) for n, v in arrays.items()}
        run(**given, **{n: v for n, v in case.sizes.items() if n in names})
        for name, expected in case.expected.items():
            if not np.array_equal(given[name], expected):
                return f"{case.sizes}: {name} differs"
    return ""


def _laid_out(kernel: lk.Kernel, name: str, values: np.ndarray) -> np.ndarray:
    """The array with its axes in the order that the kernel asks for, or with gaps it may have."""
    tags = kernel.array(name).dim_tags
    if tags is None:
        return values
    levels = [tag.level for tag in tags if isinstance(tag, Nested)]
    if len(levels) < values.ndim:  # all strides are those that are passed
        spread = np.zeros([2 * extent for extent in values.shape], values.dtype)
        spread = spread[(slice(None, None, 2),) * values.ndim]
        spread[...] = values
        return spread
    order = sorted(range(values.ndim), key=lambda axis: -levels[axis])
    inner = np.ascontiguousarray(values.transpose(order))
    return inner.transpose(np.argsort(order))


@click.command()
@click.option("--count", default=500, show_default=True, help="How many schedules to run.")
@click.option("--seed", default=0, show_default=True, help="Of the first kernel.")
@click.option("--executor", default="cuda", show_default=True, help="cuda or host.")
def main(count: int, seed: int, executor: str) -> None:
    """Run random accepted schedules, and compare their results with those of the text."""
    wrong = 0
    for number, picked in zip(range(count), pick(seed), strict=False):
        try:
            what = difference(picked, executor)
        except lk.LoopkitError as error:
            what = f"{type(error).__name__}: {error}"
        if what:
            wrong += 1
            click.echo(f"--- {picked.seed}: {what}\n{picked.source()}\n")
        if (number + 1) % 100 == 0:
            click.echo(f"{number + 1} schedules, {wrong} wrong")
    click.echo(f"{count} schedules, {wrong} wrong")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
