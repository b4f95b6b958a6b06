"""Cases that do not hold yet, by name, with what is wrong; a mended one must go from here."""

LOWERED = "lowering sees a race between blocks that the assertion excludes"

REFUSALS: dict[str, str] = {}

ACCEPTANCES: dict[str, str] = {
    "segments that may overlap": LOWERED,
    "ranges of an array with two axes": LOWERED,
}

# What ``verify`` does not prove of legal schedules, and does not refute of illegal ones.
EQUAL: dict[str, str] = {}

DIFFERENT: dict[str, str] = {}
