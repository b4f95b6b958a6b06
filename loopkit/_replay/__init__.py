"""Execution of two kernels on small examples, with the provenance of each value.

``interpreter`` is the reference interpreter with wide number types, for several orders of blocks
and threads.  ``examples`` chooses sizes and data.  ``compare`` runs both kernels and reports where
their results differ.
"""
