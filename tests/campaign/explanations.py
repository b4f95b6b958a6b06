"""Why some refusals are right although no size and order tried makes them wrong.

Brute force looks at results, and a proof at where every value comes from.  They
part ways where different values happen to be equal, where nobody looks at a
value, and where data could be worse than those that were drawn.  A needless
refusal that is none of these is a fault of the checker.
"""

from __future__ import annotations

import re

_DATA = """data decide which cells meet: legal for the data tried, or for any, where the order of
writes changes but not the last one"""
_COPY = "data decide what is written, so that it is open which cells the copy must hold"
_BUDGET = "the budget of isl operations is spent"
_LOST = "the values that race are equal, or overwritten before anybody reads them"
_HIDDEN = """the value that would change is overwritten before it reaches an output, or data seldom
let it matter, or it is the same by arithmetic (a sum in another order)"""
_ONCE = "what an argument holds is stored once for each instance, also where the values are equal"

_KNOWN = (
    (r"IllegalTransformError.*executed more than once", _ONCE),
    (r"UndecidedError.*data decide", _COPY),
    (r"UndecidedError.*(might|may)", _DATA),
    (r"UndecidedError.*moves? to another array", _COPY),
    (r"UndecidedError.*operations", _BUDGET),
    (r"RaceError.*both write", _LOST),
    (r"RaceError.*(reads|overwrite)", _HIDDEN),
    (r"IllegalTransformError.*would (read|overwrite|write)", _HIDDEN),
)


def explanation(bucket: str) -> str:
    """A sentence about a kind of refusal; empty where none is known."""
    for pattern, text in _KNOWN:
        if re.search(pattern, bucket):
            return " ".join(text.split())
    return ""
