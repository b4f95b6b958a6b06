"""Sizes on the command line: ``n=4096 m=1000``, and other numbers: ``alpha=0.5``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from loopkit._errors import InvalidArgumentError
from loopkit._spelling import shown

T = TypeVar("T")


def sizes_of(words: Iterable[str]) -> dict[str, int]:
    """The numbers by name; raises :class:`InvalidArgumentError` for other words."""
    return _named(words, int, "size")


def numbers_of(words: Iterable[str]) -> dict[str, int | float]:
    """Numbers that need not be whole, by name; raises :class:`InvalidArgumentError` for others."""
    return _named(words, _number, "number with a name")


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _named(words: Iterable[str], read: Callable[[str], T], what: str) -> dict[str, T]:
    found: dict[str, T] = {}
    for word in words:
        name, equals, value = word.partition("=")
        try:
            number = read(value.replace("_", "")) if equals and value.isascii() else None
        except ValueError:
            number = None
        if number is None or not name.isidentifier():
            raise InvalidArgumentError(f"{shown(word)} is no {what}", instead="for example, n=4096")
        if name in found:
            raise InvalidArgumentError(f"the size '{name}' is given twice")
        found[name] = number
    return found
