"""Strict equality of values, which includes the types of all numbers in them.

In Python ``2 == 2.0 == np.int32(2)``, ``True == 1`` and ``0.0 == -0.0``, and pymbolic's nodes
compare their operands in the same way.  In a kernel these numbers differ.  All code that compares
expressions, or stores results by them, does it with this module: two values are equal if their
*walks* are, the sequences of all nodes and numbers in depth-first order.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cache, lru_cache, wraps
from threading import Lock
from types import CodeType, FunctionType
from typing import Any, ClassVar, ParamSpec, TypeVar

import numpy as np
import pymbolic.primitives as prim

from loopkit._budget import kept

P = ParamSpec("P")
T = TypeVar("T")

_KEY = "_loopkit_key"


class Key:
    """A hashable key of a value: two keys are equal exactly if the values are strictly equal."""

    __slots__ = ("_hash", "walk")

    def __init__(self, walk: tuple[object, ...]) -> None:
        self.walk = walk
        self._hash = hash(walk)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Key) and self._hash == other._hash and self.walk == other.walk

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # Hashes of strings differ from one process to the next.
        return Key, (self.walk,)


class Exact:
    """Base of frozen dataclasses (with ``eq=False``) that compare by strict equality.

    Fields with ``compare=False`` are ignored; ``compared_by`` lists attributes that are compared
    instead of the fields.  Only fields are pickled, not cached results.
    """

    compared_by: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and key_of(self) == key_of(other)

    def __hash__(self) -> int:
        return hash(key_of(self))

    def __getstate__(self) -> dict[str, Any]:
        kind: Any = type(self)
        return {name: self.__dict__[name] for name in _all_fields(kind)}


_REMEMBERS = (prim.ExpressionNode, Exact)


def same(a: Any, b: Any) -> bool:
    """Whether two values are the same, node by node."""
    return a is b or (type(a) is type(b) and key_of(a) == key_of(b))


def key_of(value: Any) -> Key:
    """The key of ``value``; cached in nodes and other frozen values."""
    known: dict[str, Any] | None = getattr(value, "__dict__", None)
    if known is None or not isinstance(value, _REMEMBERS):
        return Key(tuple(_walk(value)))
    found: Key | None = known.get(_KEY)
    if found is None:
        found = known[_KEY] = Key(tuple(_walk(value)))
    return found


def unique(values: Iterable[T]) -> list[T]:
    """The values without those that are the same as an earlier one."""
    found: dict[Key, T] = {}
    for value in values:
        found.setdefault(key_of(value), value)
    return [*found.values()]


def remembered(size: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function with a cache of ``size`` results by strict equality of its arguments."""

    def wrap(function: Callable[P, T]) -> Callable[P, T]:
        answers: dict[Key, T] = {}
        lock = Lock()

        @wraps(function)
        def ask(*arguments: P.args, **named: P.kwargs) -> T:
            key = key_of(arguments[0] if len(arguments) == 1 else arguments)
            try:
                return answers[key]
            except KeyError:
                pass
            answer = kept(function, *arguments, **named)
            with lock:
                if len(answers) >= size:
                    del answers[next(iter(answers))]
                answers[key] = answer
            return answer

        return ask

    return wrap


def digest_of(value: Any) -> str:
    """A digest that strictly equal values share, in every process."""
    return str(_digest(_walk(value)).hexdigest())


@cache
def fields_of(kind: type) -> tuple[str, ...] | None:
    """What counts of a dataclass, last ones first; None for other types."""
    if not dataclasses.is_dataclass(kind) or issubclass(kind, Enum):
        return None
    if issubclass(kind, Exact) and kind.compared_by:
        return kind.compared_by[::-1]
    return tuple(f.name for f in dataclasses.fields(kind) if f.compare)[::-1]


@cache
def _all_fields(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(kind))


_PLAIN = frozenset((int, bool, str, bytes))


