"""``loopy.kernel`` in the import of a script: see :mod:`loopkit.loopy.kernel.data`."""

from loopkit.loopy._unit import TranslationUnit as LoopKernel
from loopkit.loopy.kernel import array, creation, data, function_interface, instruction, tools

__all__ = [
    "LoopKernel",
    "array",
    "creation",
    "data",
    "function_interface",
    "instruction",
    "tools",
]
