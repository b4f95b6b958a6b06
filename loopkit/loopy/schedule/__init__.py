"""What scripts import from ``loopy.schedule``."""

from loopkit.loopy._elsewhere import names_for
from loopkit.loopy.schedule import tools

__all__ = ["tools"]

__getattr__ = names_for(__name__)
