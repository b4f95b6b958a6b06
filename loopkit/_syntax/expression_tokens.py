"""Tokens of expressions: numbers, malformed tokens, and the errors for them."""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn

from loopkit._expression import INSTEAD, TOO_DEEP
from loopkit._nodes import TypeCast
from loopkit._promotion import DTYPES, LARGEST_BITS, DType, like_types
from loopkit._syntax.tokens import CLOSING, END, OPENING, Words

# `for`, `end` and their kin are words of the language only where a line begins: a loop may well
# run to a size named `end`.
KEYWORDS = frozenset(("and", "or", "not", "if", "else"))
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")

# What people write who come from C or C++.
FOREIGN = {
    "&&": "write 'and'",
    "||": "write 'or'",
    "!": "write 'not'",
    "?": "write 'a if condition else b' or 'if(condition, a, b)'",
    "=": "comparing for equality is written '=='",
    "->": "no such operator in an expression",
    ":": "slices are not part of the language: name an iname for each index",
    "'": "there are no strings in the language",
    '"': "there are no strings in the language",
    ";": "write one instruction per line",
    "$": "a use is tagged by a name behind its own, without blanks: x$near[i]",
    "@": "matrix products are written as sums: sum(k, a[i, k] * b[k, j])",
    ".": "names have no dots",
    "lambda": "there are no functions as values; a substitution rule is written f(x) := ...",
}

_SUFFIXES = {
    ("f", float): "float32",
    ("d", float): "float64",
    ("f", complex): "complex64",
    ("d", complex): "complex128",
}
"""The types of numbers that say theirs, as Loopy's do: ``2.0f``, ``5f``, ``1e-3d``, ``5jf``."""
_LONGEST_NUMBER = 1000
"""How many characters a number may have; no value of any type needs more."""


