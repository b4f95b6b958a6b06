"""Domains and assumptions: isl's notation, without the need to list parameters."""

from __future__ import annotations

from collections.abc import Callable

import islpy as isl

from loopkit._budget import is_spent
from loopkit._errors import ParseError, UnknownNameError
from loopkit._frozen import dataclass
from loopkit._syntax.condition_parser import NAME, ConditionParser
from loopkit._syntax.isl_text import Condition, Value
from loopkit._syntax.tokens import END, T

_MAP = "a map is written { [i] -> [j]: j = i + 1 }"
_TUPLE = "a tuple is written [i, j]"


@dataclass(frozen=True, slots=True)
class Piece:
    """One tuple of a set with its condition.

    ``names`` are the inames, None for a dimension that is only an expression;
    ``entries`` the tuple as isl is to read it.
    """

    names: tuple[str | None, ...]
    entries: tuple[str, ...]
    condition: Condition

    @property
    def text(self) -> str:
        """The piece as isl is to read it."""
        return f"[{', '.join(self.entries)}]{self.condition.behind_colon}"

    @property
    def is_plain(self) -> bool:
        """Whether the tuple holds names and nothing else."""
        return self.entries == self.names


@dataclass(frozen=True, slots=True)
class DomainText:
    """A set as it was written: pieces that are united, and its parameters in order."""

    parameters: tuple[str, ...]
    pieces: tuple[Piece, ...]

    def set(self) -> isl.Set:
        """The set that the text spells."""
        pieces = "; ".join(p.text for p in self.pieces)
        return _read(isl.Set, f"[{', '.join(self.parameters)}] -> {{ {pieces} }}")


def read_domain(text: str) -> DomainText:
    """What ``text`` says, as in ``"{ [i, j]: 0 <= i < n and 0 <= j <= i }"``.

    Names that the set does not bind become its parameters, in the order in
    which they first stand in the text; ``"[n] -> { ... }"`` lists them oneself.
    Several pieces, separated by ``;``, are united.
    """
    return _SetParser(text).domain()


def parse_domain(text: str) -> isl.Set:
    """The set that ``text`` spells; see :func:`read_domain`."""
    return read_domain(text).set()


def parse_assumptions(text: str) -> isl.Set:
    """The set of parameter values for which ``text`` holds, as in ``"n >= 1 and m = 2*n"``.

    ``text`` may also be a set without inames, ``"[n] -> { : n >= 1 }"``.
    """
    if "{" in text:
        parser = _SetParser(text)
        found = parser.domain()
        if any(p.names for p in found.pieces):
            parser.fail(0, "assumptions are about sizes, and hold no inames", instead="n >= 1")
        return found.set().params()
    parser = _SetParser(text)
    if parser.words[0] == END:
        return isl.Set("{ : }")
    condition = parser.condition()
    parser.finish()
    return _read(isl.Set, f"[{', '.join(parser.found)}] -> {{ : {condition.text} }}").params()


def _read(kind: type[T], text: str, instead: str = "") -> T:
    """What isl makes of a text that this module took for one of its own."""
    try:
        # A minimum or a maximum among the bounds is read as a case for each of its arguments.
        return kind(text).coalesce()  # type: ignore[call-arg,attr-defined,no-any-return]
    except isl.Error as error:
        if is_spent():
            raise
        reason = str(error).split("failed:")[-1].split(" in /")[0].strip()
        raise ParseError(f"isl does not take '{text}': {reason}", instead=instead) from None


def parse_map(text: str) -> isl.Map:
    """The map that ``text`` spells, as in ``"{ [t, i] -> [w, i']: w = t + i and i' = -i }"``.

    What a domain may say, its conditions may; an output may be primed.
    """
    return _SetParser(text, primed=True).map()


