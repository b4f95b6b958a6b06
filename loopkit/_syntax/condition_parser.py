"""Conditions of domains and assumptions: parsed with Python's precedence, written for isl.

isl has a different precedence: it reads ``3*i mod 5`` as ``3*(i mod 5)``.  So a condition is parsed
here, refused where the two readings differ, and passed to isl with parentheses around every
operation.  Integer division and modulo are Python's, also for negative numbers.
"""

from __future__ import annotations

import re
from typing import NoReturn

from loopkit._syntax import isl_text
from loopkit._syntax.isl_text import POWERS, of_bits
from loopkit._syntax.tokens import CLOSING, END, OPENING, Words

LARGEST = 2**63 - 1
"""The largest number that an index can be."""

RELATIONS = frozenset(("<", "<=", ">", ">=", "=", "!="))
_AND, _OR, _NOT = frozenset(("and", "&&")), frozenset(("or", "||")), frozenset(("not", "!"))
_OF_CONDITIONS = RELATIONS | _AND | _OR | _NOT | {"exists", "implies", "true", "false"}
_REMAINDERS = frozenset(("%", "mod"))
_MULTIPLYING = frozenset(("*", "/", "//")) | _REMAINDERS
_COMPUTING = _MULTIPLYING | {"+", "-"}
_NO_VALUE = "a condition is no value"
_FUNCTIONS = ("floor", "ceil", "floord", "ceild", "min", "max")
WORDS = frozenset(
    (*("and", "or", "not", "exists", "implies", "true", "false", "mod", "rat"), *_FUNCTIONS)
)
"""The names that have a meaning of their own in a condition."""

_JOINING = frozenset(("and", "or", "not"))
NO_NUMBERS = frozenset(("inf", "infty", "infinity", "nan"))
"""What other notations call numbers, in lower case, and loopkit does not."""

_INSTEAD = {
    "==": "equality is written '='",
    "**": "powers are not affine",
    "<<": "write a multiplication by a constant",
    ">>": "write floor(x / 2)",
    "^": "one of the sides is a number",
    "->": "a domain is a set, not a map",
    "?": "write (c and a) or (not c and b)",
    "@": "",
    "&": "between conditions write 'and'; of bits, one of the sides is a number",
    "|": "between conditions write 'or'; of bits, one of the sides is a number",
    "~": "write 'not'",
    "#": "a domain holds no comments",
}
NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")
_DIGITS = re.compile(r"[0-9]+\Z")
_NUMBER_AND_NAME = re.compile(r"([0-9]+)([A-Za-z][A-Za-z_0-9]*)\Z")
_NUMBER_ELSEWHERE = re.compile(r"0[xXbBoO]|[0-9]+[eE][0-9]+\Z")


