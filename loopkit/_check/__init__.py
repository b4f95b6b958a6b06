"""The checker: proofs that a schedule computes what the kernel's text says.

One checker serves all transforms and knows none of them.  A transform hands
over the new kernel and how its statement instances map to the old ones; the
checker composes these maps down to the kernel of the text (``lineage``), asks
the text where every value comes from (``sources``), and the schedule whether
the same write is what every read sees (``flow``, ``align``), whether every
instance is executed once (``instances``), and whether accesses that data
decide keep their order (``order``).
"""

from loopkit._check.check import check_change

__all__ = ["check_change"]