class _SetParser(ConditionParser):
    """Reads a set: parameters, and tuples with conditions; or a map, whose names may be primed."""

    __slots__ = ("inames", "primed")

    def __init__(self, text: str, *, primed: bool = False) -> None:
        super().__init__(text)
        self.primed = primed
        self.inames: list[str] = []  # all that tuples bind

    def domain(self) -> DomainText:
        parameters, pieces = self.whole(
            self.piece, "a domain is a set in braces", "it is written { [i]: 0 <= i < n }"
        )
        first = pieces[0].names
        for piece in pieces[1:]:
            if piece.names != first:
                raise ParseError(
                    "the pieces of a domain have different inames: "
                    f"[{_tuple_text(first)}] and [{_tuple_text(piece.names)}]",
                    position=self.position(0, len(self.words) - 2),
                    instead="several domains are given as a list of texts",
                )
        return DomainText(parameters, tuple(pieces))

    def map(self) -> isl.Map:
        parameters, pieces = self.whole(self.arrow, "a map is written in braces", _MAP)
        return _read(isl.Map, f"[{', '.join(parameters)}] -> {{ {'; '.join(pieces)} }}", _MAP)

    def whole(
        self, one: Callable[[], T], what: str, written: str
    ) -> tuple[tuple[str, ...], list[T]]:
        """The parameters and the pieces of all of the text; ``one`` reads a piece."""
        self.fail_on_brackets()
        words = self.words
        if "{" not in words:
            self.fail(0, what, last=max(0, len(words) - 2), instead=written)
        listed = self.parameter_list()
        pieces = self.series((";",), one)
        if words[self.at] != "}":
            self.fail_at_leftover()
        if words[self.at + 1] != END:
            self.fail(
                self.at + 1,
                "nothing may follow the '}'",
                last=len(words) - 2,
                instead="write several pieces in one pair of braces: { [i]: ...; [i]: ... }",
            )
        if listed is not None:
            self.check_listed(listed)
        return tuple(self.found if listed is None else listed), pieces

    def parameter_list(self) -> list[str] | None:
        """The names in ``[n, m] -> {``, None where there is no list; reads the ``{``."""
        opened = self.words.index("{")
        self.at = opened + 1
        if opened == 0:
            return None
        words = self.words
        if words[0] != "[" or words[opened - 2 : opened] != ["]", "->"]:
            self.fail(
                0,
                "only a list of parameters may come before the '{'",
                last=opened - 1,
                instead="it is written [n] -> { [i]: 0 <= i < n }, or without [n] ->",
            )
        listed: list[str] = []
        self.at = 1
        for at in self.listed("]"):
            name = self.name("the name of a parameter")
            if name in listed:
                self.fail(at, f"the parameter '{name}' is listed twice")
            listed.append(name)
        self.at = opened + 1
        return listed

    def check_listed(self, listed: list[str]) -> None:
        """Every name that the set does not bind is listed, and no iname is."""
        for name in self.inames:
            if name in listed:
                at = self.words.index(name)
                self.fail(at, f"'{name}' is listed as a parameter, and is an iname of the set")
        for name in self.found:
            if name not in listed:
                raise UnknownNameError(
                    "parameter",
                    name,
                    [*listed, *self.inames],
                    position=self.position(self.words.index(name.rstrip("'"))),
                    asked="the set lists its parameters",
                )

    def piece(self) -> Piece:
        """``[i, j] : condition``, each part of which may be missing."""
        self.bound = frozenset()
        if NAME.match(self.words[self.at]) and self.words[self.at + 1] == "[":
            self.at += 1  # a name for the tuple says nothing
        is_tuple = self.words[self.at] == "["
        names, entries = self.dimensions() if is_tuple else ((), ())
        if not is_tuple and self.words[self.at] in ("}", ";"):
            self.fail(self.at, "a set without inames", instead="it is written { [i]: 0 <= i < n }")
        return Piece(names, entries, self.condition_of_piece())

    def arrow(self) -> str:
        """``[i] -> [j] : condition`` as isl is to read it."""
        self.bound = frozenset()
        _, inputs = self.dimensions()
        if not self.took("->"):
            self.fail_expecting("'->'", _MAP)
        _, outputs = self.dimensions()
        condition = self.condition_of_piece()
        return f"[{', '.join(inputs)}] -> [{', '.join(outputs)}]{condition.behind_colon}"

    def dimensions(self) -> tuple[tuple[str | None, ...], tuple[str, ...]]:
        """``[i, j]``: its names, and its entries as isl is to read them."""
        if not self.took("["):
            self.fail_expecting("'['", _TUPLE)
        self.bound |= self.tuple_names()
        dimensions = [self.entry() for _ in self.listed("]", _TUPLE)]
        names = tuple(name for name, _ in dimensions)
        self.inames += [name for name in names if name is not None]
        return names, tuple(entry for _, entry in dimensions)

    def condition_of_piece(self) -> Condition:
        """What stands behind the ':' of a piece, if there is one."""
        if self.took(":"):
            if self.words[self.at] not in ("}", ";"):
                return self.condition()
        elif self.words[self.at] not in ("}", ";"):
            self.fail_at_leftover()
        return Condition(())

    def tuple_names(self) -> frozenset[str]:
        """The names that the tuple which begins here binds."""
        words = self.words
        bound: set[str] = set()
        at = self.at
        while words[at] not in ("]", "}", END):
            begin, at = at, at + 1
            if words[begin - 1] not in ("[", ",") or not NAME.match(words[begin]):
                continue
            while self.primed and words[at] == "'":
                at += 1
            if words[at] in (",", "]", "="):
                name = "".join(words[begin:at])
                if name in bound and not self.primed:
                    self.fail(begin, f"the tuple has the name '{name}' twice")
                bound.add(name)
        return frozenset(bound)

    def entry(self) -> tuple[str | None, str]:
        """A dimension: a name, ``name = expression``, or an expression."""
        word, following = self.words[self.at], self.words[self.at + 1]
        is_named = following in (",", "]", "=") or (self.primed and following == "'")
        if not is_named or not NAME.match(word):
            return None, self.whole_value()
        name = self.name("the name of an iname")
        if self.took("="):
            return name, f"{name} = {self.whole_value()}"
        return name, name

    def name(self, what: str) -> str:
        return self.with_primes(super().name(what))

    def variable(self, name: str, at: int) -> Value:
        return super().variable(self.with_primes(name), at)

    def with_primes(self, name: str) -> str:
        """The name that was read, with the primes that the text has behind it."""
        while self.primed and self.took("'"):
            name += "'"
        return name

    def whole_value(self) -> str:
        at = self.at
        value = self.value()
        if value.divisor != 1:
            self.fail(at, "an iname is an integer", last=self.at - 1, instead="write floor(x / 2)")
        return value.text


def _tuple_text(names: tuple[str | None, ...]) -> str:
    return ", ".join(n or "..." for n in names)
