"""Cases that do not hold yet, by name, with what is wrong; a mended one must go from here."""

REFUSALS: dict[str, str] = {}

ACCEPTANCES: dict[str, str] = {
    "segments that may overlap": "loops that data bound are not followed",
    "ranges of an array with two axes": "loops that data bound are not followed",
}
