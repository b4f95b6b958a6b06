"""What scripts import from ``loopy.transform.pack_and_unpack_args``."""

from loopkit.loopy._elsewhere import names_for

__getattr__ = names_for(__name__)
