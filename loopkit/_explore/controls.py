"""The arguments of the explored function as controls, with validated options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from loopkit._display.markup import visible
from loopkit._errors import InvalidArgumentError, UnknownNameError, nearest
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._spelling import shown

MOST = 10_000
"""Options of one argument, at most."""

HOW = "a list of options, a tuple of the least and the greatest int, or True or False"


@dataclass(frozen=True)
class Control:
    """One argument, and what it may be: ``options``, each at a position.

    ``kind`` is ``"slider"`` for numbers in a row, ``"checkbox"`` for False and True, and else
    ``"menu"``.  ``start`` is the position that comes first.
    """

    name: str
    kind: str
    options: tuple[Any, ...] | range
    start: int = 0

    def label(self, position: int) -> str:
        """What an option is called."""
        return label(self.options[position])

    def position(self, value: object) -> int:
        """Where a value stands among the options; raises for one that is none of them."""
        if isinstance(self.options, range):
            if type(value) is int and value in self.options:
                return self.options.index(value)
        else:
            for position, option in enumerate(self.options):
                if _are_same(option, value):
                    return position
        raise InvalidArgumentError(
            f"'{self.name}' cannot be {shown(value)} here", instead=f"it is {self.words()}"
        )

    def words(self) -> str:
        """All options in a few words."""
        if isinstance(self.options, range):
            return f"a number from {self.options[0]} to {self.options[-1]}"
        names = [self.label(n) for n in range(min(len(self.options), 8))]
        rest = len(self.options) - len(names)
        return ", ".join([*names[:-1], f"{rest + 1} others"] if rest else names)


Positions = tuple[int, ...]
"""A choice: the position of each control's option."""


def label(value: object) -> str:
    """A value as people read it, on one line."""
    if isinstance(value, str):
        value = value if value.isprintable() and value.strip() == value != "" else repr(value)
        return visible(value if len(value) <= 80 else value[:77] + "...")
    return shown(value)


def _are_same(one: object, other: object) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):  # True is not 1, and 2 is not 2.0
        return False
    try:
        return bool(one == other)
    except Exception:  # values from outside compare as they like
        return False


def controls_of(make: Callable[..., Kernel], given: Mapping[str, Any]) -> tuple[Control, ...]:
    """The controls for the arguments of a function, in its order.

    Raises :class:`InvalidArgumentError` for what is no function, for arguments that it needs and
    that were not given, and for options that cannot be shown; :class:`UnknownNameError` for
    arguments that it does not have.
    """
    if not callable(make) or isinstance(make, Kernel):
        raise InvalidArgumentError(
            f"explore takes a function that returns a kernel, not {shown(make)}",
            instead='explore(lambda tile: knl.split_iname("i", tile), tile=[8, 16, 32])',
        )
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"{shown(make)} does not say which arguments it takes",
            instead="a function of one's own, which calls it, does",
        ) from None
    kinds = inspect.Parameter
    named = {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
    }
    takes_any = any(parameter.kind is kinds.VAR_KEYWORD for parameter in parameters.values())
    for name in given:
        if not isinstance(name, str):
            raise InvalidArgumentError(f"arguments have names, and {shown(name)} is none")
        if name not in named and not takes_any:
            raise UnknownNameError("argument", name, named, asked=f"explore({_name(make)})")
    missing = [n for n, p in named.items() if p.default is kinds.empty and n not in given]
    if missing:
        raise InvalidArgumentError(
            f"{_name(make)} needs '{missing[0]}', of which nothing is said",
            instead=nearest(missing[0], given, f"{missing[0]}=... is {HOW}"),
        )
    order = [name for name in named if name in given] + [n for n in given if n not in named]
    return tuple(_control(name, given[name], named.get(name)) for name in order)


def _control(name: str, given: object, parameter: inspect.Parameter | None) -> Control:
    made = _kind(name, given)
    if parameter is not None and made.kind != "checkbox":
        with suppress(InvalidArgumentError):  # a default that is no option, or none
            return replace(made, start=made.position(parameter.default))
    return made


def _kind(name: str, given: object) -> Control:
    if isinstance(given, bool):
        return Control(name, "checkbox", (False, True), int(given))
    if isinstance(given, tuple):
        if len(given) != 2 or not all(type(end) is int for end in given):
            raise _refused(name, given, "a tuple is the least and the greatest of whole numbers")
        low, high = given
        if not -(1 << 31) <= low <= high < 1 << 31:
            raise _refused(name, given, "the least comes first, and both have 32 bits")
        return Control(name, "slider", range(low, high + 1))
    if not isinstance(given, list):
        raise _refused(name, given, "that is no list of options")
    if not 1 <= len(given) <= MOST:
        raise _refused(name, given, f"a list has 1 to {MOST:,} options, and not {len(given):,}")
    labels: dict[str, int] = {}
    for position, option in enumerate(given):
        before = labels.setdefault(label(option), position)
        if before != position:
            raise _refused(name, given, f"options {before} and {position} look alike")
    numbers = all(isinstance(o, (int, float)) and not isinstance(o, bool) for o in given)
    return Control(name, "slider" if numbers and len(given) > 1 else "menu", tuple(given))


def _refused(name: str, given: object, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"'{name}' cannot be chosen from {shown(given)}: {why}", instead=f"{name}=... is {HOW}"
    )


def _name(make: Callable[..., Any]) -> str:
    name = getattr(make, "__name__", None)
    return label(name) if isinstance(name, str) else shown(make)


def arguments(
    make: Callable[..., Kernel], choice: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The choice as the arguments of a call: those without names first."""
    places = [
        name
        for name, parameter in inspect.signature(make).parameters.items()
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and name in choice
    ]
    by_name = {name: value for name, value in choice.items() if name not in places}
    return [choice[name] for name in places], by_name
