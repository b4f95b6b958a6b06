"""What scripts import from ``loopy.translation_unit``."""

from loopkit.loopy._functions import for_each_kernel
from loopkit.loopy._unit import TranslationUnit

__all__ = ["TranslationUnit", "for_each_kernel"]
