"""Truth values as ordered decision diagrams: equal conditions on the same atoms are one term.

Atoms are ``e >= 0`` and ``e == 0`` for integers, and comparisons of other numbers. The atoms on
each path of a diagram are ordered by their keys, so that diagrams are canonical under De Morgan's
laws, nesting and reordering (Bryant 1986). Choices of values are diagrams whose leaves are values.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, reduce
from math import gcd

from loopkit._algebra.polynomials import (
    Monomial,
    minus,
    monomial_key,
    plus,
    polynomial,
    scaled,
    sum_of,
)
from loopkit._algebra.ranges import range_of
from loopkit._algebra.terms import (
    FALSE,
    TRUE,
    Term,
    UnreadableError,
    is_constant,
    node,
    number,
    truth,
)

_MOST_CASES = 2000
"""A diagram that asks for more than so many cases is not made."""


@lru_cache(1 << 14)
def choose(condition: Term, yes: Term, no: Term) -> Term:
    """``yes`` if a condition holds, else ``no``: two values of one sort.

    Raises :class:`UnreadableError` if there are too many cases.
    """
    return _chosen((condition, yes, no), {})


def _chosen(asked: tuple[Term, ...], done: dict[tuple[Term, ...], Term]) -> Term:
    condition, yes, no = asked
    if is_constant(condition):
        return yes if condition.data else no
    if yes is no:
        return yes
    if asked not in done:
        if len(done) == _MOST_CASES:
            raise UnreadableError("too many cases")
        done[asked] = yes  # counted before what it is made of
        tops = (top for t in asked if (top := _top(t)) is not None)
        top = min(tops, key=lambda t: t.key)
        sides = (tuple(_side(t, top, holds) for t in asked) for holds in (True, False))
        done[asked] = _diagram(top, *(_chosen(side, done) for side in sides))
    return done[asked]


def _diagram(top: Term, high: Term, low: Term) -> Term:
    if high is low:
        return high
    if high.sort != "B":
        return node("select", high.sort, (top, high, low))
    return top if high is TRUE and low is FALSE else node("if", "B", (top, high, low))


def _top(term: Term) -> Term | None:
    """The first atom of a diagram."""
    if term.op in ("if", "select"):
        return term.args[0]
    return term if term.sort == "B" and not is_constant(term) else None


def _side(term: Term, atom: Term, holds: bool) -> Term:
    """A diagram with its first atom fixed to true or false."""
    if term.op in ("if", "select") and term.args[0] is atom:
        return term.args[1 if holds else 2]
    return truth(holds) if term is atom else term


def negation(condition: Term) -> Term:
    """The negation of a condition."""
    return choose(condition, FALSE, TRUE)


def conjunction(*conditions: Term) -> Term:
    """The conjunction of conditions."""
    return reduce(lambda a, b: choose(a, b, FALSE), conditions, TRUE)


def disjunction(*conditions: Term) -> Term:
    """The disjunction of conditions."""
    return reduce(lambda a, b: choose(a, TRUE, b), conditions, FALSE)


def conjuncts(condition: Term) -> Iterator[Term]:
    """Conditions whose conjunction is the given one."""
    while condition.op == "if":
        atom, yes, no = condition.args
        if no is FALSE:
            yield atom
            condition = yes
        elif yes is FALSE and no is not TRUE:
            yield negation(atom)
            condition = no
        else:
            break
    yield condition


@lru_cache(1 << 14)
def is_nonnegative(value: Term) -> Term:
    """The condition that an integer is at least 0."""
    low, high = range_of(value)
    if low >= 0 or high < 0:
        return truth(low >= 0)
    if choice := _choice_in(value):
        condition, yes, no = choice
        return choose(condition, is_nonnegative(yes), is_nonnegative(no))
    terms = dict(polynomial(value))
    constant = terms.pop((), 0)
    common = gcd(*terms.values())
    value = sum_of({**{m: c // common for m, c in terms.items()}, (): constant // common})
    if _leading(value) < 0:  # -e >= 0 is not (e - 1 >= 0)
        return negation(node("ge0", "B", (plus(scaled(value, -1), number(-1)),)))
    return node("ge0", "B", (value,))


@lru_cache(1 << 14)
def is_zero(value: Term) -> Term:
    """The condition that an integer is 0."""
    low, high = range_of(value)
    if low > 0 or high < 0:
        return FALSE
    if low == high == 0:
        return TRUE
    if choice := _choice_in(value):
        condition, yes, no = choice
        return choose(condition, is_zero(yes), is_zero(no))
    terms = polynomial(value)
    common = gcd(*(c for m, c in terms.items() if m))
    if terms.get((), 0) % common:
        return FALSE
    value = sum_of({m: c // common for m, c in terms.items()})
    return node("eq0", "B", (value if _leading(value) > 0 else scaled(value, -1),))


def are_equal(a: Term, b: Term) -> Term:
    """The condition that two integers are equal."""
    return is_zero(minus(a, b))


def is_at_most(a: Term, b: Term) -> Term:
    """The condition ``a <= b``."""
    return is_nonnegative(minus(b, a))


def is_below(a: Term, b: Term) -> Term:
    """The condition ``a < b``."""
    return is_nonnegative(plus(b, scaled(a, -1), number(-1)))


def _leading(value: Term) -> int:
    """The coefficient of the first monomial that is no number."""
    terms: list[tuple[Monomial, int]] = [(m, c) for m, c in polynomial(value).items() if m]
    return min(terms, key=lambda item: monomial_key(item[0]))[1]


def _choice_in(value: Term) -> tuple[Term, Term, Term] | None:
    """A choice that is part of a sum: its condition, and the sum on both sides of it."""
    for monomial, coefficient in polynomial(value).items():
        if len(monomial) == 1 and monomial[0].op == "select":
            condition, yes, no = monomial[0].args
            rest = minus(value, scaled(monomial[0], coefficient))
            return (
                condition,
                plus(rest, scaled(yes, coefficient)),
                plus(rest, scaled(no, coefficient)),
            )
    return None
