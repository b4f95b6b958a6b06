"""Modules of Loopy's that hold what ``loopkit.loopy`` has under the same name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from loopkit.loopy._gone import NotThereError, not_there


def names_for(module: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module whose names are those of ``loopkit.loopy``."""

    def found(name: str) -> Any:
        # The package that a module is in has been imported before it.
        try:
            return getattr(sys.modules[__package__], name)
        except NotThereError:
            raise
        except AttributeError:
            raise not_there(module, name) from None

    return found
