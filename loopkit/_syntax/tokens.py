"""Tokens of the language, and their positions in the text.

One compiled pattern splits a text.  Only the strings are stored; a position is found by splitting
again, which is needed only for error messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from typing import ClassVar, NoReturn, TypeVar

from loopkit._errors import ParseError, SourcePosition

T = TypeVar("T")
PositionOf = Callable[[int, int], SourcePosition]
"""From an offset and a length in the text that is parsed to a place in the user's text."""

# Alternatives in the order of how common they are.  Blanks match nothing, so `findall` skips
# them; whatever the language does not know matches `\S` and is reported where it stands.  A
# number takes the letters behind it along, so that `1.0f` and `2x` are seen whole; one in
# hexadecimal digits is a fraction where it has an exponent, and is none where it only has a dot.
_WORDS = re.compile(
    r"(?:np\.)?[A-Za-z_]\w*"
    r"|0[xX][\da-fA-F]*(?:\.[\da-fA-F]*)?(?:[pP][+-]?\d+\w*|\w*)"
    r"|(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+\w*|\w*)"
    r"|\*\*=?|//=?|<<=?|>>=?|[<>=!:+\-*/%&|^]=|&&|\|\||\.\.\.|->"
    r"|\S"
)

END = ""
"""The word after the last word of a text."""

OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {")": "(", "]": "[", "}": "{"}


def position_in(text: str, offset: int, length: int = 1) -> SourcePosition:
    """The place ``offset`` characters into ``text``, as line and column."""
    offset = max(0, min(offset, len(text)))
    line = text.count("\n", 0, offset) + 1
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    if end < 0:
        end = len(text)
    return SourcePosition(text, line, offset - start + 1, max(1, min(length, end - offset)))


def split_outside_brackets(
    text: str, start: int, stop: int, separator: str
) -> Iterator[tuple[int, int]]:
    """The pieces of ``text[start:stop]`` between separators that no bracket encloses."""
    depth = 0
    begin = start
    for at in range(start, stop):
        character = text[at]
        if character in OPENING:
            depth += 1
        elif character in CLOSING:
            depth -= 1
        elif character == separator and depth == 0:
            yield begin, at
            begin = at + 1
    yield begin, stop


class Words:
    """The words of one text with a place to read from; knows how to report an error.

    ``words`` ends in :data:`END`; ``at`` is the next word's number.  ``pattern`` finds the words
    of a language, and ``asked`` is what its errors say that was asked.
    """

    pattern: ClassVar[re.Pattern[str]] = _WORDS
    asked: ClassVar[str] = ""

    __slots__ = ("at", "position_of", "text", "words")

    def __init__(self, text: str, position_of: PositionOf | None = None) -> None:
        self.text = text
        self.words: list[str] = self.pattern.findall(text)
        self.words.append(END)
        self.at = 0
        self.position_of = position_of

    def position(self, number: int, last: int | None = None) -> SourcePosition:
        """Where word ``number`` (or the words up to ``last``) stands in the user's text."""
        spans = [match.span() for match in self.pattern.finditer(self.text)]
        end = spans[-1][1] if spans else 0
        spans.append((end, end + 1))
        start = spans[min(number, len(spans) - 1)][0]
        stop = spans[min(number if last is None else last, len(spans) - 1)][1]
        if self.position_of is not None:
            return self.position_of(start, max(1, stop - start))
        return position_in(self.text, start, max(1, stop - start))

    def fail(
        self, number: int, why: str, *, instead: str = "", last: int | None = None
    ) -> NoReturn:
        """Report an error at word ``number``."""
        where = self.position(number, last)
        raise ParseError(why, position=where, asked=self.asked, instead=instead) from None

    def fail_expecting(self, what: str, instead: str = "", *, at: int | None = None) -> NoReturn:
        """Report that something else stands next, or at word ``at``."""
        at = self.at if at is None else at
        self.fail(at, f"expected {what} but found {self.describe(at)}", instead=instead)

    def finish(self) -> None:
        """Report what stands behind that which was read, if anything does."""
        if self.words[self.at] != END:
            self.fail_at_leftover()

    def fail_at_leftover(self) -> NoReturn:
        """Report the word behind what was understood."""
        self.fail_expecting("the end of the text")

    def took(self, word: str) -> bool:
        """Whether ``word`` stands next; it is read then."""
        if self.words[self.at] != word:
            return False
        self.at += 1
        return True

    def series(self, between: Container[str], one: Callable[[], T]) -> list[T]:
        """What ``one`` reads, as often as one of the words ``between`` follows."""
        parts = [one()]
        while self.words[self.at] in between:
            self.at += 1
            parts.append(one())
        return parts

    def listed(self, closing: str, instead: str = "") -> Iterator[int]:
        """The numbers of the words at which the items of a list begin; the caller reads the items.

        Commas stand between them, and one may stand behind the last; ``closing`` is read, too.
        """
        while self.words[self.at] != closing:
            yield self.at
            if not self.took(",") and self.words[self.at] != closing:
                self.fail_expecting(f"',' or '{closing}'", instead)
        self.at += 1

    def describe(self, number: int) -> str:
        """Word ``number`` as a message names it."""
        word = self.words[number]
        if not word:
            return "the end of the text"
        return "a quote" if word in ("'", '"') else f"'{word}'"

    def fail_on_brackets(self) -> None:
        """Report the first bracket without a partner, if there is one."""
        opened: list[int] = []
        for number, word in enumerate(self.words):
            if word in OPENING:
                opened.append(number)
            elif word in CLOSING:
                if not opened:
                    self.fail(number, f"'{word}' closes nothing: no '{CLOSING[word]}' is open here")
                partner = opened.pop()
                if self.words[partner] != CLOSING[word]:
                    where = self.position(partner)
                    self.fail(
                        number,
                        f"'{word}' cannot close the '{self.words[partner]}' opened at "
                        f"line {where.line}, column {where.column}",
                        instead=f"'{OPENING[self.words[partner]]}' would close it",
                    )
        if opened:
            word = self.words[opened[-1]]
            self.fail(
                opened[-1],
                f"'{word}' is never closed",
                instead=f"add the '{OPENING[word]}' that belongs to it",
            )
