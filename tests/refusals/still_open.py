"""Cases that do not hold yet, by name, with what is wrong; a mended one must go from here."""

REFUSALS: dict[str, str] = {
    "chunks of a recurrence on blocks": "the cell is not worked out where a map has min()",
    "segments that may overlap": "said to execute what is no instance of the kernel",
}

ACCEPTANCES: dict[str, str] = {
    "segments that may overlap": "said to execute what is no instance of the kernel",
    "ranges of an array with two axes": "said to execute what is no instance of the kernel",
}
