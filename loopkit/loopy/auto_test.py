"""What scripts import from ``loopy.auto_test``."""

from loopkit.loopy._elsewhere import names_for

__getattr__ = names_for(__name__)
