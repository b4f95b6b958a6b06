"""A difference found with exact numbers, seen again with those of the kernels' own types.

Exact numbers neither round nor wrap around, so that two orders of one sum are one value.  But
``(x*16*16)//2`` of a byte is 0, and so is ``(x*32*16)//2``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loopkit._arrays import ArrayArg
from loopkit._errors import LoopkitError
from loopkit._reference import run_reference
from loopkit._verify.example_data import ExampleData, Place
from loopkit._verify.kernel_at_sizes import KernelAtSizes


def confirmed(
    one: KernelAtSizes, two: KernelAtSizes, data: ExampleData, name: str, place: Place
) -> bool:
    """Whether the reference interpreter, given ``data``, finds the two different in a cell.

    A cell that one of them reaches through memory that is not there, or that nothing wrote,
    is different, too.
    """
    if not all(0 <= i < e for i, e in zip(place, one.shapes[name], strict=True)):
        return True
    given = given_by(one, data)
    mine, its = _cell(one, given, name, place), _cell(two, given, name, place)
    if mine is None or its is None:
        return mine is not its
    return not (mine == its or (mine != mine and its != its))


def _cell(side: KernelAtSizes, given: dict[str, Any], name: str, place: Place) -> Any:
    """What a cell holds at the end; None where the interpreter refuses to run the kernel."""
    try:
        return run_reference(side.kernel, given)[name][place]
    except (LoopkitError, TypeError):  # an array may be used with too few subscripts
        return None


def given_by(at_sizes: KernelAtSizes, data: ExampleData) -> dict[str, Any]:
    """All arguments of a kernel, as ``data`` fill them."""
    found: dict[str, Any] = dict(at_sizes.sizes)
    for argument in at_sizes.kernel.args:
        name, dtype = argument.name, at_sizes.dtypes[argument.name]
        if isinstance(argument, ArrayArg):
            shape = at_sizes.shapes[name]
            values = [data.cell(name, p, dtype, at_sizes.limit) for p in np.ndindex(shape)]
            found[name] = np.array(values, dtype=object).reshape(shape).astype(dtype)
        elif name not in found:
            found[name] = dtype.type(at_sizes.initial(data, name, ()).value)
    return found
