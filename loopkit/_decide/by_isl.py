"""Decisions by isl: questions as integer sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._algebra.conditions import negation
from loopkit._algebra.reading import expression_of
from loopkit._algebra.terms import INF, Term, UnreadableError, names_in, subterms
from loopkit._budget import SpentError, at_most
from loopkit._decide.simpler_questions import in_cases

_OPERATIONS = 200_000
"""What isl may spend on one question."""

_MOST_QUOTIENTS = 10
"""Sets with more quotients are left to the solver: isl would take long, and give up."""

BITWISE = ("and", "or", "xor", "shl", "shr")


class ForeignError(Exception):
    """A term that a decision procedure does not support."""


def refuting_point(claim: Term, context: Sequence[Term]) -> dict[str, int] | None:
    """A point of the context at which a claim is false; None if there is none.

    Raises :class:`ForeignError` for terms that sets cannot represent, and if isl exceeds its
    budget.
    """
    wrong = in_cases(negation(claim))
    context = [*map(in_cases, context)]
    names = names_in(wrong, *context)
    quotients = {t for t in subterms(wrong, *context) if t.op in ("fdiv", *BITWISE)}
    if len(quotients) > _MOST_QUOTIENTS:
        raise ForeignError(f"more than {_MOST_QUOTIENTS} quotients")
    try:
        with at_most(_OPERATIONS):
            bounds = itertools.chain.from_iterable(map(_bounds, names.values()))
            found = _sets.intersection((*map(_set_of, (*context, wrong)), *bounds))
            return None if found.is_empty() else _sets.sample(found)
    except (UnreadableError, _sets.NotAffineError):
        raise ForeignError("a product, or bits of several names") from None
    except SpentError:
        raise ForeignError("isl gave up") from None


def _set_of(condition: Term) -> isl.Set:
    return _sets.condition_set(expression_of(condition))


def _bounds(name: Term) -> Iterator[isl.Set]:
    """Where a name is within its bounds."""
    text, low, high = name.data
    for operator, end in ((">=", low), ("<=", high)):
        if abs(end) < INF:
            yield _sets.condition_set(prim.Comparison(prim.Variable(text), operator, int(end)))
