"""Cases that do not hold yet, by name, with what is wrong; a mended one must go from here."""

BLOCKS = "blocks or threads without an order are said to run in another one"
NEGATIVE = "not the smallest: negative values of new inames are avoided"
CHUNKS = "instance maps with min() are not understood"
PRIVATIZED = "the witness names the cell of the schedule, not that of the text"
STRIDES = "accepted: cells that lie on top of each other"
NAMES = "the index array is not named"
ASSERTIONS = "assertions about index arrays are not used"

REFUSALS: dict[str, str] = {
    "recurrence over the tiles only": BLOCKS,
    "shift in place over blocks": BLOCKS,
    "triangular solve, all rows at once": BLOCKS,
    "every thread writes the same cell": BLOCKS,
    "one shared scalar for all threads": BLOCKS,
    "one global tile for all blocks": BLOCKS,
    "skewed the wrong way": NEGATIVE,
    "a wavefront skewed the wrong way": NEGATIVE,
    "chunks of a recurrence on blocks": CHUNKS,
    "an axis for a value that the next iteration needs": PRIVATIZED,
    "an axis for a value that the same loop carries": PRIVATIZED,
    "cells of a tile on top of each other": STRIDES,
    "rows of a tile on top of each other": STRIDES,
    "a histogram over threads": NAMES,
    "segments that may overlap": "said to be illegal for certain, which data decide",
}

ACCEPTANCES: dict[str, str] = {
    "chunks of a recurrence on blocks": CHUNKS,
    "a value computed again after its input changed": "one of several readers may be rewritten",
    "a scatter over threads": ASSERTIONS,
    "a scatter through two arrays over threads": ASSERTIONS,
    "a scatter backwards": ASSERTIONS,
    "segments that may overlap": ASSERTIONS,
    "ranges of an array with two axes": ASSERTIONS,
    "an array that shares nothing with itself": ASSERTIONS,
    "a scatter kept in bounds by what the kernel writes": ASSERTIONS,
}
