"""What whole numbers say that no set does: products of names, and quotients by names.

Each is a name for the value of a function (:mod:`.reads`), and what holds of all such values are
constraints between the names.  They are what flat subscripts need: of ``i*m + j`` and
``k*m + l`` with ``0 <= j, l < m`` the first comes first where ``i < k``, because then
``i*m + m <= k*m``.

All sets here are supersets of what there is: nothing that can happen is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product as pairs
from typing import TYPE_CHECKING

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._assertions.reads import PART, PRODUCT, QUOTIENT, Read, Reads
from loopkit._hidden import plain
from loopkit._nodes import Expression

if TYPE_CHECKING:
    from loopkit._assertions.constraints import Data

_Relation = tuple[Expression, str, Expression]


def facts_of_products(values: Reads, data: Data) -> Iterator[isl.Set]:
    """What holds of each product and quotient among some values, and of each two of them."""
    reads = values.reads
    parts = [read for read in reads if read.function == PART]
    for read in parts:
        yield _part(read)
    known_parts = (r.name for r in parts if _is_in(r.arguments[0], data.positive))
    positive = data.positive.union(known_parts)
    products = [read for read in reads if read.function == PRODUCT]
    for number, one in enumerate(products):
        for other in products[:number]:
            yield from _of_two(one, other, positive)
        for other, scale in pairs(products, values.scales[prim.Variable(one.name)]):
            if one is not other and one.arguments[1] == other.arguments[1] and scale > 1:
                x, v = (_times(scale, e) for e in (one.arguments[0], prim.Variable(one.name)))
                y, by = other.arguments
                yield _ordered((x, v), (y, prim.Variable(other.name)), by, positive)
    for read in reads:
        if read.function == QUOTIENT:
            yield _quotient(read, products, positive)
    ranges = dict(data.ranges)
    for one in products:
        value, (factor, by) = prim.Variable(one.name), one.arguments
        if factor == by:
            yield from _square(value, factor)
        known = set(values.multiples.get(by, ()))
        if isinstance(factor, prim.Variable) and not _is_in(by, data.sizes):
            low, high = ranges.get(plain(factor.name), (None, None))
            known.update((low, high) if low is not None and high is not None else ())
        for number in sorted(known):
            yield _ordered((factor, value), (number, _times(number, by)), by, positive)
        if _is_in(factor, data.sizes) and _is_in(by, data.sizes):
            yield _all((value, "==", 0)) | _all((factor, "!=", 0), (by, "!=", 0))
            for x, y in ((factor, by), (by, factor)):
                yield _all((y, "<=", value)) | _all((x, "<=", 0)) | _all((y, "<", 0))


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
    return found if _is_in(by, positive) else found | _all((by, "<", 0))


def _is_in(expr: Expression, names: frozenset[str]) -> bool:
    return isinstance(expr, prim.Variable) and expr.name in names


def _square(value: Expression, root: Expression) -> Iterator[isl.Set]:
    yield _all((root, "<=", value))
    yield _all((_times(-1, root), "<=", value))


def _quotient(read: Read, products: Iterable[Read], positive: frozenset[str]) -> isl.Set:
    """``q = a // m`` is where ``q*m <= a < q*m + m``, for ``m`` above zero."""
    value, (a, m) = prim.Variable(read.name), read.arguments
    [back] = [prim.Variable(p.name) for p in products if p.arguments == (value, m)]
    found = _all((m, ">", 0), (back, "<=", a), (a, "<", _plus(back, m)))
    return found | _all((m, "==" if _is_in(m, positive) else "<=", 0))


def _part(read: Read) -> isl.Set:
    """``q = a // 8`` is where ``8*q <= a < 8*q + 8``."""
    a, number = read.arguments
    back = _times(number, prim.Variable(read.name))
    return _all((back, "<=", a), (a, "<", _plus(back, number)))


def _plus(*terms: Expression) -> Expression:
    return prim.Sum(terms)


def _times(number: int, factor: Expression) -> Expression:
    return prim.Product((number, factor))


def _all(*relations: _Relation) -> isl.Set:
    return _sets.comparisons(relations)
