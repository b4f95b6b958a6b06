"""From arguments that the plan of a call has checked to the memory that a kernel reads."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from loopkit._errors import LaunchError
from loopkit._frozen import dataclass
from loopkit._program import ArrayParam, Program, ValueParam

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Bound:
    """Arguments that fit their parameters: 0-d arrays for values, arrays for pointers.

    ``copies`` are arrays that had to be moved to meet an alignment, each with the
    caller's array that gets the results.
    """

    values: list[Array]
    params: tuple[ValueParam | ArrayParam, ...]
    copies: list[tuple[Array, Array]] = field(default_factory=list)

    def pointers(self) -> ctypes.Array[ctypes.c_void_p]:
        """For each parameter where its value lies, as ``lk_entry`` takes them."""
        places = [
            np.array(value.ctypes.data, np.uintp) if isinstance(param, ArrayParam) else value
            for param, value in zip(self.params, self.values, strict=True)
        ]
        result = (ctypes.c_void_p * len(places))(*(place.ctypes.data for place in places))
        result._loopkit_keeps = places  # type: ignore[attr-defined]
        return result

    def finish(self) -> None:
        """Hand the results in moved arrays back."""
        for moved, original in self.copies:
            original[...] = moved


def bind(program: Program, args: Sequence[Any]) -> Bound:
    """Arguments that fit their parameters, where a kernel can read them."""
    bound = Bound([], program.params)
    for param, arg in zip(program.params, args, strict=True):
        if not isinstance(param, ArrayParam):
            bound.values.append(np.array(arg, dtype=param.dtype))
            continue
        moved = _aligned(program, param, arg)
        bound.values.append(moved)
        if moved is not arg and param.is_written:
            bound.copies.append((moved, arg))
    return bound


def _aligned(program: Program, param: ArrayParam, arg: Array) -> Array:
    """``arg`` itself, or a copy of it that begins at a multiple of what its elements need."""
    needed = arg.dtype.alignment
    if arg.ctypes.data % needed == 0:
        return arg
    if not (arg.flags.c_contiguous or arg.flags.f_contiguous):
        raise LaunchError(
            f"argument '{param.name}' of '{program.name}' must begin at a multiple of "
            f"{needed} bytes, and the view that came does not",
            instead="pass a contiguous array, or a view that begins there",
        )
    return arg.copy(order="K")  # NumPy's own memory begins at a multiple of 16
