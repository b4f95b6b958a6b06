"""Integer expressions of names, ``+``, ``-`` and ``*`` as polynomials, compared by their terms.

``i*n + 16*o + r`` and ``(i*n + r) + o*16`` are the same polynomial.  Affine sets cannot show this,
since ``i*n`` is not affine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pymbolic.primitives as prim

from loopkit._expression import substitute
from loopkit._nodes import Expression

Monomial = tuple[Expression, ...]
Polynomial = Mapping[Monomial, int]
"""Coefficients, none of them 0, by factors in an order of their own."""

MOST = 64
"""So many terms a polynomial has at most, that nobody waits for ``(a + b + c)**9``."""


class NoPolynomialError(Exception):
    """An expression is no polynomial, or has too many terms."""


def _atom(expr: Expression) -> Expression:
    """The default of :func:`polynomial` for a subexpression that becomes a variable."""
    if isinstance(expr, prim.Variable):
        return expr
    if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
        parts = [_expression(polynomial(e)) for e in (expr.numerator, expr.denominator)]
        return type(expr)(*parts)
    if isinstance(expr, (prim.Min, prim.Max)):
        children = {_expression(polynomial(child)) for child in expr.children}
        return type(expr)(tuple(sorted(children, key=repr)))
    raise NoPolynomialError


def polynomial(
    expr: Expression,
    atom: Callable[[Expression], Expression] = _atom,
    whole: Callable[[Expression], Expression | None] = lambda _: None,
) -> Polynomial:
    """An expression of inames and sizes as a polynomial; quotients and remainders are atoms.

    ``atom`` says what stands for an expression that is neither sum nor product nor number.  For a
    sum that is a factor stands what ``whole`` says, if anything.

    Raises :class:`NoPolynomialError` for others, which may be computed in types that wrap around,
    and for more than :data:`MOST` terms.
    """
    if isinstance(expr, int) and not isinstance(expr, bool):
        return {(): expr} if expr else {}
    if isinstance(expr, prim.Sum):
        return _sum(polynomial(child, atom, whole) for child in expr.children)
    if isinstance(expr, prim.Product):
        found: Polynomial = {(): 1}
        for child in expr.children:
            one = whole(child) if isinstance(child, prim.Sum) else None
            its = polynomial(child, atom, whole) if one is None else {(one,): 1}
            found = _checked(times(found, its))
        return found
    found_atom = atom(expr)
    if found_atom is not expr and isinstance(found_atom, (int, prim.Sum, prim.Product)):
        return polynomial(found_atom, lambda expr: expr)
    return {(found_atom,): 1}


def are_one_polynomial(
    one: Expression, other: Expression, equalities: Iterable[tuple[str, Expression]] = ()
) -> bool:
    """Whether two integer expressions are the same polynomial, where names have these values.

    False says nothing.
    """
    difference = prim.Sum((one, prim.Product((-1, other))))
    try:
        if not polynomial(difference):
            return True
        for name, value in equalities:
            difference = substitute(difference, {name: value})
        return not polynomial(difference)
    except NoPolynomialError:
        return False


def in_order(factors: Monomial) -> Monomial:
    """Factors in the order that those of a :data:`Polynomial` have."""
    return tuple(sorted(factors, key=repr))


def _sum(parts: Iterable[Polynomial]) -> Polynomial:
    found: dict[Monomial, int] = {}
    for part in parts:
        for factors, coefficient in part.items():
            found[factors] = found.get(factors, 0) + coefficient
    return _checked(found)


def times(one: Polynomial, other: Polynomial) -> dict[Monomial, int]:
    """All terms of a product, also those that cancel each other."""
    found: dict[Monomial, int] = {}
    for mine, first in one.items():
        for its, second in other.items():
            factors = in_order((*mine, *its))
            found[factors] = found.get(factors, 0) + first * second
    return found


def _checked(terms: Mapping[Monomial, int]) -> Polynomial:
    if len(terms) > MOST:
        raise NoPolynomialError
    return {factors: coefficient for factors, coefficient in terms.items() if coefficient}


def _expression(terms: Polynomial) -> Expression:
    """The polynomial in an order of its own."""
    ordered = sorted(terms.items(), key=repr)
    return prim.Sum(tuple(prim.Product((c, *factors)) for factors, c in ordered))
