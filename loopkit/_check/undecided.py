"""The third answer."""

from __future__ import annotations


class Undecided(Exception):
    """A question that could not be decided: ``why``, and what would decide it."""

    def __init__(self, why: str, instead: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.instead = instead
