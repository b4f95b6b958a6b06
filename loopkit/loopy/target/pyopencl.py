"""What scripts import from ``loopy.target.pyopencl``."""

from loopkit.loopy.target import PyOpenCLTarget

__all__ = ["PyOpenCLTarget"]
