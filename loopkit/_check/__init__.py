"""The checker: proofs that a schedule computes what the kernel's text says.

This is translation validation (Pnueli and others, 1998): each result is proven, not the tool.

One checker serves all transforms and knows none of them.  A transform hands
over the new kernel and how its statement instances map to the old ones; the
checker composes these maps down to the kernel of the text (``instance_maps``), asks
the text where every value comes from (:mod:`loopkit._poly.dataflow`), and the schedule whether
the same write is what every read sees (``read_check``, ``statement_check``),
whether every instance is executed once (``instance_check``), and whether
accesses that data decide keep their order (``data_dependent_order``).  Most
steps need no more than a comparison with the kernel before (``step_proof``).
"""

from loopkit._check.checker import check_change

__all__ = ["check_change"]
