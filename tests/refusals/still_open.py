"""Cases that do not hold yet, by name, with what is wrong; a mended one must go from here."""

BOUNDS = "texts that leave an array are not refused"

REFUSALS: dict[str, str] = {}

ACCEPTANCES: dict[str, str] = {
    "segments that may overlap": "lowering: blocks race on y, if the data lets both run; the assertion is not used",
    "ranges of an array with two axes": "lowering: blocks race on y, if the data lets both run; the assertion is not used",
}
