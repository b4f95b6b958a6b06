"""Domains and assumptions: isl's notation, without the need to list parameters."""

from __future__ import annotations

import re
from typing import NoReturn

import islpy as isl

from loopkit._budget import is_spent
from loopkit._errors import ParseError
from loopkit._syntax.lexer import END, Words

# The names that mean something to isl itself.
_ISL_WORDS = frozenset(
    (
        *("and", "or", "not", "exists", "implies", "true", "false"),
        *("mod", "floor", "ceil", "floord", "ceild", "min", "max", "rat", "infty", "NaN"),
    )
)
_OPERATORS = frozenset(("+", "-", "*", "/", "//", "%", "mod"))
_RELATIONS = frozenset(("<", "<=", ">", ">=", "=", "!="))
_CONNECTIVES = frozenset(("and", "or", "&&", "||", "implies"))
_REFUSED = {
    "==": "equality is written '='",
    "**": "powers are not affine",
    "<<": "write a multiplication by a constant",
    ">>": "write floor(x / 2)",
    "->": "a domain is a set, not a map",
    "!": "write 'not'",
    "?": "",
    "@": "",
    "&": "write 'and'",
    "|": "write 'or'",
    "~": "write 'not'",
}
_NUMBER_AND_NAME = re.compile(r"(\d+)([A-Za-z_]\w*)\Z")


def parse_domain(text: str) -> isl.Set:
    """The set that ``text`` spells, as in ``"{ [i, j]: 0 <= i < n and 0 <= j <= i }"``.

    Names that the set does not bind become its parameters, in the order in
    which they first stand in the text; ``"[n] -> { ... }"`` lists them oneself.
    Several pieces, separated by ``;``, are united.
    """
    words = _DomainWords(text)
    words.check_form()
    prefix = "" if words.parameters_are_listed else f"[{', '.join(words.parameters())}] -> "
    result = words.read(prefix + text)
    if result.is_params():
        result = result.from_params()
    return result.reset_tuple_id() if result.has_tuple_name() else result


def parse_assumptions(text: str) -> isl.Set:
    """The set of parameter values for which ``text`` holds, as in ``"n >= 1 and m = 2*n"``.

    ``text`` may also be a set without inames, ``"[n] -> { : n >= 1 }"``.
    """
    if "{" in text:
        result = parse_domain(text)
        if result.dim(isl.dim_type.set):
            words = _DomainWords(text)
            words.fail(0, "assumptions are about sizes, and hold no inames", instead="n >= 1")
        return result.params()
    words = _DomainWords(text)
    words.check_words(0)
    if words.words[0] == END:
        return isl.Set("{ : }")
    names = ", ".join(words.names_in(0, len(words.words) - 1, bound=set()))
    return words.read(f"[{names}] -> {{ : {text} }}").params()


