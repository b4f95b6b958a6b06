"""What scripts import from ``loopy.diagnostic``."""

from loopkit._errors import LoopkitError as LoopyError
from loopkit._errors import LoopkitWarning as LoopyWarning

__all__ = ["LoopyError", "LoopyWarning"]
