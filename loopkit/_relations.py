"""Relations between plain values: the values of each key, and all values reachable from some."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, tuple[V, ...]]:
    """The values of each key; keys and values are in the order in which they first come."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in found.items()}


def reachable(start: Iterable[K], following: Callable[[K], Iterable[K]]) -> frozenset[K]:
    """``start``, and all that follows from one of it, directly or through others."""
    waiting = list(dict.fromkeys(start))
    found = set(waiting)
    while waiting:
        new = set(following(waiting.pop())) - found
        found |= new
        waiting += new
    return frozenset(found)
