"""Normal forms of quotients that are rounded down."""

from __future__ import annotations

from math import gcd

from loopkit._algebra.polynomials import Monomial, monomial_key, plus, polynomial, sum_of
from loopkit._algebra.ranges import range_of
from loopkit._algebra.terms import INF, Term, is_constant, node, number


def floor(term: Term, divisor: int) -> Term:
    """An integer divided by a positive one: multiples and common factors are taken out.

    ``(12*t + 4*s + v) // 8`` is ``t + (t + s) // 2`` where ``0 <= v < 4``.
    """
    terms = polynomial(term)
    whole = {m: c // divisor for m, c in terms.items() if m and c % divisor == 0}
    rest = {m: c for m, c in terms.items() if m and c % divisor}
    carried, constant = divmod(terms.get((), 0), divisor)
    whole[()] = carried
    if not rest:
        return sum_of(whole)
    common = gcd(divisor, *rest.values())
    rest = {m: c // common for m, c in rest.items()}
    return plus(sum_of(whole), _floor_of_rest(rest, constant // common, divisor // common))


def _floor_of_rest(rest: dict[Monomial, int], constant: int, divisor: int) -> Term:
    """Of a sum without a multiple of the divisor, nor a common factor."""
    inner = sum_of({**rest, (): constant})
    if divisor == 1:
        return inner
    if (found := _without_small_terms(rest, constant, divisor)) is not None:
        return found
    low, high = range_of(inner)
    if low > -INF and high < INF and low // divisor == high // divisor:
        return number(int(low // divisor))
    if inner.op == "sum" and len(rest) == 1:
        (monomial, coefficient), *_ = rest.items()
        if coefficient == 1 and len(monomial) == 1 and _divisor_of(monomial[0]):
            inner_divisor = _divisor_of(monomial[0])  # (x // a + k) // b is (x + k*a) // (a*b)
            shifted = plus(monomial[0].args[0], number(constant * inner_divisor))
            return floor(shifted, inner_divisor * divisor)
    if _divisor_of(inner):
        return floor(inner.args[0], _divisor_of(inner) * divisor)
    return node("fdiv", "Z", (inner, number(divisor)))


def _divisor_of(term: Term) -> int:
    """The divisor of a quotient by a number; 0 for other terms."""
    is_quotient = term.op == "fdiv" and is_constant(term.args[1])
    return int(term.args[1].data) if is_quotient and term.args[1].data > 0 else 0


def _without_small_terms(rest: dict[Monomial, int], constant: int, divisor: int) -> Term | None:
    """``(8*t + v) // 32`` is ``t // 4`` where ``0 <= v < 8``."""
    ordered = sorted(rest, key=lambda m: (-abs(rest[m]), monomial_key(m)))
    common = divisor
    for count, monomial in enumerate(ordered[:-1], 1):
        common = gcd(common, rest[monomial])
        if common == 1:
            return None
        small = {m: rest[m] for m in ordered[count:]}
        low, high = range_of(sum_of({**small, (): constant % common}))
        if low >= 0 and high < common:
            large = {m: rest[m] // common for m in ordered[:count]}
            return floor(sum_of({**large, (): constant // common}), divisor // common)
    return None


def quotient(term: Term, divisor: Term) -> tuple[Term, Term] | None:
    """A sum as ``whole*divisor + rest``, for a product of names above 0; None where it is no such.

    ``(y*x + z) // y`` is ``x + z // y``.
    """
    factors = polynomial(divisor)
    if len(factors) != 1 or range_of(divisor)[0] <= 0:
        return None
    (by, c), *_ = factors.items()
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in polynomial(term).items():
        left = list(monomial)
        for atom in by:
            if atom in left:
                left.remove(atom)
        if coefficient % c == 0 and len(left) + len(by) == len(monomial):
            whole[tuple(left)] = coefficient // c
        else:
            rest[monomial] = coefficient
    return (sum_of(whole), sum_of(rest)) if whole else None
