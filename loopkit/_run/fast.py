"""Specialised functions for repeated calls with similar arguments.

The first call with arguments of some kind, dtype, shape, strides and device is checked in full.
Then a Python function is generated for exactly such arguments: it tests that the arguments match,
reads their addresses, and launches.  Other arguments are passed on to the function generated
before, then to a table of older ones, and finally to the full check.  The text of a function is
kept: ``inspect.getsource`` shows it.
"""

from __future__ import annotations

import ctypes
import functools
import keyword
import linecache
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from loopkit._expression import python_source
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._program import ArrayParam, ValueParam
from loopkit._run import driver, overlap
from loopkit._run import launch_call as launch
from loopkit._run.arrays import HOST, ArrayInfo, Layout
from loopkit._run.launch_sequence import Call, calls_of
from loopkit._run.module import LoadedProgram, stream_handle
from loopkit._run.plan import ArgumentPlan, Resolved
from loopkit._run.scalars import check_scalar, is_integer, is_plain, pack_scalar

#: How many functions are tried one after the other, and how many are kept besides.
CHAIN = 8
SPARE = 256
#: Launches of one call that a function makes; a call of more is checked each time.
LAUNCHES = 64
#: What the text says itself, beside names that begin with an underscore or are hidden.
_WORDS = frozenset(("stream", "type", "Exception"))


def possible(resolved: Resolved, launches: int) -> bool:
    """Whether calls like this one, of so many launches, can have a function of their own."""
    return (
        0 < launches <= LAUNCHES
        and bool(resolved.arrays)
        and all(info.kind.has_guard for info in resolved.arrays.values())
        and resolved.location != HOST
        and all(
            n.isidentifier() and not keyword.iskeyword(n) and n[0] != "_" and n not in _WORDS
            for n in (resolved.plan.name, *resolved.plan.names)
        )
    )


def key_of(plan: ArgumentPlan, given: Mapping[str, Any], infos: Mapping[str, ArrayInfo]) -> Any:
    """A key that is equal for calls which one specialised function can serve."""
    free = plan.free_scalars
    scalars = frozenset(
        (name, type(value), None if name in free else value)
        for name, value in given.items()
        if name not in infos
    )
    arrays = tuple(
        (name, type(i.object), i.shape, i.strides, i.dtype, i.location, i.stream)
        for name, i in infos.items()
    )
    return scalars, arrays


def _at(name: str) -> str:
    """The address of an array, in the text."""
    return hidden("at", name)


def _made(name: str) -> str:
    """An array that the text makes."""
    return hidden("new", name)


