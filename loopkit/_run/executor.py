"""The GPU executor: calls on the caller's arrays, and launches with bound arguments."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from loopkit._errors import LaunchError, LoopkitError
from loopkit._frozen import dataclass
from loopkit._program import ArrayParam, Program
from loopkit._run import driver, fast
from loopkit._run import host_copies as copies
from loopkit._run import launch_call as launch
from loopkit._run.arrays import HOST
from loopkit._run.fast import defined, here_text, start_texts
from loopkit._run.launch_sequence import Call, calls_of
from loopkit._run.module import LoadedProgram, Modules, stream_handle, take_stream
from loopkit._run.plan import ArgumentPlan, Resolved

_TEXT = """\
def {name}_bound(stream=None):
    _handle = {current} if stream is None else _stream_handle(stream)
    try:
        {configs} = _configs[_handle]
    except KeyError:
        {configs} = _new_configs(_handle)
    _status = ({first} if {here} else {no_context}){rest}
    if not _status:
        return _result
    return _slow(_handle, _status)
"""


@dataclass
class Ready:
    """A checked call with its memory, about to be launched."""

    resolved: Resolved
    loaded: LoadedProgram
    stream: int
    objects: dict[str, Any]
    calls: list[Call]
    scratch: list[Any]

    def result(self) -> Any:
        """What the call returns."""
        plan = self.resolved.plan
        return plan.pack_outputs([self.objects[name] for name in plan.outputs])


def bound_launch(
    ready: Ready, current: str, constants: dict[str, Any], devices: int
) -> Callable[..., Any]:
    """A function that launches with fixed arguments, on the stream current at each call.

    ``current`` is the text of an expression for that stream, over ``constants``.
    """
    result = ready.result()
    if not ready.calls:
        return lambda stream=None: result
    device, name = ready.loaded.device, ready.loaded.program.name
    # Each stream has slots of its own that are never written again, so that threads may share the
    # function.
    kept: dict[int, list[launch.Slot]] = {}
    configs: dict[int, Any] = {}

    def new_slots(stream: int) -> list[launch.Slot]:
        return [launch.filled_slot(one, grid, stream, own) for one, grid, own in ready.calls]

    def new_configs(stream: int) -> Any:
        slots = kept.setdefault(stream, new_slots(stream))
        configs[stream] = [slot[1] for slot in slots] if len(slots) > 1 else slots[0][1]
        return configs[stream]

    def slow(stream: int, status: int) -> Any:
        """Another device is current, or this thread has no context, or it failed."""
        try:
            if status in driver.NO_CONTEXT:
                with device.current():
                    status = again(stream, *(slot[1] for slot in kept[stream]))
            launch.check(abs(status), ready.loaded)
        except driver.DriverError as error:
            raise device.recover(error) from None
        return result

    first, *rest = start_texts(ready.calls, ready.resolved.layouts, constants)
    slots = new_slots(0)
    places = ", ".join(f"_config_{n}" for n in range(len(slots)))
    text = _TEXT.format(
        name=name,
        current=current,
        configs=places,
        first=first,
        here=here_text(device.index, devices, constants) or "True",
        no_context=min(driver.NO_CONTEXT),
        # What fails behind others must not run again.
        rest=f" or -({' or '.join(rest)})" if rest else "",
    )
    namespace: dict[str, Any] = {
        **constants,
        **{f"_params_{n}": slot[2] for n, slot in enumerate(slots)},
        "_stream_handle": stream_handle,
        "_configs": configs,
        "_new_configs": new_configs,
        "_result": result,
        "_slow": slow,
        "_keep": (slots, kept, ready),
    }
    made = defined(text, f"{name}_bound", namespace)
    again = eval(f"lambda _handle, {places}: {' or '.join((first, *rest))}", namespace)
    made.__doc__ = f"Launch {name} with the arguments that it was bound to."
    return made


class CudaExecutor:
    """Runs a kernel on a GPU.

    Arrays on a GPU are used where they are, and the call returns before the kernel is
    done: the work is ordered on the current stream of the library that the first
    array belongs to, or on ``stream=``.  Arrays in host memory are copied to the GPU
    and back, and the call waits.

    Parameters
    ----------
    program_for:
        Gives the program for arrays of which those named have strides of their own.

    Attributes
    ----------
    call:
        The function that calls go through at this moment.  It changes as calls with
        new kinds and shapes of arrays come: read it anew for every call.
    """

    def __init__(self, program_for: Callable[[frozenset[str]], Program]) -> None:
        self._modules = Modules(program_for)
        self._lock = threading.Lock()
        self._chain: list[tuple[Any, Any]] = []
        self._spare: dict[Any, Any] = {}
        self.plan = ArgumentPlan(self._modules.program(frozenset()))
        self.call: Callable[..., Any] = self._checked_call

    def __repr__(self) -> str:
        return f"<CudaExecutor {self.plan.signature()}>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel; returns its outputs.

        Sizes are inferred from the arrays.  Outputs that are not passed are allocated.
        """
        return self.call(*args, **kwargs)

    def _checked_call(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._spare:
            function = self._from_spare(args, kwargs)
            if function is not None:
                return function(*args, **kwargs)
        try:
            return self._resolve_and_run(*args, **kwargs)
        except driver.DriverError:
            raise
        except Exception as error:
            # A library may say in its own words that the context is lost, and what arrays share
            # says nothing where they are lost with it.
            judged = isinstance(error, LoopkitError) and not isinstance(error, LaunchError)
            lost = None if judged else driver.lost_error()
            if lost is None:
                raise
            raise lost from error

    def _resolve_and_run(self, /, *args: Any, **kwargs: Any) -> Any:
        stream = take_stream(self.plan.names, kwargs)
        resolved = self.plan.resolve(args, kwargs)
        if resolved.location == HOST:
            return copies.run(resolved, self._modules, stream)
        device = driver.device(resolved.location.index)
        with device.working():
            ready = self._prepare(resolved, device, stream)
            for loaded, grid, own in ready.calls:
                launch.launcher(loaded, grid, ready.stream, own, resolved.layouts)()
            if not resolved.stream_ordered:
                device.wait(ready.stream, self.plan.name)
            for pointer in ready.scratch:
                driver.call("cuMemFreeAsync", pointer, ready.stream)
        if fast.possible(resolved, len(ready.calls)):
            given, devices = self.plan.given(args, kwargs), driver.device_count()
            made = fast.Writer(resolved, given, ready.loaded, devices, self._checked_call)
            self._put_first(fast.key_of(self.plan, given, resolved.arrays), made.function())
        return ready.result()

    def _prepare(self, resolved: Resolved, device: driver.Device, stream: int | None) -> Ready:
        """Load the program, allocate what is missing, and collect the arguments."""
        loaded = self._modules.on(resolved.strided, device)
        first = next(iter(resolved.arrays.values()))
        handle = first.current_stream() if stream is None else stream
        objects: dict[str, Any] = {}
        pointers: dict[str, int] = {}
        scratch: list[Any] = []
        on_stream: Any = contextlib.nullcontext()
        if stream is not None:
            on_stream = resolved.kind.working_on(stream, device.index)
        with on_stream:
            for param in resolved.plan.array_params:
                name, layout = param.name, resolved.layouts[param.name]
                info, kind = resolved.arrays.get(name), resolved.kind
                if info is None and param.is_scratch and not kind.has_guard:
                    size = layout.span * param.dtype.itemsize
                    pointers[name] = driver.allocate(size, handle)
                    scratch.append(pointers[name])
                    continue
                if info is None:
                    wanted = launch.allocated(param, layout)
                    info = kind.describe(kind.allocator(*wanted, resolved.location)(), name)
                elif param.is_written and info.kind.immutable:
                    info = info.kind.describe(info.kind.copy(info.object), name)
                objects[name], pointers[name] = info.object, info.pointer
        arguments = [
            pointers[p.name] if isinstance(p, ArrayParam) else fast.packable(p, resolved)
            for p in loaded.program.params
        ]
        calls = calls_of(loaded, resolved.values, arguments)
        return Ready(resolved, loaded, handle, objects, calls, scratch)

    def _from_spare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function for these arguments among those that are not in the chain any more."""
        names = {n: v for n, v in kwargs.items() if n != "stream" or n in self.plan.names}
        try:
            given = self.plan.given(args, names)
            key = fast.key_of(self.plan, given, self.plan.describe(given))
            found = self._spare.get(key)
        except (LoopkitError, TypeError):  # or no hash: the full check says what is wrong
            return None
        if found is not None:
            self._put_first(key, found)
        return found

    def _put_first(self, key: Any, function: Any) -> None:
        with self._lock:
            # There is one for the same signature if the caller kept an old `call`, or if
            # the arrays have other positions relative to each other.
            older = [(k, f) for k, f in self._chain if k != key]
            self._chain = [(key, function), *older[: fast.CHAIN - 1]]
            self._spare.pop(key, None)
            for old_key, old in older[fast.CHAIN - 1 :]:
                old.__globals__["_next"] = self._checked_call
                self._spare[old_key] = old
                if len(self._spare) > fast.SPARE:
                    del self._spare[next(iter(self._spare))]
            functions = [f for _, f in self._chain]
            for one, after in zip(functions, [*functions[1:], self._checked_call], strict=True):
                one.__globals__["_next"] = after
            self.call = function

    def bind(self, /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """Check the arguments once; the result launches with them, and only that.

        It takes ``stream=``, and otherwise uses the stream that is current when it is
        called.  Outputs that are not passed are allocated once, and every call writes
        them anew.  The arrays' memory must stay where it is.
        """
        fixed = take_stream(self.plan.names, kwargs)
        resolved = self.plan.resolve(args, kwargs)
        if resolved.location == HOST or not resolved.stream_ordered:

            def call(stream: Any = None) -> Any:
                handle = fixed if stream is None else stream_handle(stream)
                extra = {} if handle is None else {"stream": handle}
                return self._checked_call(*args, **kwargs, **extra)

            return call
        device = driver.device(resolved.location.index)
        with device.working():
            ready = self._prepare(resolved, device, fixed)
        constants: dict[str, Any] = {}
        first = next(iter(resolved.arrays.values()))
        current = first.stream_source(constants) if fixed is None else str(fixed)
        return bound_launch(ready, current, constants, driver.device_count())
