"""What scripts import from ``loopy.target.opencl``."""

from loopkit.loopy.target import OpenCLTarget

__all__ = ["OpenCLTarget"]
