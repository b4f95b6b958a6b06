"""Functions of Loopy's that loopkit calls otherwise, or has no need for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loopkit._compat.gone import UNCHANGED
from loopkit._errors import InvalidArgumentError
from loopkit._spelling import shown
from loopkit.loopy._unit import TranslationUnit


def unchanged(name: str) -> Callable[..., TranslationUnit]:
    """A function that takes a unit, and whatever else, and returns the unit."""

    def same(kernel: TranslationUnit, *args: Any, **kwargs: Any) -> TranslationUnit:
        if not isinstance(kernel, TranslationUnit):
            raise InvalidArgumentError(f"{name} takes a kernel, not {shown(kernel)}")
        return kernel

    same.__name__ = same.__qualname__ = name
    same.__doc__ = f"The kernel as it is: {UNCHANGED[name]}."
    return same
