"""How much padding arrays want."""

from __future__ import annotations

from math import lcm
from typing import Any

import numpy as np

from loopkit._arguments import at_least, checked_kernel, name_or_number, needed_name
from loopkit._arrays import axis_number, strides_of
from loopkit._budget import in_turn
from loopkit._called import fitting
from loopkit._errors import InvalidArgumentError
from loopkit._expression import to_text
from loopkit._inspect import costs
from loopkit._kernel import Kernel
from loopkit._registry import transform_named
from loopkit._spelling import shown

_PAGE = 2**21  # bytes of a page of a GPU's memory, the largest unit that there is


@fitting
@in_turn
def find_padding_multiple(
    kernel: Kernel, variable: str, axis: int | str, align_bytes: int, allowed_waste: float = 0.1
) -> int:
    """How many steps along an axis fill whole units of memory without wasting too much.

    :arg variable: an array or a temporary, whose type is known.
    :arg axis: its name or number; its stride must be a constant.
    :arg align_bytes: the size of a unit, as of a sector or a line of the cache.
    :arg allowed_waste: the share of what is used that may stay empty.
    :returns: the smallest number of steps that need no more: a length for :func:`split_iname`, or
        for :func:`split_array_dim`.
    :raises InvalidArgumentError: where the stride is no constant, or 0.
    """
    checked_kernel(kernel)
    array = kernel.array(needed_name("variable", variable))
    axis = axis_number(array, name_or_number("axis", axis))
    unit = at_least(1)("align_bytes", align_bytes)
    if unit > _PAGE:
        raise InvalidArgumentError(f"no unit of memory has {unit:,} bytes: a page has {_PAGE:,}")
    if not isinstance(allowed_waste, (int, float)) or not allowed_waste >= 0:
        raise InvalidArgumentError(
            f"allowed_waste is a share, not {shown(allowed_waste)}",
            instead="0.1 is a tenth, and 0 lets nothing stay empty",
        )
    stride = strides_of(array)[axis]
    if array.dtype is None or not isinstance(stride, (int, np.integer)) or stride < 1:
        raise InvalidArgumentError(
            f"axis {axis} of '{variable}' has a stride of {to_text(stride)} elements of type "
            f"{array.dtype}, which is no constant number of bytes",
            instead="fix_parameters makes sizes constants, and add_dtypes says a type",
        )
    step = int(stride) * array.dtype.itemsize
    for multiple in range(1, lcm(step, unit) // step + 1):
        used = multiple * step
        if -used % unit <= allowed_waste * used:
            break
    return multiple


@fitting
@in_turn
def add_padding_to_avoid_bank_conflicts(kernel: Kernel, device: Any = None, **sizes: Any) -> Kernel:
    """Pad shared temporaries so that warps meet in fewer banks, by what ``costs`` counts.

    Each shared array whose accesses conflict gets the padding that needs the fewest wavefronts,
    and among these the least memory; :func:`pad_temporary` does it, and is what the history says.
    Where no padding helps (a swizzle may), an array stays as it is.

    :arg device: as for ``costs``.
    :arg sizes: those of the launch that is counted; needed where the kernel has sizes.
    :returns: the kernel; the same where nothing conflicts.
    :raises InvalidArgumentError: where sizes are missing.
    """
    checked_kernel(kernel)
    missing = [name for name in kernel.sizes if name not in sizes]
    if missing:
        raise InvalidArgumentError(
            f"bank conflicts are counted for a launch, and '{missing[0]}' is not given",
            instead=f"add_padding_to_avoid_bank_conflicts(knl, {missing[0]}=...)",
        )
    for found in costs(kernel, device=device, sizes=sizes).layouts:
        padded = [b for b in found.better if b.transform == "pad_temporary"]
        if padded:
            kernel = transform_named("pad_temporary")(kernel, found.array, *padded[0].numbers)
    return kernel
