"""Descriptions of arrays for executors, and the interface of array types.

A *kind* is a library's array type: how to read pointer, shape, strides and dtype of an array
without a copy, how to allocate an output, and which stream the library works on.  A library is
recognised by the module of the object's type, and imported only when one of its arrays is passed,
so that it is imported already.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from loopkit._errors import InvalidArgumentError, ResourceError
from loopkit._frozen import dataclass
from loopkit._hidden import hidden


@dataclass(frozen=True, slots=True)
class Location:
    """Where memory is: ``("host", 0)`` or ``("cuda", i)``."""

    type: str
    index: int

    def __str__(self) -> str:
        return f"cuda:{self.index}" if self.type == "cuda" else "the host"


HOST = Location("host", 0)


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """One array as a program sees it; ``strides`` are in elements."""

    kind: ArrayKind
    object: Any
    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    location: Location
    readonly: bool = False
    stream: int | None = None
    keep: Any = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def byte_strides(self) -> tuple[int, ...]:
        """The strides in bytes."""
        return tuple(stride * self.dtype.itemsize for stride in self.strides)

    def current_stream(self) -> int:
        """The handle of the stream that work on it is ordered on at this moment."""
        return self.kind.current_stream(self.location.index) if self.stream is None else self.stream

    def stream_source(self, constants: dict[str, Any]) -> str:
        """`current_stream` as an expression of Python; adds what it uses to ``constants``."""
        if self.stream is None:
            return self.kind.stream_source(self.location.index, constants)
        constants["_array_stream"] = self.stream
        return "_array_stream"

    def byte_range(self) -> tuple[int, int]:
        """The first byte and the byte past the last."""
        layout, itemsize = Layout(self.shape, self.strides), self.dtype.itemsize
        begin = self.pointer - layout.before * itemsize
        return begin, begin + layout.span * itemsize


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a row-major array, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True)
class Layout:
    """The shape and the strides (in elements) that an array should have."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def is_contiguous(self) -> bool:
        """Whether it is row-major without padding."""
        return self.strides == contiguous_strides(self.shape)

    def has(self, strides: tuple[int, ...]) -> bool:
        """Whether ``strides`` lay an array out so; along an axis of one element any do."""
        steps = zip(self.shape, strides, self.strides, strict=True)
        return 0 in self.shape or all(n == 1 or have == want for n, have, want in steps)

    @property
    def span(self) -> int:
        """How many elements lie between the first and the last, both counted."""
        if 0 in self.shape:
            return 0
        steps = zip(self.shape, self.strides, strict=True)
        return 1 + sum((extent - 1) * abs(stride) for extent, stride in steps)

    @property
    def before(self) -> int:
        """How many elements lie in front of the first: none, where no stride is negative."""
        if 0 in self.shape:
            return 0
        steps = zip(self.shape, self.strides, strict=True)
        return sum((extent - 1) * -stride for extent, stride in steps if stride < 0)

    def byte_strides(self, dtype: np.dtype[Any]) -> tuple[int, ...]:
        """The strides of an array of ``dtype``."""
        return tuple(stride * dtype.itemsize for stride in self.strides)


