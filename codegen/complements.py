"""Complementary guards: common conjuncts become an outer guard, the other ones inner guards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pymbolic.primitives as prim

from loopkit._collectives import TOGETHER
from loopkit._expression import nodes_of, variable_names
from loopkit._guarded import conjuncts
from loopkit._nodes import Expression
from loopkit.codegen.bounds import conjunction
from loopkit.codegen.ir import Code, Do, For, If, Let

Group = tuple[Expression, Sequence[Code]]
Guarded = Callable[[Expression, Sequence[Code]], Code]
Parts = tuple[Expression, ...]


def with_branches(groups: Sequence[Group], guarded: Guarded) -> list[Group]:
    """Groups of code with their conditions, where consecutive exclusive groups are merged into
    one.

    Before: ``a and c: S``, ``a and not c: T``        After: ``a: [if c: S, if not c: T]`` Before:
    ``a and c: S``, ``a and not c and d: T``  After: ``a: [if c: S, if not c: [if d: T]]``

    A negated disjunction ``not (c or d)`` occurs as ``not c and not d``, which is recognised here.

    ``guarded`` makes the inner guards.
    """
    found: list[Group] = []
    facts = [_facts(*group) for group in groups]
    last = {part: number for number, fact in enumerate(facts) for part in fact.parts}
    start = 0
    while start < len(groups):
        branches = _branches(facts, start, last)
        if branches is None:
            (condition, code), start = groups[start], start + 1
        else:
            condition, code = _made(groups, facts, start, branches, guarded)
            start = branches.end
        if found and condition == found[-1][0] is not True and _is_plain(*found[-1]):
            code = [*found.pop()[1], *code]
        found.append((condition, list(code)))
    return found


class _Facts(NamedTuple):
    """The conjuncts of a group's condition, the variables they read, and those the code writes.

    ``written`` is None for code that threads execute collectively, or that ends a loop.
    """

    parts: Parts
    names: frozenset[str]
    written: frozenset[str] | None


class _Branches(NamedTuple):
    """Consecutive groups, up to ``end``, whose conditions all contain the conjuncts ``common``.

    Groups before ``other`` have the conjuncts ``asked``, the later ones ``opposite``.
    """

    common: Parts
    asked: Parts
    opposite: Parts
    other: int
    end: int


def _facts(condition: Expression, code: Iterable[Code]) -> _Facts:
    return _Facts(conjuncts(condition), variable_names(condition), _written(code))


def _branches(
    facts: Sequence[_Facts], start: int, last: Mapping[Expression, int]
) -> _Branches | None:
    """The branches that begin with a group; ``last`` is the last group with a given conjunct."""
    for asked, opposite in _alternatives(facts, start):
        if not all(last.get(part, 0) > start for part in opposite):
            continue
        other = _end(facts, start, start, asked)
        end = _end(facts, start, other, opposite)
        if other == end:
            continue
        run = [fact.parts for fact in facts[start:end]]
        common = _common(run, asked + opposite)
        # What one of them asks first of all may be asked for all of them.
        if any(_leads(asked + opposite, common, parts) for parts in run):
            return _Branches(common, asked, opposite, other, end)
    return None


def _common(run: Sequence[Parts], alternatives: Parts) -> Parts:
    """The conjuncts common to a run of groups that may be evaluated before all others.

    A conjunct that reads data stays behind the conjuncts that precede it, since they may be what
    makes the read valid. So it is common only if in each group nothing precedes it but common
    conjuncts and the ``alternatives``, one of which holds.
    """
    found: Parts = ()
    for part in run[0]:
        if not all(part in parts for parts in run):
            continue
        behind = (parts[: parts.index(part)] for parts in run)
        if not _reads(part) or all(p in found + alternatives for ps in behind for p in ps):
            found += (part,)
    return found


def _leads(alternatives: Parts, common: Parts, parts: Parts) -> bool:
    """Whether only common conjuncts precede the alternative in a group's condition."""
    last = max(number for number, part in enumerate(parts) if part in alternatives)
    return all(part in alternatives + common for part in parts[:last])


def _reads(condition: Expression) -> bool:
    """Whether a condition reads array elements, calls a function, or divides."""
    partial = (prim.Subscript, prim.Call, prim.FloorDiv, prim.Remainder, prim.Quotient)
    return any(isinstance(node, partial) for node in nodes_of(condition))


def _alternatives(facts: Sequence[_Facts], start: int) -> Iterator[tuple[Parts, Parts]]:
    """Conjuncts of a group with their negations, which the next groups might have."""
    mine = facts[start].parts
    for part in mine:
        yield (part,), conjuncts(prim.LogicalNot(part))
    for part in facts[start + 1].parts if start + 1 < len(facts) else ():
        inner = conjuncts(prim.LogicalNot(part))
        if len(inner) > 1 and all(p in mine for p in inner):
            yield inner, (part,)


def _asks(fact: _Facts, asked: Parts) -> bool:
    return all(part in fact.parts for part in asked)


def _end(facts: Sequence[_Facts], first: int, start: int, asked: Parts) -> int:
    """The end of the run of groups from ``start`` that all have the conjuncts ``asked``.

    It also ends where code of a group since ``first`` writes a variable that their conditions
    read.
    """
    names: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    for number in range(first, len(facts)):
        fact = facts[number]
        if fact.written is None or (number >= start and not _asks(fact, asked)):
            return number
        names, written = names | fact.names, written | fact.written
        if not names.isdisjoint(written):
            return number
    return len(facts)


def _made(
    groups: Sequence[Group],
    facts: Sequence[_Facts],
    start: int,
    branches: _Branches,
    guarded: Guarded,
) -> Group:
    """One group that replaces several, with an inner guard per branch."""
    found: list[Code] = []
    for asked, opposite, low, high in (
        (branches.asked, branches.opposite, start, branches.other),
        (branches.opposite, branches.asked, branches.other, branches.end),
    ):
        known = (*branches.common, *asked)
        inner = [
            (conjunction(*(p for p in facts[number].parts if p not in known)), groups[number][1])
            for number in range(low, high)
        ]
        code = guarded_all(with_branches(inner, guarded), guarded)
        # ``not (a or b)`` beside ``a or b``: one is the else of the other.
        is_denied = len(asked) > 1 and isinstance(opposite[0], prim.LogicalOr)
        told = prim.LogicalNot(opposite[0]) if is_denied else conjunction(*asked)
        found.append(guarded(told, code))
    return conjunction(*branches.common), found


def guarded_all(groups: Sequence[Group], guarded: Guarded) -> list[Code]:
    """The code of groups, each under a guard with its condition."""
    return [
        node
        for condition, code in groups
        for node in (code if condition is True else [guarded(condition, code)])
    ]


def _is_plain(condition: Expression, code: Iterable[Code]) -> bool:
    """Whether neither this code nor, meanwhile, another thread changes the condition."""
    written = _written(code)
    return written is not None and written.isdisjoint(variable_names(condition))


def _written(code: Iterable[Code]) -> frozenset[str] | None:
    """The variables that code writes; None for collective code, barriers, and exits from loops."""
    found = set()
    pending = list(code)
    while pending:
        node = pending.pop()
        if isinstance(node, Do):
            if node.statement.kind in TOGETHER:
                return None
            found.add(node.statement.written)
        elif isinstance(node, (For, If, Let)):
            pending += node.body
        else:
            return None
    return frozenset(found)
