"""Whether an array that a program writes shares memory with another argument."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from loopkit._errors import LaunchError
from loopkit._run.arrays import ArrayInfo

if TYPE_CHECKING:
    from loopkit._run.plan import ArgumentPlan


class _Pretence:
    """Memory that NumPy may compute addresses of, but never looks at."""

    def __init__(self, info: ArrayInfo) -> None:
        itemsize = info.dtype.itemsize
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "shape": tuple(info.shape),
            "typestr": f"|V{itemsize}",
            "data": (info.pointer, False),
            "strides": tuple(s * itemsize for s in info.strides),
        }


def overlaps(a: ArrayInfo, b: ArrayInfo) -> bool:
    """Whether an element of ``a`` and one of ``b`` share a byte."""
    if a.size == 0 or b.size == 0:
        return False
    (a_low, a_high), (b_low, b_high) = a.byte_range(), b.byte_range()
    if a_high <= b_low or b_high <= a_low:
        return False
    work: Any = 10000  # enough for anything but contrived strides
    try:
        return bool(np.shares_memory(np.asarray(_Pretence(a)), np.asarray(_Pretence(b)), work))
    except np.exceptions.TooHardError:
        return True


def check(plan: ArgumentPlan, arrays: Mapping[str, ArrayInfo]) -> None:
    """Refuse arguments that break what ``__restrict__`` promises."""
    for name in plan.outputs:
        written = arrays.get(name)
        if written is None or written.kind.immutable:
            continue
        for other, info in arrays.items():
            if other == name or (other in plan.outputs and other < name):
                continue
            if info.location == written.location and overlaps(written, info):
                raise LaunchError(
                    f"{name} shares memory with {other}, but {plan.name} writes {name}, "
                    f"and its code relies on them being apart",
                    instead=f"pass a copy of {other}, or another array for {name}",
                )
