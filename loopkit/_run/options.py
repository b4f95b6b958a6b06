"""The options of executors: which there are, and what they may be."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopkit._errors import InvalidArgumentError, UnknownNameError
from loopkit._spelling import is_name, shown

#: In which order the host executor runs the threads of a block.
ORDERS = ("ascending", "descending", "random")


def _named(value: Any) -> str:
    """A wrong name in a message."""
    return value if is_name(value) else shown(value)


def _order(name: str, value: Any) -> str:
    if not isinstance(value, str) or value not in ORDERS:
        raise UnknownNameError(f"thread {name}", _named(value), ORDERS)
    return value


def _integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidArgumentError(f"{name} is an integer, and {shown(value)} is none") from None


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InvalidArgumentError(f"{name} is True or False, and {shown(value)} is neither")
    return bool(value)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "order": _order,
    "seed": _integer,
    "sanitize": _flag,
    "check_assertions": _flag,
}
_TAKEN = {
    "cuda": ("check_assertions",),
    "host": ("order", "seed", "sanitize", "check_assertions"),
    "reference": ("check_assertions",),
}
#: The names of the executors.
EXECUTORS = tuple(_TAKEN)


def check_name(executor: Any) -> str:
    """``executor`` itself, if there is one of that name."""
    if not isinstance(executor, str) or executor not in EXECUTORS:
        raise UnknownNameError("executor", _named(executor), EXECUTORS)
    return executor


def check(executor: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given a value, if ``executor`` takes them and they can have it."""
    for option in options:
        if option in _TAKEN[executor]:
            continue
        others = " and ".join(name for name, taken in _TAKEN.items() if option in taken)
        if others:
            raise InvalidArgumentError(
                f"the {executor} executor does not take {option}",
                instead=f"it belongs to the {others} executor",
            )
        raise UnknownNameError(
            "option", option, _TAKEN[executor], asked=f"for the {executor} executor"
        )
    given = {option: value for option, value in options.items() if value is not None}
    return {option: _CHECKS[option](option, value) for option, value in given.items()}