def _walk(value: Any) -> list[object]:
    """All that ``value`` holds: each item's type, then its value or its items.

    How many items follow is known from a type, or said: two values with one walk are the same.
    """
    walk: list[object] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        kind: Any = type(item)
        if kind is prim.Variable:
            walk += (kind, item.name)
        elif kind in _PLAIN:
            walk += (kind, item)
        elif kind is tuple:
            walk += (kind, len(item))
            waiting += item[::-1]
        elif (names := fields_of(kind)) is not None:
            known: Key | None = getattr(item, _KEY, None)
            if known is not None:
                walk += known.walk
            else:
                walk.append(kind)
                waiting += [getattr(item, name) for name in names]
        elif _is_one(kind):
            walk += (kind, item)
        else:
            walk.append(kind)
            _walk_into(item, walk, waiting)
    return walk


@cache
def _is_one(kind: type) -> bool:
    """Whether items of a type are compared as they are: it holds no others, and no number."""
    several = (tuple, list, frozenset, set, dict)
    return not issubclass(kind, (np.generic, float, complex, type(None), *several))


def _walk_into(item: Any, walk: list[object], waiting: list[Any]) -> None:
    """Add the value of an ``item`` to a walk, or its items to those that are waiting.

    None has no value beside its type.
    """
    if isinstance(item, np.generic):
        walk += (item.dtype, item.tobytes())
    elif isinstance(item, (float, complex)):
        walk.append(_bits(item))
    elif isinstance(item, (tuple, list)):
        walk.append(len(item))
        waiting += item[::-1]
    elif isinstance(item, (frozenset, set)):
        walk.append(len(item))
        waiting += _in_order(item)
    elif isinstance(item, dict):
        walk.append(len(item))
        waiting += _in_order(item.items())


def _bits(number: float | complex) -> bytes:
    """The number as memory holds it: a nan is itself, and zeros have signs."""
    if isinstance(number, complex):
        return struct.pack("<dd", number.real, number.imag)
    return struct.pack("<d", number)


def _in_order(items: Iterable[Any]) -> list[Any]:
    """What has no order of its own, in one that is the same in every process."""
    items = [*items]
    if all(type(item) is str for item in items):
        return sorted(items)
    return sorted(items, key=lambda item: _digest(_walk(item)).digest())


def _digest(walk: Iterable[object]) -> Any:
    import hashlib  # which loads a library: few who import loopkit ask for digests

    return hashlib.sha256(b"".join(map(_framed, walk)))


def _framed(token: object) -> bytes:
    """One item of a walk, so that where it ends is known."""
    if isinstance(token, type):
        return _framed_type(token)
    return _framed_text(token) if type(token) is str else _with_length(token)


def _with_length(token: object) -> bytes:
    kind, text = _token(token)
    return b"%b%d:%b" % (kind, len(text), text)


_framed_text = lru_cache(1 << 12)(_with_length)
"""The same names stand in a walk again and again."""


@cache
def _framed_type(token: type) -> bytes:
    text = f"{token.__module__}.{token.__qualname__}".encode()
    return b"t%d:%b" % (len(text), text)


def _token(token: object) -> tuple[bytes, bytes]:
    """One item of a walk as bytes that identify it."""
    if isinstance(token, str):
        return b"s", token.encode("utf-8", "surrogatepass")
    if isinstance(token, int):
        return b"i", token.to_bytes(token.bit_length() // 8 + 1, "little", signed=True)
    if isinstance(token, bytes):
        return b"b", token
    if isinstance(token, np.dtype):
        inside = [(name, token[name].name) for name in token.names or ()]
        return b"d", f"{token.name} {token.str}{inside or ''}".encode()
    if isinstance(token, Enum):
        return b"e", token.name.encode()
    if isinstance(token, FunctionType):
        return b"f", _function(token)
    named = getattr(token, "__name__", "")  # a function of another language, a ufunc
    return b"o", f"{type(token).__module__}.{type(token).__qualname__} {named}".encode()


def _function(function: FunctionType, depth: int = 3) -> bytes:
    """A function by its name, by its code, and by what it holds: lambdas share one name."""
    code = function.__code__
    names = "\0".join((function.__module__, function.__qualname__, *code.co_names))
    held = [*code.co_consts, *(function.__defaults__ or ())]
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # not yet bound
            held.append(None)
    parts = [names.encode(), code.co_code]
    for value in held:
        if isinstance(value, CodeType):
            parts.append(value.co_code)
        elif isinstance(value, FunctionType):
            parts.append(_function(value, depth - 1) if depth else b"")
        else:
            parts.append(_digest(_walk(value)).digest())
    return b"\0".join(parts)
