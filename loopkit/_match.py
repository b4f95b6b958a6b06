"""Match strings, which select the statements that a transform applies to.

``"id:w* and (writes:acc or not reads:a)"`` selects by globs over ``id``,
``writes``, ``reads``, ``iname`` and ``tag``, joined by ``and``, ``or``, ``not``
and parentheses.  ``and`` binds more strongly than ``or``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NoReturn

from loopkit._errors import IllegalTransformError, InvalidArgumentError
from loopkit._expression import called_names, tagged_uses, variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression, head_of
from loopkit._relations import reachable
from loopkit._rules import beside_reductions
from loopkit._syntax.tokens import END, Words


@dataclass(frozen=True)
class Match:
    """The base of all match expressions: call one with a kernel and a statement."""

    def __call__(self, kernel: Kernel, statement: Statement) -> bool:
        raise NotImplementedError


@dataclass(frozen=True)
class Joined(Match):
    """Matches what all of its parts match (``and``), or what any of them matches (``or``)."""

    word: str
    children: tuple[Match, ...]

    def __call__(self, kernel: Kernel, statement: Statement) -> bool:
        matches = (child(kernel, statement) for child in self.children)
        return all(matches) if self.word == "and" else any(matches)

    def __str__(self) -> str:
        loose = self.word == "and"
        shown = (
            f"({c})" if loose and isinstance(c, Joined) and c.word == "or" else str(c)
            for c in self.children
        )
        return f" {self.word} ".join(shown)


@dataclass(frozen=True)
class Not(Match):
    """Matches what its part does not match."""

    child: Match

    def __call__(self, kernel: Kernel, statement: Statement) -> bool:
        return not self.child(kernel, statement)

    def __str__(self) -> str:
        return f"not ({self.child})" if isinstance(self.child, Joined) else f"not {self.child}"


@dataclass(frozen=True)
class Glob(Match):
    """``field:pattern``; matches if one of the statement's names of that field does."""

    field: str
    pattern: str

    def __call__(self, kernel: Kernel, statement: Statement) -> bool:
        return any(fnmatchcase(n, self.pattern) for n in _names(kernel, statement, self.field))

    def __str__(self) -> str:
        return f"{self.field}:{self.pattern}"


FIELDS = ("id", "writes", "reads", "iname", "tag")


def _names(kernel: Kernel, statement: Statement, field: str) -> Iterable[str]:
    if field == "id":
        return (statement.id,)
    if field == "writes":
        return (statement.written, *_with_tags(kernel, tagged_uses(head_of(statement.lhs))))
    if field == "iname":
        return statement.inames
    if field == "tag":
        return statement.tags
    return read_names(kernel, statement).union(_tagged_reads(kernel, statement))


def name_first(kernel: Kernel, given: str) -> str:
    """``"x$near"``, also of ``"near$x"``: as in texts, the tag may stand in front of the name."""
    of, mark, tag = given.partition("$")
    is_swapped = mark and not _is_known(kernel, of) and _is_known(kernel, tag)
    return f"{tag}${of}" if is_swapped else given


def _is_known(kernel: Kernel, name: str) -> bool:
    return kernel.is_array(name) or name in kernel.rule_by_name


def _with_tags(kernel: Kernel, uses: Iterable[tuple[str, str]]) -> Iterable[str]:
    """Names with the tags of their uses, as match strings spell them: ``reads:x$near``."""
    for name, tag in uses:
        spelled = f"{name}${tag}", f"{tag}${name}"
        yield from (one for one in spelled if name_first(kernel, one) == spelled[0])


def _tagged_reads(kernel: Kernel, statement: Statement) -> Iterable[str]:
    reads = [*statement.write[1], statement.rhs, *statement.predicates]
    used = rules_used(kernel, statement.expressions, in_reductions=False)
    rules = (kernel.rule_by_name[rule] for rule in used)
    reads += [beside_reductions(rule.expression) for rule in rules]
    return (name for expr in reads for name in _with_tags(kernel, tagged_uses(expr)))


def rules_used(
    kernel: Kernel, expressions: Iterable[Expression], *, in_reductions: bool = True
) -> frozenset[str]:
    """The substitution rules that expressions use, directly or through other rules.

    With ``in_reductions`` also those used inside of reductions of rules.
    """
    rules = kernel.rule_by_name

    def used_in(expression: Expression) -> frozenset[str]:
        return called_names(expression) & rules.keys()

    def used_by(name: str) -> frozenset[str]:
        body = rules[name].expression
        return used_in(body if in_reductions else beside_reductions(body))

    if not rules:
        return frozenset()
    return reachable(frozenset().union(*map(used_in, expressions)), used_by)


