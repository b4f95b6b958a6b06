"""Values and conditions of domains as text for isl, with parentheses around every operation.

Integers have unlimited width, so ``x >> 3`` is ``floor(x / 8)`` and ``x & 24`` is
``8*(floor(x / 8) mod 4)`` for every ``x`` (:mod:`loopkit._linear`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

from loopkit._frozen import dataclass
from loopkit._linear import MOST_SHIFT, runs

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Value:
    """An affine expression divided by a positive number; ``text`` is isl's, and whole.

    ``constant`` is the value of a number; ``is_atom`` says that no operator
    stands outside of parentheses, ``has_factor`` that the text begins with a
    sign or a number and a factor behind it, which isl applies last.
    """

    text: str
    divisor: int = 1
    constant: int | Fraction | None = None
    is_atom: bool = False
    has_factor: bool = False

    @property
    def atom(self) -> str:
        """The text as one operand."""
        return self.text if self.is_atom else f"({self.text})"

    def times(self, factor: int) -> str:
        """The text of the numerator, multiplied."""
        if factor == 1:
            return self.text
        return f"-{self.atom}" if factor == -1 else f"{factor}*{self.atom}"


@dataclass(frozen=True, slots=True)
class Part:
    """One of the conditions that ``and`` joins, as isl is to read it, and the names it is about."""

    text: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition: all of its parts hold."""

    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The whole as isl is to read it."""
        return " and ".join(p.text for p in self.parts)

    @property
    def names(self) -> frozenset[str]:
        """All names that the parts are about."""
        return frozenset().union(*(p.names for p in self.parts))

    @property
    def behind_colon(self) -> str:
        """The whole as it stands behind a tuple; empty where nothing is asked."""
        return f" : {self.text}" if self.parts else ""


def number(value: int | Fraction, *, has_factor: bool = False) -> Value:
    """A number as a value."""
    is_atom = value >= 0
    return Value(str(value.numerator), value.denominator, value, is_atom, has_factor)


def joined(text: str, *conditions: Condition) -> Condition:
    """One part that is made of several conditions."""
    return Condition((Part(text, frozenset().union(*(c.names for c in conditions))),))


def chained(chain: list[list[Value]], relations: list[str]) -> str:
    """``a <= b, c < d``: every neighbour with every neighbour."""
    if all(len(values) == 1 and values[0].divisor == 1 for values in chain):
        words = [chain[0][0].text]
        for relation, values in zip(relations, chain[1:], strict=True):
            words += [relation, values[0].text]
        if "!=" not in relations or len(relations) == 1:
            return " ".join(words)
    pairs = []
    for relation, left, right in zip(relations, chain, chain[1:], strict=False):
        for a in left:
            for b in right:
                common = math.lcm(a.divisor, b.divisor)
                sides = a.times(common // a.divisor), b.times(common // b.divisor)
                pairs.append(f"{sides[0]} {relation} {sides[1]}")
    return " and ".join(pairs)


def total(terms: list[tuple[int, Value]]) -> Value:
    """A sum of values with signs."""
    numbers = [sign * value.constant for sign, value in terms if value.constant is not None]
    if len(numbers) == len(terms):
        return number(sum(numbers))
    common = math.lcm(*(v.divisor for _, v in terms))
    text = ""
    for sign, value in terms:
        piece = value.times(common // value.divisor)
        if not text:
            text = piece
            continue
        operand = value.divisor == common and (value.is_atom or not piece.startswith("-"))
        plain = piece if operand and (value.is_atom or value.has_factor) else f"({piece})"
        text += f" {'+' if sign > 0 else '-'} {plain}"
    return Value(text, common)


def quotient(left: Value, divisor: int | Fraction) -> Value:
    """``left`` divided exactly."""
    if left.constant is not None:
        from fractions import Fraction  # a module that few domains need

        return number(Fraction(left.constant) / divisor)
    text = left.times(divisor.denominator * (1 if divisor > 0 else -1))
    return Value(text, left.divisor * abs(divisor.numerator), has_factor=left.has_factor)


def rounded(name: str, value: Value) -> Value:
    """``value`` rounded down (``floor``) or up (``ceil``)."""
    if value.constant is not None:
        whole = math.floor(value.constant) if name == "floor" else math.ceil(value.constant)
        return number(whole)
    if value.divisor == 1:
        return Value(value.atom, is_atom=True)
    return Value(f"{name}(({value.text})/{value.divisor})", is_atom=True)


def extreme(name: str, values: list[Value]) -> Value:
    """The smallest or largest of several values."""
    common = math.lcm(*(v.divisor for v in values))
    texts = ", ".join(v.times(common // v.divisor) for v in values)
    return Value(f"{name}({texts})", common, is_atom=True)


POWERS = {"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4}
"""How strongly the operations bind, as in Python: less than ``+``, more than comparisons."""

_FOLDED: dict[str, Callable[[int, int], int]] = {
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
    "<<": operator.lshift,
    ">>": operator.rshift,
}


def of_bits(word: str, left: Value, right: Value) -> Value | str:
    """What an operation makes of whole numbers; text that says why, where it is not affine."""
    if left.divisor != 1 or right.divisor != 1:
        return f"'{word}' is of integers"
    one, two = left.constant, right.constant
    if word in ("<<", ">>"):
        if two is None or not 0 <= two < MOST_SHIFT:
            return "a shift goes by a number of bits that is known, and less than 64"
    elif one is not None and two is None:
        left, right, one, two = right, left, two, one
    if two is None:
        return f"'{word}' of two variables is not affine"
    if one is not None:
        return number(_FOLDED[word](int(one), int(two)))
    if word == ">>":
        return _quotient(left, 1 << int(two))
    if word == "<<":
        return Value(left.times(1 << int(two)), has_factor=True)
    common = _masked(left, int(two))
    if word == "&":
        return common
    # a | b = a + b - (a & b), and a ^ b takes that away twice
    return _sum((1, left), (1, right), *[(-1, common)] * (1 if word == "|" else 2))


def _masked(value: Value, mask: int) -> Value:
    """``value & mask``."""
    if mask < 0:
        return _sum((1, value), (-1, _masked(value, ~mask)))
    terms = []
    for low, length in runs(mask):
        part = Value(f"({_quotient(value, low).text} mod {length})", is_atom=True)
        terms.append((1, Value(part.times(low), has_factor=True)))
    return _sum(*terms) if terms else number(0)


def _quotient(value: Value, divisor: int) -> Value:
    """``floor(value / divisor)``."""
    return Value(f"floor(({value.text})/{divisor})", is_atom=True)


def _sum(*terms: tuple[int, Value]) -> Value:
    whole = total([*terms])
    return Value(f"({whole.text})", constant=whole.constant, is_atom=True)
