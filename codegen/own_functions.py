"""The users' device functions that a program calls, and their definitions."""

from __future__ import annotations

from loopkit._device_functions import DeviceFunction, OwnFunction, definitions_of, own_calls
from loopkit._kernel import Kernel
from loopkit._rules import expand_rules
from loopkit.codegen.c.tree import Own
from loopkit.codegen.c.types import C_TYPES

_SEPARATOR = ""


def called_in(kernel: Kernel) -> list[DeviceFunction]:
    """The functions that the statements of a kernel may call, with all their overloads."""
    if not kernel.functions:
        return []
    found: set[str] = set()
    for statement in expand_rules(kernel).statements:
        for expr in statement.expressions:
            found.update(call.function.name for call in own_calls(expr))
    return [o for f in kernel.functions if f.name in found for o in f.overloads]


def declared_in(kernel: Kernel) -> tuple[Own, ...]:
    """The declarations with which the C tree types calls of users' functions."""
    return tuple(
        Own(one.c_name, C_TYPES[one.result], tuple(C_TYPES[t] for t in one.types))
        for one in called_in(kernel)
    )


def texts_of(functions: list[DeviceFunction]) -> list[tuple[str, ...]]:
    """The lines of each definition that functions need."""
    return [tuple(text.split("\n")) for text in definitions_of(functions)]


def lines_above(kernel: Kernel) -> list[str]:
    """All definitions that a kernel needs, a blank line below each."""
    return [line for text in texts_of(called_in(kernel)) for line in (*text, _SEPARATOR)]


def all_texts(functions: tuple[OwnFunction, ...]) -> list[tuple[str, ...]]:
    """The lines of each definition of a kernel's functions, called or not."""
    return texts_of([o for f in functions for o in f.overloads])
