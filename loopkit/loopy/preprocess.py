"""What scripts import from ``loopy.preprocess``."""

from loopkit.loopy._elsewhere import names_for

__getattr__ = names_for(__name__)