class ExpressionWords(Words):
    """The words of an expression: those of all texts, and names with a tag, ``x$near``."""

    pattern = re.compile(r"(?:np\.)?[A-Za-z_]\w*(?:\$[A-Za-z_]\w*)?|" + Words.pattern.pattern)

    __slots__ = ()

    def number(self, word: str) -> Any:
        """The value of the number that was read."""
        at = self.at - 1
        if word[0] == "0" and word.isdigit() and word.strip("0"):
            instead = f"write {word.lstrip('0')}"
            self.fail(at, f"'{word}' is no number: write a 0 in front", instead=instead)
        if word[-1] in "fd" and not word.startswith(("0x", "0X")):
            value = _read_number(word[:-1]) if len(word) <= _LONGEST_NUMBER else None
            value = float(value) if type(value) is int and len(word) < 18 else value
            if isinstance(value, (float, complex)) and abs(value) != math.inf:
                return TypeCast(DTYPES[_SUFFIXES[word[-1], type(value)]], value)
        value = _read_number(word) if len(word) <= _LONGEST_NUMBER else math.inf
        if value is None:
            self.fail_at_number(at, word)
        is_large = value.bit_length() > LARGEST_BITS if type(value) is int else value == math.inf
        if is_large:
            self.fail(at, "this number is larger than all that any type can hold")
        if type(value) is float and word[:2] in ("0x", "0X") and not _is_just(value, word):
            self.fail(
                at,
                f"float64 does not hold '{word}'",
                instead=f"write {value.hex()}, the nearest number that it holds",
            )
        return value

    def fail_at_depth(self) -> NoReturn:
        """Report that operations nest more deeply than what reads them can go."""
        self.fail(min(self.at, len(self.words) - 1), TOO_DEEP, instead=INSTEAD)

    def fail_at_leftover(self) -> NoReturn:
        """Report the word after a complete expression."""
        at = self.at
        word = self.words[at]
        if word in OPENING or word in CLOSING:
            self.fail_on_brackets()
        if word in FOREIGN:
            self.fail(at, f"{self.describe(at)} is not an operator", instead=FOREIGN[word])
        if word == ",":
            self.fail(at, "a comma is allowed only inside brackets")
        if word in ("{", "}"):
            self.fail(at, f"'{word}' does not belong in an expression")
        if word[:1].isalnum() or word[:1] == "_" or word in OPENING:
            self.fail(at, f"expected an operator before {self.describe(at)}")
        self.fail(at, f"'{word}' is out of place")

    def type_at(self, at: int) -> DType:
        """The type that word ``at`` names."""
        dtype = DTYPES.get(self.words[at].removeprefix("np."))
        if dtype is None:
            why = f"{self.describe(at)} is not the name of a type"
            self.fail(at, why, instead=like_types(self.words[at]))
        return dtype

    def fail_at_call(self, opened: int, why: str, instead: str = "") -> NoReturn:
        """Report the call whose arguments, from word ``opened`` on, have been read."""
        self.fail(opened - 1, why, instead=instead, last=self.at - 1)

    def fail_at_operand(self, at: int) -> NoReturn:
        """Report that no value begins at word ``at``."""
        word = self.words[at]
        if word == END or word in CLOSING:
            self.fail_on_brackets()
        if word == "[":
            self.fail_on_brackets()
            self.fail(at, "'[' needs the name of an array before it")
        if word in ("*", "**", "/") and self.words[max(at - 1, 0)] in ("*", "/"):
            self.fail_expecting("a value", "a power is written a**b", at=at)
        self.fail_expecting("a value", FOREIGN.get(word, ""), at=at)

    def fail_in_list(self, opened: int, closing: str) -> NoReturn:
        """Report what stands behind an item of the list that word ``opened`` opens."""
        at = self.at
        word = self.words[at]
        if word == END or word == "=" or word in CLOSING:
            self.fail_on_brackets()
        if word == "=":
            self.fail(
                at, "arguments cannot be named", instead="comparing for equality is written '=='"
            )
        if word in FOREIGN:
            self.fail(at, f"'{word}' is not an operator", instead=FOREIGN[word])
        where = self.position(opened)
        wanted = "','" if closing == "," else f"',' or '{closing}'"
        bracket = f"'{self.words[opened]}' opened at line {where.line}, column {where.column}"
        self.fail_expecting(wanted, bracket)

    def fail_at_number(self, at: int, word: str) -> NoReturn:
        """Report a word that begins like a number."""
        if word[:2] in ("0x", "0X") and "." in word and "p" not in word.lower():
            self.fail(at, f"'{word}' has no exponent", instead=f"write {word}p0, with one of 2")
        body = word.rstrip("fFlLuUhH")
        if word[-1] in "fF" and body and not word.lower().startswith("0x"):
            self.fail(
                at,
                f"the number '{word}' has a suffix",
                instead=f"write {body}: constants take the type of the other operand; "
                f"float32({body}) has a fixed type",
            )
        self.fail(at, f"'{word}' is neither a number nor a name")

    def fail_at_dotted(self, at: int) -> NoReturn:
        """Report a name with a dot."""
        self.fail(at, f"'{self.words[at]}' is not a value", instead="names have no dots")


def _read_number(word: str) -> Any:
    """The number that a word spells; None where it spells none."""
    if word[:2] in ("0x", "0X") and "p" in word.lower():
        try:
            return float.fromhex(word)
        except OverflowError:
            return math.inf
        except ValueError:
            return None
    for read in (int, float, complex if word[-1] in "jJ" else _read_prefixed):
        try:
            return read(word)
        except ValueError:
            continue
    return None


def _read_prefixed(word: str) -> int:
    """The value of ``0x1F`` and its kin."""
    return int(word, 0)


def _is_just(value: float, word: str) -> bool:
    """Whether a number is what ``0x1.8p-3`` spells: digits, then how often they are doubled."""
    digits, _, exponent = word[2:].lower().partition("p")
    whole, _, fraction = digits.partition(".")
    spelled = int(whole + fraction, 16)
    top, bottom = value.as_integer_ratio()
    doublings = int(exponent) - 4 * len(fraction) + bottom.bit_length() - 1
    if not spelled or not top:
        return not spelled and not top
    # Both are odd numbers that are doubled, however far apart.
    low = (spelled & -spelled).bit_length() - 1
    mine = (top & -top).bit_length() - 1
    return spelled >> low == top >> mine and low + doublings == mine
