"""What scripts import from ``loopy.target.ispc``."""

from loopkit.loopy.target import ISPCTarget

__all__ = ["ISPCTarget"]
