"""Running legal schedules on the host executor, beside the reference interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from seams import evaluate

import loopkit as lk
from refusals.case import Case, Sizes, Step, schedule

ORDERS = ("ascending", "descending", "random")


def arguments(kernel: lk.Kernel, sizes: Sizes, data: Mapping[str, Any]) -> dict[str, Any]:
    """Values for all arguments: the given data, and random numbers elsewhere."""
    rng = np.random.default_rng(len(kernel.passed) + sum(sizes.values()))
    found: dict[str, Any] = {name: sizes[name] for name in kernel.sizes if name in sizes}
    for argument in kernel.passed:
        if not isinstance(argument, lk.ArrayArg):
            continue
        if argument.name in data:
            found[argument.name] = np.asarray(data[argument.name], argument.dtype)
        else:
            shape = tuple(int(evaluate(s, sizes)) for s in argument.shape or ())
            values: Any = rng.uniform(-0.5, 0.5, shape)
            if argument.dtype is not None and argument.dtype.kind == "c":
                values = values + 1j * rng.uniform(-0.5, 0.5, shape)
            found[argument.name] = values.astype(argument.dtype)
    return found


def written(kernel: lk.Kernel, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays that a kernel writes."""
    return {name: arrays[name] for name in sorted(kernel.writers) if name in arrays}


def new_names(plain: lk.Kernel, steps: tuple[Step, ...]) -> dict[str, str]:
    """What the arguments of a kernel are called after some steps, those that are left."""
    names = {name: name for name in plain.arg_by_name}
    for step in steps:
        called = step.change(plain).arguments
        if called is not None:
            names = {old: called[name] for old, name in names.items() if name in called}
        plain = step.apply(plain)
    return names


def check_legal(case: Case) -> None:
    """The legal schedule of a case is accepted and right."""
    check_schedule(case.name, case.legal_plain(), case.legal, case.sizes, case.data)


def check_schedule(
    name: str,
    plain: lk.Kernel,
    steps: tuple[Step, ...],
    some_sizes: tuple[Sizes, ...],
    data_for: Callable[[Sizes], Mapping[str, Any]] | None = None,
) -> None:
    """A schedule is accepted and computes what the text says, in every order of threads."""
    legal, names = schedule(plain, steps), new_names(plain, steps)
    for sizes in some_sizes:
        data = data_for(sizes) if data_for is not None else {}
        given = arguments(plain, sizes, data)
        first = {name: np.copy(v) for name, v in given.items()}
        plain.executor("reference")(**first)
        for order in ORDERS:
            second = {name: np.copy(v) for name, v in given.items()}
            taken = {names[n]: v for n, v in second.items() if names.get(n) in legal.arg_by_name}
            legal.executor("host", order=order, seed=1)(**taken)
            for array, expected in written(plain, first).items():
                np.testing.assert_allclose(
                    second[array],
                    expected,
                    rtol=1e-4,
                    atol=1e-4,
                    err_msg=f"{name}: {array} for {dict(sizes)}, {order} order of threads",
                )
