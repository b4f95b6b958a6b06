"""Turns at isl, and a bound on what it may spend, so that nothing runs away.

isl counts its operations in one context for the whole process.  What works with sets
therefore takes turns: one thread at a time makes, transforms, proves, compares or lowers
kernels.  Nothing is lost by that, since isl's calls keep the interpreter's lock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import islpy as isl

LOWERING = 1_000_000
"""Operations that isl may spend on lowering, for each statement; the gallery needs up to 80,000."""

GRID = 20_000
"""Operations that isl may spend on the exact length of a grid before a bound of it does."""

P = ParamSpec("P")
R = TypeVar("R")


class SpentError(Exception):
    """isl has spent all that it was allowed."""


class _Turns(threading.local):
    """The turns that this thread has taken and not given back, one inside another."""

    depth = 0


_turns = _Turns()
_lock = threading.RLock()


@contextmanager
def turn() -> Iterator[None]:
    """Wait until no other thread works with isl, and keep others waiting inside."""
    with _lock:
        _turns.depth += 1
        try:
            yield
        finally:
            _turns.depth -= 1


def in_turn(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function that works with isl callable from several threads."""

    @wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        with turn():
            return function(*args, **kwargs)

    return alone


def _begin_anew() -> None:
    """In a process that was forked: the thread whose turn it was is not here."""
    global _lock
    if not _turns.depth:
        _lock = threading.RLock()
        isl.DEFAULT_CONTEXT.set_max_operations(0)
        isl.DEFAULT_CONTEXT.reset_operations()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


@contextmanager
def at_most(operations: int) -> Iterator[None]:
    """Let isl spend at most ``operations`` inside; raises :class:`SpentError` beyond.

    Inside of another bound this one allows no more than that, which counts anew when this
    one ends.  An operation takes 0.3 to 50 microseconds.
    """
    context = isl.DEFAULT_CONTEXT
    with turn():
        before = int(context.get_max_operations())
        context.reset_operations()
        context.set_max_operations(min(operations, before) if before else operations)
        try:
            yield
        except isl.Error:
            if not is_spent():
                raise
            raise SpentError from None
        finally:
            context.set_max_operations(before)
            context.reset_operations()


_ONE = isl.Val(1)


def is_spent() -> bool:
    """Whether isl failed because it has spent what it was allowed.

    What it says of the failure does not tell: a text then has a syntax error, too.
    """
    return _ONE.to_str() is None