@dataclass
class Writer:
    """Writes a function for calls like the one that ``resolved`` came from.

    ``given`` is what was passed, ``devices`` how many there are, and ``fallback`` the full check;
    ``constants`` are what the text names.
    """

    resolved: Resolved
    given: Mapping[str, Any]
    loaded: LoadedProgram
    devices: int
    fallback: Callable[..., Any]
    constants: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plan: ArgumentPlan = self.resolved.plan
        #: Scalars that come with each call and decide nothing but themselves.
        self.free = {n for n in self.plan.free_scalars if n in self.given}

    def constant(self, value: Any, *word: str) -> str:
        """A name for a value in the text, which no argument has."""
        name = hidden(*word)
        self.constants[name] = value
        return name

    # -- the parts of the text

    def conditions(self) -> list[str]:
        """What must hold of the arguments, cheapest and likeliest to fail first."""
        passed = [n for n in self.plan.names if n in self.given]
        absent = [n for n in self.plan.names if n not in self.given]
        result = []
        for name in passed:
            if name in self.resolved.arrays:
                continue
            kind = self.constant(type(self.given[name]), "type", name)
            result.append(f"type({name}) is {kind}")
            if name not in self.free:
                result.append(f"{name} == {self.constant(self.given[name], 'given', name)}")
        for name, info in self.resolved.arrays.items():
            result += info.kind.guard(name, info, self.devices, self.constants)
        result.append(" is ".join([*absent, "None"]) if absent else "")
        result.append("not _more and not _unknown")
        if self.new_arrays():  # which belong to the current stream
            result.append("stream is None")
        result.append(here_text(self.resolved.location.index, self.devices, self.constants))
        result += self.checks()
        return [condition for condition in result if condition]

    def checks(self) -> list[str]:
        """The kernel's assumptions about scalars that come with each call."""
        result = []
        for check, names in self.plan.checks:
            if not names & self.free:
                continue
            spelled = {name: name for name in names}
            for name in sorted(names - self.free):
                spelled[name] = self.constant(self.resolved.values[name], "size", name)
            result.append(python_source(check.condition, spelled.__getitem__))
        return result

    def new_arrays(self) -> list[ArrayParam]:
        """Outputs that were not passed, and scratch arrays."""
        return [p for p in self.plan.array_params if p.name not in self.resolved.arrays]

    def addresses(self) -> list[str]:
        """Lines that read the address of every array."""
        result = []
        for param in self.new_arrays():
            wanted = launch.allocated(param, self.resolved.layouts[param.name])
            allocate = self.resolved.kind.allocator(*wanted, self.resolved.location)
            made = _made(param.name)
            result.append(f"{made} = {self.constant(allocate, 'make', param.name)}()")
            result.append(f"{_at(param.name)} = {self.resolved.kind.pointer(made)}")
        for name, info in self.resolved.arrays.items():
            result.append(f"{_at(name)} = {info.kind.pointer(name)}")
        return result

    def relations(self) -> list[str]:
        """The conditions on the addresses: outputs do not overlap other arrays."""
        arrays, result = self.resolved.arrays, []
        for name in self.plan.outputs:
            for other in overlap.apart_from(self.plan, arrays, name) if name in arrays else ():
                a, b = arrays[name], arrays[other]
                if not a.size or not b.size:
                    continue
                (low, high), (other_low, other_high) = a.byte_range(), b.byte_range()
                apart, distance = f"{_at(name)} - {_at(other)}", a.pointer - b.pointer
                if low < other_high and other_low < high:
                    # Interleaved, and found to share no element: only this distance is known to do.
                    result.append(f"{apart} == {self.constant(distance, 'distance', name, other)}")
                else:
                    least = self.constant(distance + other_low - high, "least", name, other)
                    most = self.constant(distance + other_high - low, "most", name, other)
                    result.append(f"not {least} < {apart} < {most}")
        return result

    def stream(self) -> str:
        """The stream as an expression."""
        first = next(iter(self.resolved.arrays.values()))
        current = first.stream_source(self.constants)
        if self.new_arrays():
            return current
        self.constants["_stream_handle"] = stream_handle
        return f"{current} if stream is None else _stream_handle(stream)"

    def arguments(self) -> list[str]:
        """The values to pack, in the order of the program's parameters."""
        result = []
        for param in self.loaded.program.params:
            if isinstance(param, ArrayParam):
                result.append(_at(param.name))
            elif param.role != "argument" or param.name not in self.free:
                result.append(self.constant(packable(param, self.resolved), "value", param.name))
            elif is_plain(param.dtype):
                result.append(param.name)
            else:
                pack = self.constant(functools.partial(_bytes_of, param), "bytes", param.name)
                result.append(f"{pack}({param.name})")
        return result

    def result(self) -> str:
        """What the function returns."""
        outputs = [n if n in self.resolved.arrays else _made(n) for n in self.plan.outputs]
        if len(outputs) <= 1:
            return outputs[0] if outputs else "None"
        self.constants["_outputs"] = self.plan.tuple_type
        return f"_outputs({', '.join(outputs)})"

    # -- all together

    def text(self, launches: Sequence[Call], starts: Sequence[str]) -> str:
        """The function's text; all that differs between sizes is in the constants."""
        numbers = range(len(launches))
        slot = ", ".join(f"_memory_{n}, _config_{n}, _params_{n}" for n in numbers)
        names = ", ".join(f"{n}=None" for n in self.plan.names)
        forward = f"{', '.join(self.plan.names)}, *_more, stream=stream, **_unknown"
        then = "\n            and "
        relations = self.relations()
        lines = [
            f"def {self.plan.name}({names}, *_more, stream=None, **_unknown):",
            "    try:",
            f"        _fits = (\n            {then.join(self.conditions())}\n        )",
            "        if _fits:",
            *(f"            {line}" for line in self.addresses()),
        ]
        if relations:
            lines += [f"            _fits = {' and '.join(relations)}", "        if _fits:"]
        lines += [
            "            _slot = _slots.pop() if _slots else _new_slot()",
            f"            {slot} = _slot",
            f"            _handle = {self.stream()}",
            *(
                f"            _pack_{n}(_memory_{n}, {launch.STREAM_OFFSET}, _handle, "
                f"{', '.join(map(str, arguments))})"
                for n, (_, _, arguments) in enumerate(launches)
            ),
            "    except Exception:",
            "        _fits = False  # the full check says what is wrong",
            "    if not _fits:",
            f"        return _next({forward})",
            f"    _status = {starts[0]}",
            "    if _status:",
            "        _slots.append(_slot)",
            f"        return _fallback({forward})",
            *(f"    _status = _status or {start}" for start in starts[1:]),
            "    _slots.append(_slot)",
            *(["    if _status:", "        _fail(_status)"] if starts[1:] else []),
            f"    return {self.result()}",
        ]
        return "\n".join(lines) + "\n"

    def function(self) -> Callable[..., Any]:
        """Write the text and turn it into a function."""
        launches = calls_of(self.loaded, self.resolved.values, self.arguments())
        text = self.text(launches, start_texts(launches, self.resolved.layouts, self.constants))
        slots: list[tuple[Any, ...]] = []

        def new_slot() -> tuple[Any, ...]:
            return tuple(
                part for loaded, grid, _ in launches for part in launch.new_slot(loaded, grid)
            )

        def fail(status: int) -> None:
            """A launch failed behind others, which must not run again."""
            try:
                launch.check(status, self.loaded)
            except driver.DriverError as error:
                raise self.loaded.device.recover(error) from None

        namespace: dict[str, Any] = {
            **self.constants,
            "_slots": slots,
            "_new_slot": new_slot,
            "_fail": fail,
            "_fallback": self.fallback,
            "_next": self.fallback,
        }
        for n, (loaded, _, _) in enumerate(launches):
            namespace[f"_pack_{n}"] = struct.Struct(launch.call_format(loaded)).pack_into
        return defined(text, self.plan.name, namespace)


