"""Warnings that a process gives once, about the line of the user's that led to them."""

from __future__ import annotations

import sys
import warnings

given: dict[str, object] = {}
"""What has been said, by kind."""


def warn(kind: str, text: str) -> None:
    """Give a warning, unless one of its kind was given before."""
    mine = object()
    # One step, so that of several threads one warns, and nothing is locked where a process forks.
    if given.setdefault(kind, mine) is mine:
        warnings.warn(text, RuntimeWarning, stacklevel=frames_inside())


def frames_inside() -> int:
    """How many frames up from the caller the nearest code outside loopkit is."""
    frame, count = sys._getframe(1), 1
    package = __name__.partition(".")[0]
    while frame.f_back and frame.f_globals.get("__name__", package).partition(".")[0] == package:
        frame, count = frame.f_back, count + 1
    return count
