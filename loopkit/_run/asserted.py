"""Executors that check the kernel's assertions about index arrays before each call.

The check wraps another executor, so that calls without it have no overhead.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from loopkit._assertions.assertion_values import Assertion, Disjoint, Increasing, Injective, Within
from loopkit._assertions.check import check_data
from loopkit._expression import evaluate
from loopkit._run import driver
from loopkit._run.arrays import HOST, ArrayInfo
from loopkit._run.module import stream_handle, take_stream
from loopkit._run.plan import ArgumentPlan, Resolved


class AssertingExecutor:
    """An executor that checks the data of index arrays before every call.

    Arrays on a GPU are checked there by their own library, if it is PyTorch or CuPy,
    and copied to the host otherwise, or to say what is wrong.  Either way, the call
    waits for the work that computes them.
    """

    def __init__(self, inner: Any, assertions: tuple[Assertion, ...]) -> None:
        self.inner = inner
        self.assertions = assertions
        self.plan: ArgumentPlan = inner.plan

    def __repr__(self) -> str:
        return f"<checking the assertions of {self.inner!r}>"

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet, while an instance is unpickled
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Check the data, and run the kernel; returns its outputs.

        Raises :class:`AssumptionError` with the cells that break an assertion.
        """
        own = dict(kwargs)
        stream = take_stream(self.plan.names, own)
        self._check(self.plan.resolve(args, own), stream)
        return self.inner.call(*args, **kwargs)

    call = __call__

    def _check(self, resolved: Resolved, stream: int | None) -> None:
        arrays = resolved.arrays
        left = tuple(a for a in self.assertions if arrays.keys() >= {*a.arrays})
        if resolved.location == HOST:
            needed = {name: arrays[name] for a in left for name in a.arrays}
            on_host = {n: info.kind.as_numpy(info.object) for n, info in needed.items()}
            check_data(self.plan.name, left, on_host, resolved.values)
            return
        device = driver.device(resolved.location.index)
        with device.working():
            left = tuple(a for a in left if not _holds(a, arrays, resolved.values, stream))
            names = sorted({name for a in left for name in a.arrays})
            copies = {name: _on_host(arrays[name], device, stream) for name in names}
        check_data(self.plan.name, left, copies, resolved.values)

    def bind(self, /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """Check the arguments once; the result checks their data, and launches."""
        bound = self.inner.bind(*args, **kwargs)
        first = take_stream(self.plan.names, kwargs)
        resolved = self.plan.resolve(args, kwargs)

        def call(**options: Any) -> Any:
            stream = options.get("stream")
            self._check(resolved, first if stream is None else stream_handle(stream))
            return bound(**options)

        return call


def _holds(
    assertion: Assertion,
    arrays: dict[str, ArrayInfo],
    sizes: dict[str, Any],
    stream: int | None,
) -> bool:
    """Whether the arrays' own library sees that ``assertion`` holds; else nothing is said."""
    if isinstance(assertion, Injective) and assertion.where is not None:
        return False
    infos = [arrays[name] for name in assertion.arrays]
    first = infos[0]
    library = _LIBRARIES.get(first.kind.name)
    if library is None or any(info.kind is not first.kind for info in infos):
        return False
    on_device = first.object.device if library == "cupy" else contextlib.nullcontext()
    working: Any = contextlib.nullcontext()
    if stream is not None:
        working = first.kind.working_on(stream, first.location.index)
    try:
        with working, on_device:
            given = [info.object for info in infos]
            return library_holds(sys.modules[library], assertion, given, sizes)
    except (TypeError, NotImplementedError, RuntimeError):
        # Libraries lack operations for some integer types.  A lost device shows in the copy.
        return False


#: The modules of kinds of arrays that know how to sort and to compare.
_LIBRARIES = {"PyTorch": "torch", "CuPy": "cupy"}


def library_holds(
    library: Any, assertion: Assertion, given: list[Any], sizes: dict[str, Any]
) -> bool:
    """Whether ``assertion`` holds of arrays of ``library``: PyTorch, CuPy, or NumPy itself."""
    flat = [x.reshape(-1) for x in given]
    if 0 in flat[0].shape or 0 in flat[-1].shape:
        return True
    values = flat[0]
    if isinstance(assertion, Injective):
        ordered = library.sort(values)
        # PyTorch gives the order, too.
        ordered = ordered.values if hasattr(ordered, "values") else ordered
        return not bool((ordered[1:] == ordered[:-1]).any())
    if isinstance(assertion, Increasing):
        before, after = values[:-1], values[1:]
        wrong = before >= after if assertion.strictly else before > after
        return not bool(wrong.any())
    if isinstance(assertion, Within):
        lower, upper = (int(evaluate(b, sizes)) for b in (assertion.lower, assertion.upper))
        return lower <= int(values.min()) and int(values.max()) < upper
    assert isinstance(assertion, Disjoint)
    if flat[0].dtype != flat[1].dtype:
        return False
    return not bool(library.isin(flat[0], flat[1]).any())


def _on_host(info: ArrayInfo, device: driver.Device, stream: int | None) -> np.ndarray[Any, Any]:
    """The values of an array on a GPU, copied after the work that is ordered before it."""
    low, high = info.byte_range()
    memory = np.empty(high - low, np.uint8)
    if stream is None:
        stream = info.current_stream()
    if memory.size:
        driver.call("cuMemcpyDtoHAsync", memory.ctypes.data, low, memory.size, stream)
        device.wait(stream, "the check of the assertions")
    return np.ndarray(info.shape, info.dtype, memory, info.pointer - low, info.byte_strides)
