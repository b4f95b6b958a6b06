"""The lexer: from source text to tokens, with comments kept separately.

Only tokens in the printer's own spelling are accepted, so that no C++ compiler can read a token
differently. For example ``010`` (octal), ``0x10``, ``1'000`` and ``3000000000`` (whose type
depends on the platform) are refused; the printer never writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from loopkit.codegen.c.errors import ReadError
from loopkit.codegen.c.tree import Number

_TOKEN = re.compile(
    r"""\ *(?:
      (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.'])*)
    | (?P<word>(?:lk_power<[1-9][0-9]{0,3}>
        |lk_(?:ipow|popcount|clz|ffs|brev|value)<[a-z0-9_\ ]+>)(?=\()
        |[A-Za-z_]\w*)
    | (?P<text>"C")
    | (?P<sign><<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|\+=|-=|\*=|/=|%=|&=|\|=|\^=|
               [-+*/%<>=!~&|^?:;,.(){}\[\]])
    )""",
    re.VERBOSE | re.ASCII,
)
_PRAGMA = "#pragma unroll"
# What begins a comment elsewhere, and other spellings of brackets and '#'.
_FOREIGN = re.compile(r"/\*|<:|:>|<%|%>|%:")
_CONTINUED = ("\\", "??/")
_INTEGER = re.compile(r"(0|[1-9][0-9]*)(u|LL|ULL)?")
_FRACTION = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?)(f?)")
_SUFFIXES = {None: ("int", 31), "u": ("uint", 32), "LL": ("long", 63), "ULL": ("ulong", 64)}


class Token(NamedTuple):
    """One token; ``kind`` is number, word, text, sign, pragma or end."""

    kind: str
    text: str
    line: int


def check_characters(lines: Iterable[str]) -> None:
    """Refuse characters that compilers may interpret differently, and continued lines.

    A backslash at the end of a line joins it with the next one, also within a comment.
    """
    for number, line in enumerate(lines, 1):
        if not (line.isascii() and (line.isprintable() or not line)):
            raise ReadError(number, f"{line.strip()!a} holds a character that is never printed")
        if line.rstrip().endswith(_CONTINUED):
            raise ReadError(number, "C joins the next line to one that ends like this")


def tokens(lines: list[str], first: int) -> tuple[list[Token], dict[int, str]]:
    """The tokens from line number ``first`` on, and the comment of each line that has one."""
    found: list[Token] = []
    comments: dict[int, str] = {}
    for number in range(first, len(lines) + 1):
        line = lines[number - 1]
        if line.lstrip().startswith("#"):
            if line.strip() != _PRAGMA:
                raise ReadError(number, f"'{line.strip()}' is not understood")
            found.append(Token("pragma", _PRAGMA, number))
            continue
        code, mark, comment = line.partition("//")
        if mark:
            comments[number] = comment.strip()
        if _FOREIGN.search(code):
            raise ReadError(number, f"'{code.strip()}' is not understood")
        position = 0
        for match in _TOKEN.finditer(code.rstrip()):
            if match.start() != position or match.lastgroup is None:
                break
            found.append(Token(match.lastgroup, match[match.lastgroup], number))
            position = match.end()
        if code[position:].strip():
            raise ReadError(number, f"'{code[position:].strip()}' is not understood")
    found.append(Token("end", "", len(lines)))
    return found, comments


def literal(text: str) -> Number | None:
    """The value of a literal, or None if it is not spelled as the printer spells it."""
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
    """Whether these are the shortest digits that read back as the same number."""
    return digits == (shortest if "." in shortest or "e" in shortest else shortest + ".0")