def rules_of(kernel: Kernel, statement: Statement) -> frozenset[str]:
    """The substitution rules that a statement uses, also through others."""
    return rules_used(kernel, statement.expressions)


def read_names(kernel: Kernel, statement: Statement) -> frozenset[str]:
    """Every name that a statement reads, also through substitution rules; and those rules.

    What a rule's reductions read is not read by what uses their results.
    """
    found = {*dict(kernel.reads_of(statement))}
    for rule in rules_used(kernel, statement.expressions, in_reductions=False):
        body = kernel.rule_by_name[rule]
        names = variable_names(beside_reductions(body.expression))
        found |= {rule} | names.difference(body.arguments)
    return frozenset(found)


DEEPEST = 50
"""How deep conditions nest."""

_GLOB = r"[A-Za-z_]\w*\s*:\s*[\w*?\[\]!.$-]+"
_RULES = "'{}' selects rules used by rules, but conditions here select statements"
_TAGS = "distinguish uses of a rule by tags, as in f$one(i)"
_EXAMPLE = "conditions look like 'id:w* and (writes:acc or not tag:input)'"


class _MatchParser(Words):
    pattern = re.compile(rf"[()]|(?:and|or|not)(?![\w:*?\[\].])|{_GLOB}|\S+")
    asked = "a match string"

    __slots__ = ("depth",)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0

    def either(self) -> Match:
        return _joined("or", self.series(("or",), self.both))

    def both(self) -> Match:
        return _joined("and", self.series(("and",), self.single))

    def single(self) -> Match:
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(self.at - 1, f"this is nested more than {DEEPEST} deep")
        found = self.condition()
        self.depth -= 1
        return found

    def condition(self) -> Match:
        if self.took("not"):
            return Not(self.single())
        if self.took("("):
            inner = self.either()
            if not self.took(")"):
                self.fail(self.at, "')' is missing")
            return inner
        at, word = self.at, self.words[self.at]
        if word in ("...", ">"):
            self.fail(at, _RULES.format(word), instead=_TAGS)
        if not re.fullmatch(_GLOB, word):
            why = f"'{word}' is no condition" if word else "a condition is missing here"
            self.fail(at, why, instead=_EXAMPLE)
        field, glob = map(str.strip, word.split(":"))
        if field not in FIELDS:
            known = ", ".join(f"{f}:" for f in FIELDS)
            why = f"statements are not matched by '{field}:'"
            self.fail(at, why, instead=f"they are matched by {known}")
        self.at += 1
        return Glob(field, glob)

    def fail_at_leftover(self) -> NoReturn:
        word = self.words[self.at]
        if word == ">":
            self.fail(self.at, _RULES.format(word), instead=_TAGS)
        self.fail(self.at, f"unexpected '{word}': 'and' or 'or' is missing")


def _joined(word: str, parts: list[Match]) -> Match:
    """Parts with a word between them; a part alone is itself."""
    return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))


@lru_cache(maxsize=1 << 10)
def _parse(text: str) -> Match:
    parser = _MatchParser(text)
    if parser.words[0] == END:
        return Joined("and", ())
    match = parser.either()
    parser.finish()
    return match


def parse_match(match: str | Match | None) -> Match:
    """The match expression that ``match`` spells; None and ``""`` match everything."""
    if match is None:
        return Joined("and", ())
    if isinstance(match, Match):
        return match
    if not isinstance(match, str):
        raise InvalidArgumentError(
            f"statements are selected by a match string, not {type(match).__name__}",
            instead=_EXAMPLE,
        )
    return _parse(match)


def matching(kernel: Kernel, match: str | Match | None) -> frozenset[str]:
    """The ids of the statements that match; an error where none does."""
    parsed = parse_match(match)
    found = frozenset(s.id for s in kernel.statements if parsed(kernel, s))
    if not found:
        ids = ", ".join(s.id for s in kernel.statements[:12])
        raise IllegalTransformError(
            f"no statement matches '{parsed}'", instead=f"statements that exist: {ids}"
        )
    return found
