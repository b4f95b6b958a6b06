"""From source text to tokens, comments kept apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?[a-zA-Z]*|\.\d+(?:[eE][+-]?\d+)?[a-zA-Z]*)
    | (?P<word>lk_\w+<[\w ]+>(?=\()|[A-Za-z_]\w*)
    | (?P<text>"[^"]*")
    | (?P<sign><<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|\+=|-=|\*=|/=|%=|&=|\|=|\^=|
               [-+*/%<>=!~&|^?:;,.(){}\[\]])
    )""",
    re.VERBOSE,
)


class ReadError(Exception):
    """The text is not what loopkit prints; ``line`` says where."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line = line
        self.what = what


@dataclass(frozen=True, slots=True)
class Token:
    """One token; ``kind`` is number, word, text, sign or end."""

    kind: str
    text: str
    line: int


def tokens(lines: list[str], first: int) -> tuple[list[Token], dict[int, str]]:
    """The tokens from line number ``first`` on, and the comment of each line that has one.

    ``#pragma unroll`` only speaks to the compiler, and means nothing here.
    """
    found: list[Token] = []
    comments: dict[int, str] = {}
    for number in range(first, len(lines) + 1):
        line = lines[number - 1]
        if line.lstrip().startswith("#"):
            if line.strip() != "#pragma unroll":
                raise ReadError(number, f"'{line.strip()}' is not understood")
            continue
        code, mark, comment = line.partition("//")
        if mark:
            comments[number] = comment.strip()
        position, end = 0, len(code.rstrip())
        while position < end:
            match = _TOKEN.match(code, position)
            if match is None or match.lastgroup is None:
                raise ReadError(number, f"'{code[position:].strip()}' is not understood")
            found.append(Token(match.lastgroup, match[match.lastgroup], number))
            position = match.end()
    found.append(Token("end", "", len(lines)))
    return found, comments
