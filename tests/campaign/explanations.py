"""Why some refusals are right although no size and order tried makes them wrong.

Brute force looks at results, and a proof at where every value comes from.  They
part ways where different values happen to be equal, where nobody looks at a
value, and where data could be worse than those that were drawn.  A needless
refusal that is none of these is a fault of the checker.
"""

from __future__ import annotations

import re

_KNOWN = (
    (
        r"UndecidedError.*(might|may)",
        "data decide which cells meet; legal for the data tried, or for any (then the order of "
        "writes changes, but not the last one)",
    ),
    (
        r"UndecidedError.*moves? to another array",
        "data decide what is written, so that which cells the copy must hold is open",
    ),
    (
        r"UndecidedError.*operations",
        "the budget of isl operations is spent",
    ),
    (
        r"RaceError.*both write",
        "the values that race are overwritten before anybody reads them, or are equal",
    ),
    (
        r"(RaceError.*reads|RaceError.*overwrite|IllegalTransformError.*would (read|overwrite|write))",
        "the value that would change is overwritten before it reaches an output, depends on data "
        "such that it seldom matters, or is the same by arithmetic (sums in another order)",
    ),
)


def explanation(bucket: str) -> str:
    """A sentence about a kind of refusal; empty where none is known."""
    for pattern, text in _KNOWN:
        if re.search(pattern, bucket):
            return text
    return ""
