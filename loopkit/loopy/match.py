"""What scripts import from ``loopy.match``: conditions on statements, and their parser."""

from __future__ import annotations

from collections.abc import Iterable

from loopkit._match import Glob, Joined, Match, Not, parse_match

MatchExpressionBase = Match


def And(children: Iterable[Match]) -> Match:
    """What all of its parts match."""
    return Joined("and", tuple(children))


def Or(children: Iterable[Match]) -> Match:
    """What any of its parts matches."""
    return Joined("or", tuple(children))


def All() -> Match:
    """Every statement."""
    return Joined("and", ())


def Id(glob: str) -> Match:
    """Statements of this id, which may have wildcards, as in all that follow."""
    return Glob("id", glob)


def Tagged(glob: str) -> Match:
    """Statements with this tag."""
    return Glob("tag", glob)


def Writes(glob: str) -> Match:
    """Statements that write this."""
    return Glob("writes", glob)


def Reads(glob: str) -> Match:
    """Statements that read this."""
    return Glob("reads", glob)


def InKernel(glob: str) -> Match:
    """Every statement: there is one kernel."""
    return All()


def Iname(glob: str) -> Match:
    """Statements inside of this iname."""
    return Glob("iname", glob)


__all__ = [
    "All",
    "And",
    "Id",
    "InKernel",
    "Iname",
    "MatchExpressionBase",
    "Not",
    "Or",
    "Reads",
    "Tagged",
    "Writes",
    "parse_match",
]
