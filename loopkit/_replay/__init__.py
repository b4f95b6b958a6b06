"""Two kernels run side by side on small examples, with a memory of how each value came about.

``interpreter`` is the reference interpreter on wide numbers, in several orders of blocks and
threads; ``examples`` says at which sizes, and on what data.  ``compare`` runs both kernels and
tells where they differ.
"""
