"""Errors for calls whose arguments fit no parameter, and warnings that point at the user's line."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from loopkit._compat.gone import without_ignored
from loopkit._errors import InvalidArgumentError, UnknownNameError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)


def fitting(function: Callable[P, R]) -> Callable[P, R]:
    """Make calls that ``function`` cannot take an :class:`InvalidArgumentError`.

    Signatures stay.  Only a call that has failed is looked at: others cost nothing more.
    Arguments of Loopy's that change nothing (:mod:`loopkit._compat`) are left out then.
    """
    return _fitting(function, function.__name__, first=0)


def fitting_type(made: C) -> C:
    """:func:`fitting` for what makes values of a class."""
    initialise: Any = made.__init__  # type: ignore[misc]
    made.__init__ = _fitting(initialise, made.__name__, first=1)  # type: ignore[misc]
    return made


def _fitting(function: Callable[P, R], name: str, first: int) -> Callable[P, R]:
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            kept: Any = without_ignored(name, kwargs)
            try:
                signature.bind(*args, **kept)
            except TypeError as misfit:
                raise _error(name, signature, first, kept, misfit) from None
            if len(kept) == len(kwargs):
                raise
        return function(*args, **kept)

    return call


def _error(
    name: str, signature: inspect.Signature, first: int, given: dict[str, Any], misfit: TypeError
) -> InvalidArgumentError:
    known = list(signature.parameters)[first:]
    hands_on = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    for word in given:
        if word not in signature.parameters and not hands_on:
            near = UnknownNameError("argument", word, known)
            return InvalidArgumentError(
                f"{name} has no argument '{word}'",
                instead=near.instead if near.near else f"it takes {', '.join(known)}",
            )
    return InvalidArgumentError(f"{name}: {misfit}", instead=f"it takes {', '.join(known)}")


warned: dict[str, object] = {}
"""What has been said, by kind."""


def warn_once(kind: str, text: str) -> None:
    """Give a warning, unless one of its kind was given before."""
    mine = object()
    # One step, so that of several threads one warns, and nothing is locked where a process forks.
    if warned.setdefault(kind, mine) is mine:
        warnings.warn(text, RuntimeWarning, stacklevel=frames_inside())


def frames_inside() -> int:
    """How many frames up from the caller the nearest code outside loopkit is."""
    frame, count = sys._getframe(1), 1
    package = __name__.partition(".")[0]
    while frame.f_back and frame.f_globals.get("__name__", package).partition(".")[0] == package:
        frame, count = frame.f_back, count + 1
    return count
