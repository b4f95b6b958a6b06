"""What scripts import from ``loopy.type_inference``."""

from loopkit.loopy._elsewhere import names_for

__getattr__ = names_for(__name__)
