"""``loopy.kernel`` in the import of a script: see :mod:`loopkit.loopy.kernel.data`."""

from loopkit.loopy._unit import TranslationUnit as LoopKernel
from loopkit.loopy.kernel import data, instruction

__all__ = ["LoopKernel", "data", "instruction"]
