"""Integer polynomials: sums of products of atoms with integer coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from loopkit._algebra.terms import ONE, ZERO, Term, node, number

Monomial = tuple[Term, ...]
"""Atoms that are multiplied, in the order of their keys; empty for 1."""

_MOST_TERMS = 256
"""A product of two sums that has more terms than these stays a product."""


@lru_cache(1 << 14)
def polynomial(term: Term) -> Mapping[Monomial, int]:
    """The monomials of an integer term, with their nonzero coefficients."""
    if term.op == "constant":
        return {(): term.data} if term.data else {}
    if term.op == "sum":
        return dict(zip(map(_monomial, term.args), term.data, strict=True))
    return {_monomial(term): 1}


def _monomial(term: Term) -> Monomial:
    if term is ONE:
        return ()
    return term.args if term.op == "product" else (term,)


@lru_cache(1 << 14)
def monomial_key(monomial: Monomial) -> tuple[tuple[object, ...], ...]:
    """The key by which monomials are ordered."""
    return tuple(atom.key for atom in monomial)


def sum_of(terms: Mapping[Monomial, int]) -> Term:
    """The term of a polynomial; coefficients may be 0."""
    monomials = [monomial for monomial, coefficient in terms.items() if coefficient]
    match monomials:
        case []:
            return ZERO
        case [()]:
            return number(terms[()])
        case [monomial] if terms[monomial] == 1:
            return _product(monomial)
    monomials.sort(key=monomial_key)
    return node("sum", "Z", [*map(_product, monomials)], tuple([terms[m] for m in monomials]))


def _product(monomial: Monomial) -> Term:
    if not monomial:
        return ONE
    return monomial[0] if len(monomial) == 1 else node("product", "Z", monomial)


@lru_cache(1 << 14)
def plus(*terms: Term) -> Term:
    """The sum of whole numbers."""
    total: dict[Monomial, int] = {}
    for term in terms:
        for monomial, coefficient in polynomial(term).items():
            total[monomial] = total.get(monomial, 0) + coefficient
    return sum_of(total)


@lru_cache(1 << 14)
def scaled(term: Term, factor: int) -> Term:
    """The product of an integer term and a number."""
    return sum_of({m: c * factor for m, c in polynomial(term).items()})


@lru_cache(1 << 14)
def minus(a: Term, b: Term) -> Term:
    """The difference of two whole numbers."""
    total = dict(polynomial(a))
    for monomial, coefficient in polynomial(b).items():
        total[monomial] = total.get(monomial, 0) - coefficient
    return sum_of(total)


@lru_cache(1 << 14)
def times(a: Term, b: Term) -> Term:
    """The product of two whole numbers."""
    one, two = polynomial(a), polynomial(b)
    if min(len(one), len(two)) > 1 and len(one) * len(two) > _MOST_TERMS:
        return node("product", "Z", sorted((a, b), key=lambda t: t.key))
    total: dict[Monomial, int] = {}
    for mine, c in one.items():
        for its, d in two.items():
            both = tuple(sorted((*mine, *its), key=lambda t: t.key))
            total[both] = total.get(both, 0) + c * d
    return sum_of(total)
