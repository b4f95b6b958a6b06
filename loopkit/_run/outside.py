"""Whose line of code a warning is about."""

from __future__ import annotations

import sys


def frames() -> int:
    """The ``stacklevel`` of the nearest code outside loopkit, for a warning given by the caller."""
    frame, count = sys._getframe(1), 1
    package = __name__.partition(".")[0]
    while frame.f_back and frame.f_globals.get("__name__", package).partition(".")[0] == package:
        frame, count = frame.f_back, count + 1
    return count
