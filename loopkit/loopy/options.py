"""What scripts import from ``loopy.options``."""

from __future__ import annotations

from typing import Any

import loopkit


def Options(**given: Any) -> Any:
    """Options for :func:`make_kernel` and :func:`set_options`: Loopy's, or loopkit's own."""
    own = loopkit.Options.__dataclass_fields__
    return loopkit.Options(**given) if given and given.keys() <= own.keys() else dict(given)


__all__ = ["Options"]
