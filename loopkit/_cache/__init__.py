"""Compiled kernels on disk, for all executors: shared by processes, and deleted at any time.

``folder`` says where files may be kept, and which folders can be trusted with what is
executed later; ``entries`` reads and writes the entries.  A cache that cannot be used costs
one warning and the time to compile anew, never a call.
"""

from loopkit._cache.entries import Entry, key_of, load, store, write
from loopkit._cache.folder import find, private, working, writing

__all__ = ["Entry", "find", "key_of", "load", "private", "store", "working", "write", "writing"]
