"""What isl may spend: a computation that grows too large ends, and the answer says so."""

from __future__ import annotations

BUDGET = 3_000_000
"""Operations that isl may spend on proving one kernel a schedule of the other: a few seconds."""

EXAMPLES = 2_000_000
"""Operations that isl may spend on running both kernels at small sizes."""

WITNESS = 300_000
"""Operations that isl may spend on the sizes at which a correspondence fails; or on its words."""
