"""The random campaign: kernels and schedules drawn at random, to break the checker.

``python -m tests.campaign --sequences 20000`` runs it from the repository's
root; ``tests/test_campaign.py`` runs a bounded piece of it.  In turn:
`kernels` draws a kernel's text, `steps` a transform with arguments for a
kernel, `walk` a sequence of steps; `compiled` runs what was accepted, many
kernels to a compilation, in several orders of threads; `brute_force` looks for
an order and sizes that make a refused step wrong; `shrink` makes what was found
small, `tally` counts it, `workers` spreads it over processes.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))  # modules that tests share
