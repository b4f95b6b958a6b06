"""What ``costs`` is given: sizes, and arguments whose data decide what a launch does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loopkit._assertions.check import check_data
from loopkit._costs.data_values import NO_DATA, Data
from loopkit._errors import UnknownNameError
from loopkit._kernel import Kernel


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