class ConditionParser(Words):
    """Reads conditions from the words of a text.

    ``found`` collects the names that nothing binds, in the order of the text;
    ``bound`` holds what the tuple and the quantifiers around bind, ``used`` all names that stand
    in the comparison that is read.
    """

    __slots__ = ("bound", "found", "used")

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.found: dict[str, None] = {}
        self.used: set[str] = set()
        self.bound: frozenset[str] = frozenset()

    def condition(self) -> isl_text.Condition:
        """Parse one condition."""
        try:
            return self.implication()
        except RecursionError:
            self.fail(min(self.at, len(self.words) - 1), "this condition is nested too deeply")

    def implication(self) -> isl_text.Condition:
        left = self.disjunction()
        if not self.took("implies"):
            return left
        right = self.implication()
        return isl_text.joined(f"((not ({left.text})) or ({right.text}))", left, right)

    def disjunction(self) -> isl_text.Condition:
        parts = self.series(_OR, self.conjunction)
        if len(parts) == 1:
            return parts[0]
        return isl_text.joined("(" + " or ".join(f"({p.text})" for p in parts) + ")", *parts)

    def conjunction(self) -> isl_text.Condition:
        parts = self.series(_AND, self.negation)
        return isl_text.Condition(tuple(part for p in parts for part in p.parts))

    def negation(self) -> isl_text.Condition:
        word = self.words[self.at]
        if word in _NOT:
            self.at += 1
            inner = self.negation()
            return isl_text.joined(f"(not ({inner.text}))", inner)
        if word == "exists":
            return self.quantified()
        if word == "(" and not self.is_value():
            return self.parenthesized()
        self.used = set()
        text = self.comparison()
        return isl_text.Condition((isl_text.Part(text, frozenset(self.used)),))

    def parenthesized(self) -> isl_text.Condition:
        opened = self.at
        self.at += 1
        inner = self.implication()
        self.close(opened)
        if self.words[self.at] in RELATIONS:
            self.fail(opened, "a condition has no value to compare", last=self.at - 1)
        if self.words[self.at] in _COMPUTING:
            self.fail(opened, _NO_VALUE, last=self.at - 1)
        return inner

    def quantified(self) -> isl_text.Condition:
        """``exists e, f: condition``, with or without parentheses around all behind the word."""
        self.at += 1
        opened = self.at
        in_parentheses = self.took("(")
        names: list[str] = []
        while True:
            name = self.name("a name that 'exists' binds")
            if name in self.bound or name in names:
                self.fail(self.at - 1, f"the name '{name}' is bound already")
            names.append(name)
            if self.took(":"):
                break
            if not self.took(","):
                self.fail_expecting("',' or ':'", "it is written exists e: i = 2*e")
        outside = self.bound
        self.bound = outside | set(names)
        inner = self.implication()
        self.bound = outside
        if in_parentheses:
            self.close(opened)
        text = f"(exists ({', '.join(names)} : {inner.text}))"
        return isl_text.Condition((isl_text.Part(text, inner.names - set(names)),))

    def comparison(self) -> str:
        word = self.words[self.at]
        if word in ("true", "false"):
            self.at += 1
            return word
        at = self.at
        chain = [self.values()]
        relations: list[str] = []
        while self.words[self.at] in RELATIONS:
            relations.append(self.words[self.at])
            self.at += 1
            start = self.at
            chain.append(self.values())
            is_between = len(chain[-1]) > 1 and self.words[self.at] in RELATIONS
            if is_between and any(value.constant is not None for value in chain[-1]):
                self.refuse_comma(start)
        if not relations:
            word = self.words[self.at]
            if word in CLOSING or word in WORDS or word in (END, ";", ",", ":"):
                why = "this compares nothing"
                self.fail(at, why, last=self.at - 1, instead="write i < n, or i = 0")
            self.fail_at_leftover()
        return isl_text.chained(chain, relations)

    def refuse_comma(self, start: int) -> NoReturn:
        """Refuse ``i >= 0, j >= 0``: to isl it says ``i >= 0 >= 0 and i >= j >= 0``."""
        self.fail(
            self.words.index(",", start),
            "it is not clear what ',' is between: conditions, or values that are compared",
            instead="write 'and' between conditions: isl would compare both sides of ',' with "
            "both of its neighbours",
        )

    def values(self) -> list[isl_text.Value]:
        """Values between commas: each is compared."""
        return self.series((",",), self.value)

    def value(self) -> isl_text.Value:
        """An expression: sums, and operations on their bits."""
        at = self.at
        return self.bits(at, self.sum(), 0)

    def bits(self, at: int, left: isl_text.Value, power: int) -> isl_text.Value:
        """``left``, which begins ``at`` a word, and operations behind it that bind as strongly."""
        while POWERS.get(self.words[self.at], -1) >= power:
            operator = self.at
            word = self.words[operator]
            self.at += 1
            right = self.bits(self.at, self.sum(), POWERS[word] + 1)
            found = of_bits(word, left, right)
            if isinstance(found, str):
                self.fail(operator, found, instead=_INSTEAD[word])
            left = self.small(found, at)
        return left

    def sum(self) -> isl_text.Value:
        """Products that are added."""
        at = self.at
        terms = [(1, self.product())]
        while self.words[self.at] in ("+", "-"):
            sign = 1 if self.words[self.at] == "+" else -1
            self.at += 1
            terms.append((sign, self.product()))
        return self.small(isl_text.total(terms), at) if len(terms) > 1 else terms[0][1]

    def product(self) -> isl_text.Value:
        at = self.at
        found = self.factor()
        while self.words[self.at] in _MULTIPLYING:
            operator = self.at
            self.at += 1
            right = self.factor()
            if self.words[operator] == "*":
                found = self.small(self.multiplied(found, right, operator), at)
            else:
                found = self.divided(found, right, operator)
        return found

    def multiplied(
        self, left: isl_text.Value, right: isl_text.Value, operator: int
    ) -> isl_text.Value:
        if left.constant is not None and right.constant is not None:
            return isl_text.number(left.constant * right.constant, has_factor=True)
        factor, other = left.constant, right
        if factor is None:
            factor, other = right.constant, left
        if factor is None:
            self.fail_not_affine(operator, "the product of two variables")
        text = other.times(factor.numerator)
        divisor = factor.denominator * other.divisor
        # isl multiplies a number in front last, and one behind first, as Python does.
        return isl_text.Value(text, divisor, has_factor=other is right or other.has_factor)

    def divided(self, left: isl_text.Value, right: isl_text.Value, operator: int) -> isl_text.Value:
        word = self.words[operator]
        if right.constant is None:
            self.fail_not_affine(operator, "division by a variable")
        if right.constant == 0:
            self.fail(operator, "division by zero", last=operator + 1)
        if word == "/":
            return isl_text.quotient(left, right.constant)
        if right.constant.denominator != 1 or (left.divisor != 1 and word != "//"):
            self.fail(operator, f"'{word}' is of integers", last=operator + 1)
        if left.has_factor:
            self.fail(
                operator,
                f"it is not clear what '{word}' is of: the product, or only its last factor",
                instead=f"write (3*i) {word} 5 or 3*(i {word} 5): isl would read the second, "
                "Python the first",
            )
        divisor = int(right.constant)
        if left.constant is not None:
            whole = left.constant // divisor
            return isl_text.number(whole if word == "//" else left.constant - divisor * whole)
        sign = 1 if divisor > 0 else -1
        if word == "//":
            return isl_text.Value(
                f"floor(({left.times(sign)})/{abs(divisor) * left.divisor})", is_atom=True
            )
        text = f"(({left.times(sign)}) mod {abs(divisor)})"
        return isl_text.Value(text if sign > 0 else f"-{text}", is_atom=sign > 0)

    def factor(self) -> isl_text.Value:
        words = self.words
        at = self.at
        word = words[at]
        if word == "-":
            self.at += 1
            inner = self.factor()
            if inner.constant is not None:
                return isl_text.number(-inner.constant, has_factor=True)
            return isl_text.Value(inner.times(-1), inner.divisor, has_factor=True)
        if word == "+":
            self.at += 1
            return self.factor()
        if word == "(":
            if not self.is_value():
                self.fail(at, _NO_VALUE)
            self.at += 1
            inner = self.value()
            self.close(at)
            return isl_text.Value(inner.atom, inner.divisor, inner.constant, is_atom=True)
        if word in _FUNCTIONS and words[at + 1] == "(":
            return self.call(word)
        return self.number_or_name()

    def is_value(self) -> bool:
        """Whether the parenthesis that stands next holds no relation and no connective."""
        depth = 0
        for word in self.words[self.at :]:
            if word in OPENING:
                depth += 1
            elif word in CLOSING:
                depth -= 1
                if depth == 0:
                    return True
            elif word in _OF_CONDITIONS:
                return False
        return True

    def call(self, name: str) -> isl_text.Value:
        at = self.at
        self.at += 2
        arguments = self.values()
        self.close(at + 1)
        if name in ("min", "max"):
            return isl_text.extreme(name, arguments)
        if len(arguments) != (2 if name in ("floord", "ceild") else 1):
            usage = f"{name}(x, 2)" if name.endswith("d") else f"{name}(x / 2)"
            self.fail(at, f"'{name}' is written {usage}", last=self.at - 1)
        value = arguments[0]
        if len(arguments) == 2:
            by = arguments[1].constant
            if by is None:
                self.fail(at, "division by a variable is not affine", last=self.at - 1)
            if by == 0:
                self.fail(at, "division by zero", last=self.at - 1)
            value = isl_text.quotient(value, by)
        return isl_text.rounded(name.removesuffix("d"), value)

    def number_or_name(self) -> isl_text.Value:
        at = self.at
        word = self.words[at]
        self.at += 1
        if _DIGITS.match(word):
            value, following = self.integer(word, at), self.words[self.at]
            is_name = NAME.match(following) and following not in WORDS
            if is_name or following == "(" or following in _FUNCTIONS:  # 2 i, 2(i + 1)
                return self.multiplied(value, self.factor(), at)
            return value
        pair = _NUMBER_AND_NAME.match(word)
        if pair is not None and pair[2] not in WORDS and self.is_factor_of_name(word, pair[2]):
            return self.multiplied(self.integer(pair[1], at), self.variable(pair[2], at), at)
        if word[:1].isdigit() or (word[:1] == "." and word != "."):
            self.fail(at, f"'{word}' is not an integer")
        if not NAME.match(word) or word in WORDS:
            if word in _INSTEAD:
                self.fail_at_foreign(at)
            self.fail_expecting("a value", _word_of_domains(word), at=at)
        return self.variable(word, at)

    def is_factor_of_name(self, word: str, name: str) -> bool:
        """Whether ``2e5`` and its kin are a number times a name: where the name is known."""
        return not _NUMBER_ELSEWHERE.match(word) or name in self.bound or name in self.found

    def integer(self, digits: str, at: int) -> isl_text.Value:
        if len(digits.lstrip("0")) > 19:
            self.fail_too_large(at, at, digits)
        return self.small(isl_text.number(int(digits)), at)

    def variable(self, name: str, at: int) -> isl_text.Value:
        if name.lower() in NO_NUMBERS:
            self.fail(at, f"'{name}' is no integer", instead="leave out the bound that contains it")
        following = self.words[at + 1]
        if following == "[":
            self.fail(
                at,
                f"'{name}[...]' is an array access, which a domain cannot hold",
                last=at + 1,
                instead="load it into a scalar temporary, and name that in the domain",
            )
        if following == "(":
            self.fail(
                at,
                f"there is no function '{name}' in domains",
                instead="there are floor, ceil, min and max",
            )
        self.used.add(name)
        if name not in self.bound:
            self.found[name] = None
        return isl_text.Value(name, is_atom=True)

    def name(self, what: str) -> str:
        """The name that stands next."""
        word = self.words[self.at]
        if not NAME.match(word) or word in WORDS:
            self.fail_expecting(what, _word_of_domains(word))
        if word.lower() in NO_NUMBERS:
            self.fail(self.at, f"'{word}' cannot be a name in a domain")
        self.at += 1
        return word

    def close(self, opened: int) -> None:
        """The parenthesis that closes word ``opened``."""
        if not self.took(")"):
            self.fail_on_brackets()
            self.fail_at_leftover()

    def small(self, value: isl_text.Value, at: int) -> isl_text.Value:
        """``value``, if it is no number that no index can be."""
        if value.constant is not None and not -LARGEST <= value.constant <= LARGEST:
            self.fail_too_large(at, self.at - 1, "this number")
        return value

    def fail_too_large(self, at: int, last: int, what: str) -> NoReturn:
        self.fail(
            at,
            f"{what if len(what) < 40 else what[:20] + '...'} is larger than any index",
            last=last,
            instead="indices have 64 bits; a bound that nothing reaches can be left out",
        )

    def fail_not_affine(self, operator: int, what: str) -> NoReturn:
        self.fail(
            operator - 1,
            f"{what} is not affine",
            last=operator + 1,
            instead="only multiples by integers are; fix_parameters makes a size one",
        )

    def fail_at_foreign(self, at: int) -> NoReturn:
        word = self.words[at]
        self.fail(at, f"'{word}' is not part of a domain's language", instead=_INSTEAD[word])

    def fail_at_leftover(self) -> NoReturn:
        """Report the word behind what was understood."""
        at = self.at
        word = self.words[at]
        if word in _INSTEAD:
            self.fail_at_foreign(at)
        if word in OPENING or word in CLOSING:
            self.fail_on_brackets()
        if word[:1].isalnum() or word[:1] == "_" or word in OPENING:
            self.fail(at, f"expected an operator before '{word}'")
        if word in RELATIONS:
            self.fail(at, "a condition has no value to compare")
        self.fail_expecting("an operator")


def _word_of_domains(word: str) -> str:
    """What to say where a name is a word of the language; empty for any other."""
    if word not in WORDS - _JOINING:
        return ""
    return f"'{word}' has a meaning in domains: what is called so needs another name"
