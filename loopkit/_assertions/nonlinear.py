"""What whole numbers say that no set does: products of names, and quotients by names.

Each is a name for the value of a function (:mod:`.reads`), and what holds of all such values are
constraints between the names.  They are what flat subscripts need: of ``i*m + j`` and
``k*m + l`` with ``0 <= j, l < m`` the first comes first where ``i < k``, because then
``i*m + m <= k*m``.

All sets here are supersets of what there is: nothing that can happen is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._assertions.reads import PRODUCT, QUOTIENT, Read
from loopkit._nodes import Expression

_Relation = tuple[Expression, str, Expression]


def facts_of_products(
    reads: Iterable[Read], multiples: Mapping[Expression, Iterable[int]], positive: frozenset[str]
) -> Iterator[isl.Set]:
    """What holds of each product and quotient among some values, and of each two of them.

    ``multiples`` are the numbers that factors are multiplied by elsewhere, ``positive`` names
    that are not below zero.
    """
    products = [read for read in reads if read.function == PRODUCT]
    for number, one in enumerate(products):
        for other in products[:number]:
            yield from _of_two(one, other, positive)
    for read in reads:
        if read.function == QUOTIENT:
            yield _quotient(read, products, positive)
    for one in products:
        value, (factor, by) = prim.Variable(one.name), one.arguments
        if factor == by:
            yield from _square(value, factor)
        for known in sorted(multiples.get(by, ())):
            yield _ordered((factor, value), (known, _times(known, by)), by, positive)


def _of_two(one: Read, other: Read, positive: frozenset[str]) -> Iterator[isl.Set]:
    v, w = prim.Variable(one.name), prim.Variable(other.name)
    (a, b), (c, d) = one.arguments, other.arguments
    if b == d:
        yield _ordered((a, v), (c, w), b, positive)
    if a == b and c == d:
        yield (
            _all((a, "<", 0))
            | _all((c, "<", 0))
            | _all((a, "==", c), (v, "==", w))
            | _all((a, "<", c), (_plus(v, a, c), "<=", w))
            | _all((c, "<", a), (_plus(w, a, c), "<=", v))
        )


def _ordered(
    one: tuple[Expression, Expression],
    other: tuple[Expression, Expression],
    by: Expression,
    positive: frozenset[str],
) -> isl.Set:
    """What ``v = x*by`` and ``w = y*by`` say of each other: ``by`` at least is between them."""
    (x, v), (y, w) = one, other
    found = (
        _all((x, "==", y), (v, "==", w))
        | _all((x, "<", y), (_plus(v, by), "<=", w))
        | _all((y, "<", x), (_plus(w, by), "<=", v))
    )
    return found if _is_positive(by, positive) else found | _all((by, "<", 0))


def _is_positive(expr: Expression, positive: frozenset[str]) -> bool:
    return isinstance(expr, prim.Variable) and expr.name in positive


def _square(value: Expression, root: Expression) -> Iterator[isl.Set]:
    yield _all((root, "<=", value))
    yield _all((_times(-1, root), "<=", value))


def _quotient(read: Read, products: Iterable[Read], positive: frozenset[str]) -> isl.Set:
    """``q = a // m`` is where ``q*m <= a < q*m + m``, for ``m`` above zero."""
    value, (a, m) = prim.Variable(read.name), read.arguments
    [back] = [prim.Variable(p.name) for p in products if p.arguments == (value, m)]
    found = _all((m, ">", 0), (back, "<=", a), (a, "<", _plus(back, m)))
    return found | _all((m, "==" if _is_positive(m, positive) else "<=", 0))


def _plus(*terms: Expression) -> Expression:
    return prim.Sum(terms)


def _times(number: int, factor: Expression) -> Expression:
    return prim.Product((number, factor))


def _all(*relations: _Relation) -> isl.Set:
    found = _sets.universe()
    for relation in relations:
        found = found & _sets.condition_set(prim.Comparison(*relation))
    return found
