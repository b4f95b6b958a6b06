"""Errors raised for C code that is malformed or not understood."""

from __future__ import annotations

from loopkit._errors import LoopkitError


class ReadError(LoopkitError):
    """The text is not what loopkit prints; ``line`` says where."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line = line
        self.what = what


class UnreadableError(Exception):
    """An expression whose value or type is not understood."""


class DeepError(ReadError):
    """The code is nested deeper than the proof's limit; nothing is proven about it."""