def numpy_empty(layout: Layout, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A NumPy array laid out like that, not initialised."""
    try:
        if layout.is_contiguous:
            return np.empty(layout.shape, dtype)
        flat = np.empty(layout.span, dtype)[layout.before :]
        return np.lib.stride_tricks.as_strided(flat, layout.shape, layout.byte_strides(dtype))
    except (MemoryError, ValueError) as error:  # the latter for more than there are addresses
        raise ResourceError(
            f"there is no memory for an array of {' x '.join(map(str, layout.shape))} elements "
            f"of {dtype.name}"
        ) from error


def as_if_here(
    shape: Sequence[Any], element: str, pointer: int, strides: Any, *, readonly: bool = True
) -> np.ndarray[Any, Any]:
    """Memory as an array that NumPy may compute addresses of, but never looks at.

    ``element`` is the type as array interfaces write it, and ``strides`` are in bytes.
    """
    interface = {"version": 3, "shape": tuple(shape), "typestr": element}
    interface |= {"data": (pointer, readonly), "strides": strides}
    return np.asarray(SimpleNamespace(__array_interface__=interface))


def element_strides(
    name: str, strides: tuple[int, ...], shape: tuple[int, ...], itemsize: int
) -> tuple[int, ...]:
    """Byte strides in elements; those of axes with one element may be anything."""
    result = []
    for axis, (stride, extent) in enumerate(zip(strides, shape, strict=True)):
        if stride % itemsize and extent > 1:
            raise InvalidArgumentError(
                f"{name}: axis {axis} has a stride of {stride} bytes, "
                f"which is not a multiple of its elements' {itemsize} bytes",
                instead="pass a copy of it",
            )
        result.append(stride // itemsize)
    return tuple(result)


def is_masked(name: str) -> InvalidArgumentError:
    """The error for arrays that hide some of their elements."""
    return InvalidArgumentError(
        f"{name} is masked, which kernels do not understand",
        instead=f"pass its data, or {name}.filled(...)",
    )


def unreadable(name: str, x: Any, protocol: str, error: Exception) -> InvalidArgumentError:
    """The error for objects that do not hold what a protocol promises."""
    return InvalidArgumentError(
        f"{name}: an object of type {type(x).__name__} cannot be read as an array through "
        f"{protocol}: {type(error).__name__}: {error}"
    )


class ArrayKind:
    """A library's array type; this base class holds what most of them share."""

    name = "array"
    #: Whether arrays cannot be written, so that results are always new arrays.
    immutable = False
    #: Whether the library orders its own work after ours without our waiting.
    stream_ordered = True
    #: Whether `guard` and `pointer` below make calls of checked signatures fast.
    has_guard = False
    #: What arrays of one signature have in common, and where there are several devices besides: as
    #: expressions of Python.
    traits: ClassVar[Mapping[str, str]] = {
        "shape": "{}.shape",
        "strides": "{}.strides",
        "dtype": "{}.dtype",
    }
    places: ClassVar[Mapping[str, str]] = {}
    #: The address of an array, as an expression.
    address = ""

    def describe(self, x: Any, name: str = "the array") -> ArrayInfo:
        """Read ``x``; ``name`` is what errors call it."""
        raise NotImplementedError

    def empty(self, layout: Layout, dtype: np.dtype[Any], location: Location) -> Any:
        """A new array on a device, not initialised."""
        raise InvalidArgumentError(
            f"arrays of type {self.name} cannot be allocated here",
            instead="pass the outputs as arguments, too",
        )

    def allocator(
        self, layout: Layout, dtype: np.dtype[Any], location: Location
    ) -> Callable[[], Any]:
        """`empty` with its arguments fixed, as quick as the library allows."""
        return functools.partial(self.empty, layout, dtype, location)

    def working_on(self, stream: int, index: int) -> AbstractContextManager[Any]:
        """Have the library allocate for work on ``stream`` of device ``index``."""
        return contextlib.nullcontext()

    def copy(self, x: Any) -> Any:
        """A copy that nobody else sees, for kinds that are immutable."""
        raise NotImplementedError

    def as_numpy(self, x: Any) -> np.ndarray[Any, Any]:
        """``x``, which is in host memory, as a NumPy array over the same memory."""
        return np.from_dlpack(x)

    def from_numpy(self, x: np.ndarray[Any, Any]) -> Any:
        """A NumPy array as one of this kind over the same memory."""
        return x

    def current_stream(self, index: int) -> int:
        """The handle of the stream that the library works on, on device ``index``."""
        constants: dict[str, Any] = {}
        return int(eval(self.stream_source(index, constants), constants))

    def stream_source(self, index: int, constants: dict[str, Any]) -> str:
        """`current_stream` as an expression of Python; adds what it uses to ``constants``."""
        return "0"

    def guard(
        self, var: str, info: ArrayInfo, devices: int, constants: dict[str, Any]
    ) -> list[str]:
        """Conditions that prove that ``var`` equals ``info`` in all but its address."""
        kind = hidden("type", var)
        constants[kind] = type(info.object)
        conditions = [f"type({var}) is {kind}"]
        for word, text in {**self.traits, **(self.places if devices > 1 else {})}.items():
            constants[hidden(word, var)] = eval(text.format("_x"), {**constants, "_x": info.object})
            conditions.append(f"{text.format(var)} == {hidden(word, var)}")
        return conditions

    def pointer(self, var: str) -> str:
        """The address of ``var``, as an expression of Python."""
        return self.address.format(var)


class NumpyKind(ArrayKind):
    """NumPy's arrays, in host memory."""

    name = "NumPy"

    def describe(self, x: Any, name: str = "the array") -> ArrayInfo:
        if isinstance(x, np.ma.MaskedArray):
            raise is_masked(name)
        pointer = x.__array_interface__["data"][0]
        strides = element_strides(name, x.strides, x.shape, max(x.itemsize, 1))
        readonly = not x.flags.writeable
        return ArrayInfo(self, x, pointer, x.shape, strides, x.dtype, HOST, readonly)

    def as_numpy(self, x: Any) -> np.ndarray[Any, Any]:
        result: np.ndarray[Any, Any] = x
        return result


NUMPY = NumpyKind()
