"""Calls of the public interface with hostile and nearly valid arguments.

``python -m tests.fuzz --seconds 60 --workers 2`` draws calls at random and demands of each that it
succeeds or raises a ``LoopkitError``, within a time limit and within bounded memory.  What else
happens is put into buckets by kind and by the innermost line of loopkit, each with a way to see it
again: ``python -m tests.fuzz --replay AREA:NUMBER``.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))  # modules that tests share
