"""Cases that do not hold yet, by name, with what is wrong; a mended one must go from here."""

BOUNDS = "texts that leave an array are not refused"
LOWERED = "lowering sees a race between blocks that the assertion excludes"

REFUSALS: dict[str, str] = {}

ACCEPTANCES: dict[str, str] = {
    "segments that may overlap": LOWERED,
    "ranges of an array with two axes": LOWERED,
}

# What ``verify`` does not prove of legal schedules, and does not refute of illegal ones.
EQUAL: dict[str, str] = {
    "a value of the row before, between two sums over it": "undecided",
}

DIFFERENT: dict[str, str] = {}
