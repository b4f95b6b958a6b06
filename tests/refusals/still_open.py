"""Cases that do not hold yet, by name, with what is wrong; a mended one must go from here."""

# Illegal steps that are not refused as they should be, and legal ones that are refused.
REFUSALS: dict[str, str] = {}
ACCEPTANCES: dict[str, str] = {}

# What ``verify`` does not prove of legal schedules, and does not refute of illegal ones.
EQUAL: dict[str, str] = {}
DIFFERENT: dict[str, str] = {}
