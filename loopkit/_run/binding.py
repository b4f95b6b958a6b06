"""Bound calls: arguments checked once, then nothing but the launch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from loopkit._frozen import dataclass
from loopkit._run import driver, launch
from loopkit._run.fast import compiled
from loopkit._run.module import LoadedProgram, stream_handle
from loopkit._run.plan import Resolved
from loopkit._run.sequence import Call

_TEXT = """\
def {name}_bound(stream=None):
    _stream = {current} if stream is None else _stream_handle(stream)
    try:
        _config = _configs[_stream]
    except KeyError:
        _config = _new_config(_stream)
    if {here}:
        _status = _launch(_config, _function, _params, None)
        if not _status:
            return _result
    else:
        _status = 0
    return _slow(_config, _status)
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
    layouts = ready.resolved.layouts
    cleared = [launch.cleared(one, own, layouts) for one, _, own in ready.calls]
    if len(ready.calls) > 1 or any(cleared):
        return _bound_sequence(ready, current, constants, devices, result, cleared)
    [(loaded, grid, arguments)] = ready.calls
    # Each stream has a slot of its own that is never written again, so that threads
    # may share the function.
    slots: dict[int, launch.Slot] = {}
    configs: dict[int, ctypes.c_void_p] = {}
    function = ctypes.c_void_p(loaded.function)
    first = launch.filled_slot(loaded, grid, 0, arguments)
    start = launch.launch_function()

    def new_config(stream: int) -> ctypes.c_void_p:
        slot = launch.filled_slot(loaded, grid, stream, arguments)
        slots[stream] = slot
        configs[stream] = slot[1]
        return slot[1]

    def slow(config: ctypes.c_void_p, status: int) -> Any:
        """Another device is current, or this thread has no context, or it failed."""
        try:
            if not status or status in driver.NO_CONTEXT:
                with loaded.device.current():
                    status = start(config, function, first[2], None)
            launch.check(status, loaded)
        except driver.DriverError as error:
            raise loaded.device.recover(error) from None
        return result

    here = "True"
    if devices > 1:
        constants["_current_device"] = launch.current_device_function()
        here = f"_current_device() == {loaded.device.index}"
    name = loaded.program.name
    namespace: dict[str, Any] = {
        **constants,
        "_stream_handle": stream_handle,
        "_configs": configs,
        "_new_config": new_config,
        "_launch": start,
        "_function": function,
        "_params": first[2],
        "_result": result,
        "_slow": slow,
        "_keep": (first, slots, ready),
    }
    exec(compiled(_TEXT.format(name=name, current=current, here=here), name), namespace)
    made: Callable[..., Any] = namespace[f"{name}_bound"]
    made.__doc__ = f"Launch {name} with the arguments that it was bound to."
    return made


def _bound_sequence(
    ready: Ready,
    current: str,
    constants: dict[str, Any],
    devices: int,
    result: Any,
    cleared: Sequence[Sequence[tuple[int, int]]],
) -> Callable[..., Any]:
    """The same for several launches, one after the other, each behind what clears its memory."""
    clear = launch.clear_function() if any(cleared) else None
    device, start = ready.loaded.device, launch.launch_function()
    current_stream: Callable[[], int] = eval(f"lambda: {current}", constants)
    current_device = launch.current_device_function() if devices > 1 else lambda: device.index
    functions = [ctypes.c_void_p(loaded.function) for loaded, _, _ in ready.calls]
    filled: dict[int, list[launch.Slot]] = {}

    def launched(number: int, slot: launch.Slot, stream: int) -> int:
        for pointer, size in cleared[number]:
            status: int = clear(pointer, 0, size, stream) if clear is not None else 0
            if status:
                return status
        return int(start(slot[1], functions[number], slot[2], None))

    def launch_all(slots: list[launch.Slot], stream: int, *, here: bool) -> bool:
        """Launch; false where this thread has no context, and nothing was launched."""
        for number, slot in enumerate(slots):
            status = launched(number, slot, stream)
            if not here and not number and status in driver.NO_CONTEXT:
                return False
            launch.check(status, ready.calls[number][0])
        return True

    def call(stream: Any = None) -> Any:
        handle = current_stream() if stream is None else stream_handle(stream)
        slots = filled.get(handle)
        if slots is None:
            slots = [launch.filled_slot(one, grid, handle, own) for one, grid, own in ready.calls]
            filled[handle] = slots
        try:
            if current_device() != device.index or not launch_all(slots, handle, here=False):
                with device.current():
                    launch_all(slots, handle, here=True)
        except driver.DriverError as error:
            raise device.recover(error) from None
        return result

    name = ready.loaded.program.name
    call.__name__ = f"{name}_bound"
    call.__doc__ = f"Launch {name} with the arguments that it was bound to."
    return call
