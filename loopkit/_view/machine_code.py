"""The machine code of all steps of a page, compiled side by side."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from loopkit._errors import LoopkitError
from loopkit._program import Program
from loopkit._run.listing import Listing, listing_of

COMPILED = 6
"""Different sources that are compiled for one page, the last ones: half a second each."""

LINES = 8_000
"""Lines of PTX and of machine code on one page, those of the last step not counted."""

NOT_COMPILED = f"""machine code is shown for the last {COMPILED} different sources of a page, \
and for {LINES:,} lines
history[...].kernel.view(...) shows it for this step"""


def listings_of(programs: Sequence[Program], arch: str) -> Mapping[str, Listing | LoopkitError]:
    """What each source was compiled to, or why it cannot be; not all are, where they are many."""
    last_first = {program.source: program for program in reversed(programs)}
    chosen = list(last_first.values())[:COMPILED]

    def listed(program: Program) -> Listing | LoopkitError:
        try:
            return listing_of(program, arch)
        except LoopkitError as error:
            return error

    held: dict[str, Listing | LoopkitError] = {}
    room = LINES
    # NVRTC and the disassembler leave the interpreter to others while they work.
    with ThreadPoolExecutor(min(os.cpu_count() or 1, COMPILED)) as pool:
        for program, one in zip(chosen, pool.map(listed, chosen), strict=True):
            size = len(one.ptx) + len(one.sass) if isinstance(one, Listing) else 0
            if held and size > room:
                pool.shutdown(wait=False, cancel_futures=True)  # those before it are not shown
                break
            room -= size if held else 0
            held[program.source] = one
    return held
