"""From Python's arguments to the memory that a kernel reads its own from."""

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
        count = len(self.params)
        addresses = (ctypes.c_void_p * count)(*(v.ctypes.data for v in self.values))
        start = ctypes.addressof(addresses)
        step = ctypes.sizeof(ctypes.c_void_p)
        result = (ctypes.c_void_p * count)(
            *(
                start + i * step if isinstance(param, ArrayParam) else value.ctypes.data
                for i, (param, value) in enumerate(zip(self.params, self.values, strict=True))
            )
        )
        result._loopkit_keeps = addresses  # type: ignore[attr-defined]
        return result

    def finish(self) -> None:
        """Hand the results in moved arrays back."""
        for moved, original in self.copies:
            original[...] = moved


def bind(program: Program, args: Sequence[Any]) -> Bound:
    """Check ``args`` against the parameters of ``program``."""
    if len(args) != len(program.params):
        raise LaunchError(
            f"'{program.name}' takes {len(program.params)} arguments, and {len(args)} came",
            instead="parameters: " + ", ".join(p.name for p in program.params),
        )
    bound = Bound([], program.params)
    for param, arg in zip(program.params, args, strict=True):
        if isinstance(param, ArrayParam):
            bound.values.append(_array(program, param, arg, bound))
        else:
            bound.values.append(_value(program, param, arg))
    return bound


def _value(program: Program, param: ValueParam, arg: Any) -> Array:
    try:
        value = np.asarray(arg)
        if value.ndim != 0:
            raise TypeError(f"a single number is needed, an array of shape {value.shape} came")
        if value.dtype.kind == "c" and param.dtype.kind != "c":
            raise TypeError("a real number is needed, a complex one came")
        if param.dtype.kind in "iub":
            # Through a Python integer: NumPy then refuses what does not fit.
            return np.array(_whole(value), dtype=param.dtype)
        return np.array(value, dtype=param.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise LaunchError(
            f"argument '{param.name}' of '{program.name}' is a {param.dtype}, "
            f"and {arg!r} cannot be one: {error}"
        ) from None


def _whole(value: Array) -> int:
    number = value.item()
    if isinstance(number, float) and not number.is_integer():
        raise TypeError("an integer is needed")
    return int(number)


def _array(program: Program, param: ArrayParam, arg: Any, bound: Bound) -> Array:
    asked = f"argument '{param.name}' of '{program.name}'"
    if not isinstance(arg, np.ndarray):
        raise LaunchError(f"{asked} is an array, and a {type(arg).__name__} came")
    if arg.dtype != param.dtype:
        raise LaunchError(f"{asked} is an array of {param.dtype}, and one of {arg.dtype} came")
    if param.is_written and not arg.flags.writeable:
        raise LaunchError(f"{asked} is written, and the array that came is read-only")
    needed = arg.dtype.alignment
    if arg.ctypes.data % needed == 0:
        return arg
    if not (arg.flags.c_contiguous or arg.flags.f_contiguous):
        raise LaunchError(
            f"{asked} must begin at a multiple of {needed} bytes, and the view that came does not",
            instead="pass a contiguous array, or a view that begins there",
        )
    moved = _aligned_like(arg, needed)
    moved[...] = arg
    if param.is_written:
        bound.copies.append((moved, arg))
    return moved


def _aligned_like(arg: Array, alignment: int) -> Array:
    room = np.empty(arg.nbytes + alignment, dtype=np.uint8)
    skip = -room.ctypes.data % alignment
    flat = room[skip : skip + arg.nbytes].view(arg.dtype)
    return flat.reshape(arg.shape, order="C" if arg.flags.c_contiguous else "F")
