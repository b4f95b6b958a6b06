"""Simplification of questions, without changing their answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from loopkit._algebra.conditions import choose, conjuncts, is_at_most
from loopkit._algebra.make import make_term, replace_terms, substitute_names
from loopkit._algebra.polynomials import minus, plus, polynomial, scaled
from loopkit._algebra.ranges import range_of
from loopkit._algebra.terms import FALSE, INF, TRUE, Term, name, names_in, number, subterms

_CASES = 12
"""How many extrema and choices of a condition are looked at case by case."""

_ROUNDS = 3
"""How often bounds of names are used to find narrower ones of others."""

Question = tuple[Term, tuple[Term, ...]]
"""A claim, and conditions under which it is to hold."""


def with_bounds(
    claim: Term, context: Iterable[Term]
) -> tuple[Term, tuple[Term, ...], dict[str, Term]]:
    """A question whose names have the bounds that its context states; and all of these names.

    Some names, and conditions, may have left the question.
    """
    context = tuple(part for condition in context for part in conjuncts(condition))
    names = names_in(claim, *context)
    for _ in range(_ROUNDS):
        bounds = {text: (t.data[1], t.data[2]) for text, t in names.items()}
        narrow = dict(bounds)
        for condition in context:
            for text, low, high in _bounds_by(condition):
                narrow[text] = max(narrow[text][0], low), min(narrow[text][1], high)
        if narrow == bounds:
            break
        names = {text: name(text, *ends) for text, ends in narrow.items()}
        claim = substitute_names(claim, names)
        context = tuple(substitute_names(condition, names) for condition in context)
    return claim, tuple(condition for condition in context if condition is not TRUE), names


def _bounds_by(condition: Term) -> Iterable[tuple[str, float, float]]:
    """Bounds of names that an inequality states, given the ranges of its other names."""
    is_negated = condition.op == "if" and condition.args[1:] == (FALSE, TRUE)
    atom = condition.args[0] if is_negated else condition
    if atom.op != "ge0":
        return
    # Not e >= 0 is -e - 1 >= 0.
    value = plus(scaled(atom.args[0], -1), number(-1)) if is_negated else atom.args[0]
    for text, term, factor in _alone_in(value):
        greatest = range_of(minus(value, scaled(term, factor)))[1]
        if greatest < INF:  # factor*name >= -greatest
            end = -(greatest // factor) if factor > 0 else greatest // -factor
            yield (text, end, INF) if factor > 0 else (text, -INF, end)


def _alone_in(value: Term) -> Iterable[tuple[str, Term, int]]:
    """Names that occur in a sum once, by themselves, and the numbers that they are times."""
    terms = polynomial(value)
    for monomial, coefficient in terms.items():
        if len(monomial) == 1 and monomial[0].op == "name":
            atom = monomial[0]
            if sum(atom in subterms(*other) for other in terms) == 1:
                yield atom.data[0], atom, coefficient


def without_equal_name(claim: Term, context: tuple[Term, ...]) -> tuple[str, Term, Question] | None:
    """A question without one name, which its context says to be another number; and that number.

    A name that is divided is taken first: then quotients may become whole.
    """
    divided = [t for t in subterms(claim, *context) if t.op == "fdiv"]
    for at, condition in enumerate(context):
        if condition.op != "eq0":
            continue
        names = sorted(
            (found for found in _alone_in(condition.args[0]) if abs(found[2]) == 1),
            key=lambda found: (-sum(found[1] in subterms(t) for t in divided), found[0]),
        )
        for text, term, sign in names:
            value = scaled(minus(condition.args[0], scaled(term, sign)), -sign)
            rest = (*context[:at], *context[at + 1 :])
            ends = [is_at_most(number(int(e)), value) for e in term.data[1:2] if e > -INF]
            ends += [is_at_most(value, number(int(e))) for e in term.data[2:] if e < INF]
            known = {text: value}
            now = (substitute_names(t, known) for t in rest)
            left = tuple(t for t in (*now, *ends) if t is not TRUE)
            return text, value, (substitute_names(claim, known), left)
    return None


def in_cases(condition: Term) -> Term:
    """A condition without extrema and choices inside of its numbers, if there are few."""
    for _ in range(_CASES):
        found = next(_with_cases(condition), None)
        if found is None:
            break
        atom, by_cases = found
        condition = replace_terms(condition, {atom: by_cases}.get)
    return condition


def _with_cases(condition: Term) -> Iterator[tuple[Term, Term]]:
    """Comparisons that hold an extremum or a choice, and each case by case."""
    for atom in subterms(condition):
        if atom.op not in ("ge0", "eq0"):
            continue
        for inner in subterms(*atom.args):
            if inner.op in ("min", "max", "select"):
                first, *sides = inner.args if inner.op == "select" else choice_of(inner)
                cases = (replace_terms(atom, {inner: side}.get) for side in sides)
                yield atom, choose(first, *cases)


def choice_of(extreme: Term) -> tuple[Term, Term, Term]:
    """An extremum as a choice: a condition, and the number on both of its sides."""
    first, rest = extreme.args[0], make_term(extreme.op, *extreme.args[1:])
    is_first = is_at_most(first, rest) if extreme.op == "min" else is_at_most(rest, first)
    return is_first, first, rest
