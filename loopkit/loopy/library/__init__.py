"""What scripts import from ``loopy.library``."""

from loopkit.loopy._elsewhere import names_for
from loopkit.loopy.library import function, reduction

__all__ = ["function", "reduction"]

__getattr__ = names_for(__name__)
