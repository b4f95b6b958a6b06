"""That a fault is one: what it makes of a schedule, by running it."""

from __future__ import annotations

from typing import Any

import numpy as np
from refusals.machine import Event, Machine, NeverWrittenError
from refusals.running import ORDERS, arguments, written
from seams import evaluate

import loopkit as lk
from faults.planting import Sizes
from loopkit import ValueArg


def wrong_instances(before: lk.Kernel, after: lk.Kernel, sizes: Sizes) -> str | None:
    """What ``after`` does wrong, instance by instance; None where nothing is wrong."""
    given = dict(sizes)
    expected = Machine(before, given).results()[0]
    known = {n: v for n, v in given.items() if n in after.arg_by_name}
    machine = Machine(after, after.with_computed(known))
    try:
        several = machine.results()
    except NeverWrittenError as error:
        return f"something is used that nothing has written: {error}"
    for number, found in enumerate(several):
        outside = out_of_bounds(machine)
        if outside is not None:
            return outside
        if found != expected:
            keys = sorted(k for k in {*expected, *found} if expected.get(k) != found.get(k))
            name, cell = keys[0]
            return (
                f"order {number}: {name}{list(cell)} is {found.get(keys[0])}, "
                f"not {expected.get(keys[0])}"
            )
    return None


def out_of_bounds(machine: Machine) -> str | None:
    """The first access outside of its array."""
    for event in machine.events:
        found = _outside(machine, event)
        if found is not None:
            return found
    return None


def _outside(machine: Machine, event: Event) -> str | None:
    kernel = machine.kernel
    for touch in event.touches:
        array = kernel.temporary_by_name.get(touch.array) or kernel.arg_by_name[touch.array]
        if isinstance(array, ValueArg) or array.shape is None:
            continue
        limits = [int(evaluate(s, machine.sizes)) for s in array.shape]
        inside = len(limits) == len(touch.cell) and all(
            0 <= c < limit for c, limit in zip(touch.cell, limits, strict=True)
        )
        if not inside:
            return f"{event.text(kernel)} touches {touch.array}{list(touch.cell)}"
    return None


def wrong_run(
    plain: lk.Kernel, kernel: lk.Kernel, sizes: Sizes, values: Any, *, sanitize: bool = False
) -> str | None:
    """What the host executor gets wrong in some order of threads; None where all is right."""
    given = arguments(plain, sizes, values(sizes) if values is not None else {})
    first = {name: np.copy(v) for name, v in given.items()}
    plain.executor("reference")(**first)
    for order in ("ascending",) if sanitize else ORDERS:
        second = {name: np.copy(v) for name, v in given.items()}
        taken = {n: v for n, v in second.items() if n in kernel.arg_by_name}
        try:
            kernel.executor("host", order=order, seed=1, sanitize=sanitize)(**taken)
        except lk.LoopkitError as error:
            return f"{order}: {type(error).__name__}: {error}"
        for array, expected in written(plain, first).items():
            if not _agree(second[array], expected):
                return f"{order}: {array} is wrong for {dict(sizes)}"
    return None


def _agree(a: Any, b: Any) -> bool:
    if np.issubdtype(b.dtype, np.integer):
        return bool(np.array_equal(a, b))
    return bool(np.allclose(a, b, rtol=1e-4, atol=1e-4))
