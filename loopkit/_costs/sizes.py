"""The arguments of ``costs``: sizes, by name or in a mapping, and arrays whose data matter."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from loopkit import _sets
from loopkit._assertions.check import check_data
from loopkit._costs.data_values import NO_DATA, Data
from loopkit._errors import InvalidArgumentError, UnknownNameError, check_known
from loopkit._expression import to_text
from loopkit._kernel import Kernel
from loopkit._spelling import shown

Sizes = Mapping[str, int]
"""Sizes by name: what ``sizes=`` takes, so that a size may be called like an option."""

OPTIONS = {
    *("access", "arch", "at", "block", "colour", "device", "inames", "iterations", "measured"),
    *("sizes", "tiles", "warp"),
}
"""What the functions that take sizes have as options."""


def sizes_of(kernel: Kernel, together: Any, by_name: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes of ``sizes={...}`` and those passed by name, and what is computed from them."""
    if together is None:
        return kernel.with_computed(by_name)
    if not isinstance(together, Mapping):
        if "sizes" in kernel.sizes:
            return {**by_name, "sizes": together}
        raise InvalidArgumentError(
            f"sizes are numbers by name, not {shown(together)}", instead="sizes={'n': 4096}"
        )
    for name in together:
        if name in by_name:
            raise InvalidArgumentError(f"the size '{name}' is passed twice")
    return kernel.with_computed({**together, **by_name})


def check_sizes(kernel: Kernel, sizes: Mapping[str, Any], what: str) -> dict[str, int]:
    """The sizes as Python's integers; refuses those that no call could have."""
    found = check_names(kernel, sizes)
    if missing := [name for name in kernel.sizes if name not in found]:
        text = ", ".join(f"{m}=..." for m in (*found, *missing) if m not in OPTIONS)
        if together := ", ".join(f"'{m}': ..." for m in (*found, *missing) if m in OPTIONS):
            # What is called like an option of the function is passed together.
            text += f"{', ' if text else ''}sizes={{{together}}}"
        raise InvalidArgumentError(
            f"{what} needs the sizes {', '.join(missing)}", instead=f"{what}({text})"
        )
    for name, value in found.items():
        if not -(2**63) <= value < 2**63:
            raise InvalidArgumentError(f"{name} = {value} is no size: it does not fit int64")
    if _sets.at_values(kernel.assumptions.set, found).is_empty():
        these = ", ".join(f"{n} = {v}" for n, v in found.items())
        raise InvalidArgumentError(
            f"no launch of '{kernel.name}' has {these}: it assumes "
            f"{to_text(_sets.conditions(kernel.assumptions.set))}"
        )
    return found


def check_names(kernel: Kernel, sizes: Mapping[str, Any]) -> dict[str, int]:
    """Sizes as Python's integers, of any type that is one; refuses what is no size of a kernel."""
    check_known("size", sizes, kernel.sizes)
    return kernel.with_computed({name: whole(name, value) for name, value in sizes.items()})


def whole(name: str, value: Any) -> int:
    """The value of a size: Python's, NumPy's, or any other whole number."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise InvalidArgumentError(f"the size '{name}' is a whole number, not {shown(value)}")


def sizes_and_data(kernel: Kernel, given: Mapping[str, Any]) -> tuple[dict[str, Any], Data]:
    """The sizes among what was given, those that shapes determine too, and the other arguments.

    Arrays may lie on a device, and are checked as in a call.  Raises :class:`UnknownNameError` for
    what is neither, :class:`~loopkit.AssumptionError` for data that break what the kernel asserts,
    and what a call raises for arrays of other types and shapes.
    """
    sizes = {name: value for name, value in given.items() if name in kernel.sizes}
    others = {name: value for name, value in given.items() if name not in sizes}
    if not others:
        return sizes, NO_DATA
    for name in others:
        if name not in kernel.arg_by_name:
            raise UnknownNameError("size", str(name), kernel.sizes)
    from loopkit._run.plan import ArgumentPlan

    plan = ArgumentPlan(kernel.program())
    infos = plan.describe(others, partly=True)
    known = plan.passed(given)
    plan.solver.infer(known, infos)
    sizes = {name: known.values[name] for name in kernel.sizes if name in known.values}
    arrays = {name: info.kind.as_numpy(info.object) for name, info in infos.items()}
    if sizes.keys() >= set(kernel.sizes):
        plan.solver.check_shapes(known, infos)
        check_data(kernel.name, kernel.assertions, arrays, sizes)
    numbers = {n: np.asarray(known.values[n]) for n in others if n in plan.scalars}
    return sizes, Data({**arrays, **numbers})
