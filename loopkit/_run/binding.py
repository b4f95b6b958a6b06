"""Bound calls: arguments checked once, then nothing but the launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loopkit._frozen import dataclass
from loopkit._run import driver, launch
from loopkit._run.fast import defined, here_text, start_texts
from loopkit._run.module import LoadedProgram, stream_handle
from loopkit._run.plan import Resolved
from loopkit._run.sequence import Call

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
