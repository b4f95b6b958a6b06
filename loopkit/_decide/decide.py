"""``decide``: whether a claim about integers holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from loopkit._algebra.conditions import conjuncts, disjunction, negation
from loopkit._algebra.evaluate import value_of
from loopkit._algebra.terms import TRUE, ZERO, Term, UnreadableError, names_in
from loopkit._decide import by_isl, by_solver
from loopkit._decide.simpler_questions import with_bounds, without_equal_name
from loopkit._frozen import dataclass

_FEW_CONDITIONS = 12
"""With so many, a claim and its context are looked at as one condition."""


@dataclass(frozen=True)
class Proven:
    """The claim holds wherever its context does; ``by`` says what proved it."""

    by: str


@dataclass(frozen=True)
class Refuted:
    """The claim is false at a point of the context, which was evaluated."""

    point: Mapping[str, int]


@dataclass(frozen=True)
class Open:
    """The question is undecided; ``why`` says what was tried."""

    why: str


Decision = Proven | Refuted | Open


def decide(claim: Term, context: Iterable[Term] = ()) -> Decision:
    """Decide whether a claim holds for all values of its names at which the whole context does.

    ``claim`` and each of ``context`` are conditions; names stand for whole numbers within their
    bounds.  The answer does not depend on time, or on what was asked before.

    A point that refutes has been evaluated in the question as it was asked.
    """
    context = tuple(context)
    try:
        found = _decide(claim, context)
    except UnreadableError as error:
        return Open(str(error))
    if isinstance(found, Refuted) and not _is_refuted(claim, context, found.point):
        return Open("a point was found that refutes nothing")
    return found


def _nearest(value: int, term: Term) -> int:
    """The value within the bounds of a name that is nearest to ``value``."""
    _, low, high = term.data
    return int(min(max(value, low), high))


def _is_refuted(claim: Term, context: Iterable[Term], point: Mapping[str, int]) -> bool:
    return all(value_of(c, point) for c in context) and not value_of(claim, point)


def _decide(claim: Term, context: tuple[Term, ...]) -> Decision:
    claim, context, names = with_bounds(claim, context)
    if (found := without_equal_name(claim, context)) is not None:
        text, value, question = found
        decision = _decide(*question)
    else:
        text, value = "", ZERO
        parts = [*conjuncts(claim)]
        decision = _decide_parts(parts, context) if parts[1:] else _asked(claim, context)
    if not isinstance(decision, Refuted):
        return decision
    # Names that have left the question may be anything within their bounds.
    point = {**{n: _nearest(0, t) for n, t in names.items()}, **decision.point}
    return Refuted({**point, text: value_of(value, point)} if text else point)


def _decide_parts(parts: Sequence[Term], context: tuple[Term, ...]) -> Decision:
    """Decides a conjunction part by part: proven parts become context of the others."""
    while True:
        left: list[Term] = []
        decision: Decision = Proven("normal form")
        for part in parts:
            found = _decide(part, context)
            if isinstance(found, Refuted):
                return found
            if isinstance(found, Proven):
                context = (*context, part)
            else:
                left.append(part)
                decision = found
        if not left or len(left) == len(parts):
            return decision
        parts = left


def _asked(claim: Term, context: tuple[Term, ...]) -> Decision:
    """The answer by the normal form, by isl, or by z3."""
    whole = claim
    if len(context) < _FEW_CONDITIONS:
        whole = disjunction(claim, *map(negation, context))
    if whole is TRUE:
        return Proven("normal form")
    why = []
    try:
        point = by_isl.refuting_point(claim, context)
        if point is None:
            return Proven("isl")
        if _is_refuted_within(claim, context, point):
            return Refuted(point)
        why.append("isl gave a point that refutes nothing")
    except by_isl.ForeignError as error:
        why.append(f"isl: {error}")
    try:
        for found in by_solver.refuting_points(claim, context):
            if found is None:
                return Proven("z3")
            if _is_refuted_within(claim, context, found):
                return Refuted(found)
    except by_isl.ForeignError as error:
        why.append(f"z3: {error}")
    return Open("; ".join(why))


def _is_refuted_within(claim: Term, context: Sequence[Term], point: Mapping[str, int]) -> bool:
    """Whether a claim is wrong at a point that is within the bounds of all names."""
    names = names_in(claim, *context)
    point = {**{text: _nearest(0, t) for text, t in names.items()}, **point}
    inside = all(t.data[1] <= point[text] <= t.data[2] for text, t in names.items())
    return inside and _is_refuted(claim, context, point)