class _DomainWords(Words):
    """The words of a set in isl's notation."""

    __slots__ = ("opened",)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        words = self.words
        self.opened = words.index("{") if "{" in words else -1

    @property
    def parameters_are_listed(self) -> bool:
        return self.opened > 0

    def check_form(self) -> None:
        """Report what isl accepts and should not, and what it would reject without a place."""
        words = self.words
        self.fail_on_brackets()
        if self.opened < 0:
            self.fail(
                0,
                "a domain is a set in braces",
                last=max(0, len(words) - 2),
                instead="it is written { [i]: 0 <= i < n }",
            )
        if self.opened > 0 and not (
            words[0] == "[" and words[self.opened - 2 : self.opened] == ["]", "->"]
        ):
            self.fail(
                0,
                "only a list of parameters stands before the '{'",
                last=self.opened - 1,
                instead="it is written [n] -> { [i]: 0 <= i < n }, or without [n] ->",
            )
        closed = len(words) - 2
        if words[closed] != "}" or words.count("{") > 1:
            closed = words.index("}")
            self.fail(
                closed + 1,
                "nothing stands behind the '}'",
                last=len(words) - 2,
                instead="several pieces stand in one pair of braces: { [i]: ...; [i]: ... }",
            )
        self.check_words(self.opened + 1)

    def check_words(self, first: int) -> None:
        """Report words that are not part of the notation."""
        words = self.words
        for at in range(first, len(words) - 1):
            word = words[at]
            if word in _REFUSED:
                self.fail(
                    at, f"'{word}' is not part of a domain's language", instead=_REFUSED[word]
                )
            if word[0].isdigit() and not word.isdigit():
                if _NUMBER_AND_NAME.match(word):
                    continue
                self.fail(at, f"'{word}' is not an integer")

    # {{{ parameters

    def parameters(self) -> list[str]:
        """Names that nothing in the set binds, in the order of the text."""
        words = self.words
        found: dict[str, None] = {}
        begin = self.opened + 1
        end = len(words) - 2
        while begin <= end:
            depth = 0
            stop = begin
            while stop < end and not (depth == 0 and words[stop] == ";"):
                depth += (words[stop] in "([") - (words[stop] in ")]")
                stop += 1
            # Entries of the tuple may be expressions too: [i, j = 2*m].
            found.update(dict.fromkeys(self.names_in(begin, stop, self.bound_names(begin, stop))))
            begin = stop + 1
        return list(found)

    def bound_names(self, begin: int, stop: int) -> set[str]:
        """The names that the tuple and the quantifiers of a piece bind."""
        words = self.words
        bound: set[str] = set()
        at = begin
        if words[at].isidentifier():  # a name for the tuple
            bound.add(words[at])
            at += 1
        if at < stop and words[at] == "[":
            at += 1
            at_start = True
            while at < stop and words[at] != "]":
                word = words[at]
                if at_start and word.isidentifier() and words[at + 1] in (",", "]", "="):
                    if word in bound:
                        self.fail(at, f"the name '{word}' stands twice in the tuple")
                    bound.add(word)
                at_start = word == ","
                at += 1
        for at in range(begin, stop):
            if words[at] == "exists":
                following = at + 1
                if words[following] == "(":
                    following += 1
                while following < stop and words[following] != ":":
                    if words[following - 1] in ("(", ",", "exists"):
                        bound.add(words[following])
                    following += 1
        return bound

    def names_in(self, begin: int, stop: int, bound: set[str]) -> list[str]:
        names: dict[str, None] = {}
        for word in self.words[begin:stop]:
            if word[0].isdigit():
                split = _NUMBER_AND_NAME.match(word)  # 2i is 2*i
                if split is None:
                    continue
                word = split[2]
            if word.isidentifier() and word not in bound and word not in _ISL_WORDS:
                names[word] = None
        return list(names)

    # }}}

    def read(self, text: str) -> isl.Set:
        try:
            return isl.Set(text)
        except isl.Error as error:
            if is_spent():
                raise
            self.explain(error)

    # {{{ why isl did not understand

    def explain(self, error: Exception) -> NoReturn:
        """Report the likeliest mistake, with its place: isl names none."""
        words = self.words
        first = self.opened + 1
        for at in range(first, len(words)):
            if words[at] == END:
                if words[at - 1] in _OPERATORS | _RELATIONS | _CONNECTIVES:
                    self.fail(at, "expected a value but found the end of the text")
                break
            self.explain_word(at, words[at - 1] if at > first else "{")
        reason = str(error).partition("failed: ")[2].partition(" in /")[0] or str(error)
        raise ParseError(
            f"isl does not understand this set: {reason}",
            position=self.position(0, max(0, len(words) - 2)),
            instead="conditions are comparisons of affine expressions, as in "
            "{ [i, j]: 0 <= i < n and 0 <= j <= i }",
        )

    def explain_word(self, at: int, before: str) -> None:
        words = self.words
        word = words[at]
        infix = word in _OPERATORS or word in _RELATIONS or word in _CONNECTIVES
        before_is_value = (
            before[:1].isalnum() or before[:1] == "_" or before in (")", "]")
        ) and before not in _ISL_WORDS
        before_is_infix = before in _OPERATORS or before in _RELATIONS or before in _CONNECTIVES
        is_value = word[0].isalnum() or word[0] == "_"
        if (
            infix
            and word not in ("-", "+")
            and not before_is_value
            and before
            not in (
                "true",
                "false",
            )
        ):
            self.fail(at, f"expected a value but found '{word}'")
        if word in ("}", ")", ";") and (before_is_infix or before in ("not", "exists")):
            self.fail(at, f"expected a value but found '{word}'")
        if is_value and before_is_value and word not in _ISL_WORDS and not before.isdigit():
            self.fail(at, f"expected an operator before '{word}'")
        if before.isidentifier() and before not in _ISL_WORDS:
            if word == "[" and before not in ("{", ";") and at > self.opened + 2:
                self.fail(
                    at - 1,
                    f"'{before}[...]' is an array access, which a domain cannot hold",
                    last=at,
                    instead="load it into a scalar temporary, and name that in the domain",
                )
            if word == "(":
                self.fail(
                    at - 1,
                    f"there is no function '{before}' in domains",
                    instead="there are floor, ceil, min and max",
                )
        following = words[at + 1]
        if word in ("*", "/", "//", "%", "mod", "floord", "ceild"):
            right_is_number = following[:1].isdigit()
            left_is_number = before[:1].isdigit()
            if not right_is_number and (word != "*" or not left_is_number):
                what = "the product of two variables" if word == "*" else "division by a variable"
                self.fail(
                    at - 1,
                    f"{what} is not affine",
                    last=at + 1,
                    instead="only multiples by integers are; fix_parameters makes a size one",
                )

    # }}}
