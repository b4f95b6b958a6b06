"""What scripts import from ``loopy.target.c``."""

from loopkit.loopy.target import CTarget, ExecutableCTarget

__all__ = ["CTarget", "ExecutableCTarget"]
