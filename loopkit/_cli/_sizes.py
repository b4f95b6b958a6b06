"""Sizes on the command line: ``n=4096 m=1000``."""

from __future__ import annotations

from collections.abc import Iterable

from loopkit._errors import InvalidArgumentError
from loopkit._spelling import shown


def sizes_of(words: Iterable[str]) -> dict[str, int]:
    """The numbers by name; raises :class:`InvalidArgumentError` for other words."""
    sizes: dict[str, int] = {}
    for word in words:
        name, equals, value = word.partition("=")
        try:
            number = int(value.replace("_", "")) if equals and value.isascii() else None
        except ValueError:
            number = None
        if number is None or not name.isidentifier():
            raise InvalidArgumentError(f"{shown(word)} is no size", instead="for example, n=4096")
        if name in sizes:
            raise InvalidArgumentError(f"the size '{name}' is given twice")
        sizes[name] = number
    return sizes