def here_text(index: int, devices: int, constants: dict[str, Any]) -> str:
    """Whether the current device is this one, as an expression; empty where there is one only."""
    if devices <= 1:
        return ""
    constants["_current_device"] = launch.current_device_function()
    return f"_current_device() == {index}"


def start_texts(
    calls: Sequence[Call], layouts: Mapping[str, Layout], constants: dict[str, Any]
) -> list[str]:
    """Expressions that start launches on the stream ``_handle``, each 0 where that went well.

    Each launch begins with clearing what must hold zeros.  What they name joins ``constants``, but
    for the places ``_config_0`` and ``_params_0`` of each launch.
    """
    constants["_launch"] = launch.launch_function()
    result = []
    for n, (loaded, _, arguments) in enumerate(calls):
        constants[f"_function_{n}"] = ctypes.c_void_p(loaded.function)
        found = launch.cleared(loaded, arguments, layouts)
        if found:
            constants["_clear"] = launch.clear_function()
        steps = [f"_clear({pointer}, 0, {size}, _handle)" for pointer, size in found]
        steps.append(f"_launch(_config_{n}, _function_{n}, _params_{n}, None)")
        result.append(" or ".join(steps))
    return result


def defined(text: str, name: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    """The function that ``text`` defines under this name, with what it names."""
    exec(_compiled(text, name), namespace)
    made: Callable[..., Any] = namespace[name]
    return made


@functools.lru_cache(maxsize=256)
def _compiled(text: str, name: str) -> Any:
    """The code of ``text``, which tracebacks and ``inspect`` can show."""
    file_name = f"<loopkit {name} {abs(hash(text)):x}>"
    linecache.cache[file_name] = (len(text), None, text.splitlines(keepends=True), file_name)
    return compile(text, file_name, "exec")


def packable(param: ValueParam, resolved: Resolved, *, copied: bool = False) -> Any:
    """The value of ``param`` as the program's ``struct`` format takes it."""
    value = resolved.value(param, copied=copied)
    if not is_plain(param.dtype):
        return pack_scalar(value, param.dtype)
    return int(value) if is_integer(param.dtype) else value


def _bytes_of(param: ValueParam, value: Any) -> bytes:
    return pack_scalar(check_scalar(param.name, value, param.dtype), param.dtype)
