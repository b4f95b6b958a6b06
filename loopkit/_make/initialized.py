"""Whether every cell of a temporary is written before it is read."""

from __future__ import annotations

from loopkit._kernel import Kernel


def check_initialized(kernel: Kernel) -> None:
    """Raise where a temporary is read and nothing has been written before."""
