"""What scripts import from ``loopy.target.cuda``."""

from loopkit.loopy.target import CudaTarget

__all__ = ["CudaTarget"]
