"""The checker: proofs that a schedule computes what the kernel's text says.

This is translation validation (Pnueli and others, 1998): each result is proven, not the transform.

One checker serves all transforms and does not know them individually. A transform returns the new
kernel and, for each statement, the map from its new instances to the old ones. The checker
composes these maps down to the kernel of the text (``instance_maps``), computes the last writers
of each read in the text (:mod:`loopkit._poly.dataflow`), and proves that each read of the schedule
sees the same write (``read_check``, ``statement_check``), that every instance is executed once
(``instance_check``), and that accesses whose cells depend on data keep their order
(``data_dependent_order``). Most steps only need a comparison with the previous kernel
(``step_proof``).
"""

from loopkit._check.checker import check_change

__all__ = ["check_change"]
