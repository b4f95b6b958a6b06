"""Numbers of the text: only in the spellings that the printer has, which mean one thing in C.

C reads ``010`` as eight, ``0x10`` as sixteen, ``1'000`` as a thousand, and gives
``3000000000`` a type that differs between systems.  None of that is ever printed.
"""

from __future__ import annotations

import re

import numpy as np

from loopkit.codegen.c.tree import Number

_INTEGER = re.compile(r"(0|[1-9][0-9]*)(u|LL|ULL)?")
_FRACTION = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?)(f?)")
_SUFFIXES = {None: ("int", 31), "u": ("uint", 32), "LL": ("long", 63), "ULL": ("ulong", 64)}


def literal(text: str) -> Number | None:
    """What a literal stands for; None where it is not as the printer writes it."""
    whole = _INTEGER.fullmatch(text)
    if whole is not None:
        ctype, bits = _SUFFIXES[whole[2]]
        # Twenty digits are more than any type holds.
        if len(whole[1]) > 20 or int(whole[1]) >= 1 << bits:
            return None
        return Number(int(whole[1]), ctype)
    fraction = _FRACTION.fullmatch(text)
    if fraction is None:
        return None
    digits, suffix = fraction[1], fraction[2]
    if suffix:
        with np.errstate(over="ignore"):
            single = np.float32(float(digits))
        return Number(float(single), "float") if _spelled(str(single), digits) else None
    value = float(digits)
    return Number(value, "double") if _spelled(repr(value), digits) else None


def _spelled(shortest: str, digits: str) -> bool:
    """Whether digits are the shortest that give back the number which they are read as."""
    return digits == (shortest if "." in shortest or "e" in shortest else shortest + ".0")
