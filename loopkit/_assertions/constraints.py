"""Constraints between the values of expressions that sets cannot represent.

Such values are loaded from arrays, or are products of names and quotients by names. Each is named
as the value of a function (:mod:`.reads`), and known facts become constraints between the names:
assertions about arrays, and properties of products and quotients. Flattened subscripts need these:
of ``i*m + j`` and ``k*m + l`` with ``0 <= j, l < m`` the first is less if ``i < k``, because then
``i*m + m <= k*m``. All sets here are supersets of what can happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import product as pairs

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import product
from loopkit._assertions.assertion_values import Facts
from loopkit._assertions.limits import Limits
from loopkit._assertions.reads import PART, PRODUCT, QUOTIENT, Read, Reads
from loopkit._frozen import dataclass
from loopkit._hidden import plain
from loopkit._nodes import Expression
from loopkit._poly.pairs import between
from loopkit._same import Exact


@dataclass(frozen=True, eq=False)
class Data(Exact):
    """What is known about names, in addition to the assertions.

    ``shapes`` gives the extents of index arrays. The values of ``varying`` names (temporaries and
    arrays that the kernel writes) may differ between two instances; None means all arrays without
    assertions. ``integers`` are the names of inames, sizes and data with integer values; None
    means all. ``computed`` gives the expressions of those ``sizes`` that are computed from others.
    ``ranges`` are the smallest and largest values of inames and sizes, None if unbounded,
    ``limits`` those of computed values.
    """

    shapes: tuple[tuple[str, tuple[Expression, ...]], ...] = ()
    varying: frozenset[str] | None = None
    integers: frozenset[str] | None = None
    sizes: frozenset[str] = frozenset()
    computed: tuple[tuple[str, Expression], ...] = ()
    ranges: tuple[tuple[str, tuple[int | None, int | None]], ...] = ()
    limits: Limits = field(default_factory=Limits)

    @property
    def positive(self) -> frozenset[str]:
        """Sizes that are not below zero."""
        return frozenset(
            n for n, (low, _) in self.ranges if n in self.sizes and low is not None and low >= 0
        )

    def extents(self, array: str) -> tuple[Expression, ...] | None:
        """The shape of ``array`` where it is known, and affine."""
        shape = dict(self.shapes).get(array)
        return shape if shape is not None and all(map(_sets.is_affine, shape)) else None

    def count(self, array: str) -> Expression | None:
        """How many cells ``array`` has, where that is known and affine."""
        shape = dict(self.shapes).get(array)
        if shape is None:
            return None
        count = product(list(shape))
        return count if _sets.is_affine(count) else None


def solutions(start: isl.Set, values: Reads, facts: Facts, data: Data) -> isl.Set:
    """The part of ``start`` that the values of reads allow, with the values projected out.

    ``start`` is over the names of values, too.
    """
    found, reads = start, values.reads
    for fact in facts_of_products(values, data):
        found = (found & fact).coalesce()
    for read in reads:
        found = found & _alone(read, facts, data)
    for position, one in enumerate(reads):
        for other in reads[:position]:
            together = None if _is_known(found, other, one, facts) else _together(other, one, facts)
            if together is not None:
                # Most pieces of such a union are empty: coalescing drops them as they arise.
                found = (found & together).coalesce()
    return _sets.project_out(found, [read.name for read in reads]).coalesce()


def _is_known(found: isl.Set, one: Read, other: Read, facts: Facts) -> bool:
    """Whether two values of one array are equal anyway, and equal ones may lie anywhere."""
    may_repeat = one.function == other.function and one.array not in facts.injective
    equal = _holds(prim.Variable(one.name), "==", prim.Variable(other.name))
    return may_repeat and found.is_subset(equal)


def _alone(read: Read, facts: Facts, data: Data) -> isl.Set:
    found = _sets.universe()
    if read.limits is not None:
        found = between(read.name, *read.limits)
    if read.function[0] not in ("array", "varying"):
        return found
    array = plain(read.function[1])
    extents = data.extents(array)
    if extents is not None and len(extents) == len(read.arguments):
        for argument, extent in zip(read.arguments, extents, strict=True):
            found = found & _holds(0, "<=", argument) & _holds(argument, "<", extent)
    bounds = facts.bounds.get(array, ())
    lowers = [lower for lower, _ in bounds if _sets.is_affine(lower)]
    uppers = [upper for _, upper in bounds if _sets.is_affine(upper)]
    value = prim.Variable(read.name)
    strict = read.array in facts.strict and len(read.arguments) == 1
    for lower in lowers:
        # The p-th of values that go up is p above the first at least.
        least = prim.Sum((lower, read.arguments[0])) if strict else lower
        found = found & _holds(least, "<=", value)
    for upper in uppers:
        most = upper
        if strict and extents is not None and len(extents) == 1:
            behind = prim.Sum((extents[0], -1, prim.Product((-1, read.arguments[0]))))
            most = prim.Sum((upper, prim.Product((-1, behind))))
        found = found & _holds(value, "<", most)
    count = data.count(read.array) if read.array in facts.injective else None
    if count is not None:
        for lower in lowers:
            for upper in uppers:
                found = found & _holds(prim.Sum((lower, count)), "<=", upper)
    return found


def _holds(left: Expression, operator: str, right: Expression) -> isl.Set:
    return _sets.comparisons([(left, operator, right)])


def _together(one: Read, other: Read, facts: Facts) -> isl.Set | None:
    """What two values say of each other; None if nothing."""
    v, w = prim.Variable(one.name), prim.Variable(other.name)
    if one.function != other.function or len(one.arguments) != len(other.arguments):
        if one.array is not None and other.array in facts.apart.get(one.array, ()):
            return _holds(v, "!=", w)
        return None
    if one.function in (PRODUCT, QUOTIENT, PART):
        return None
    pairs = list(zip(one.arguments, other.arguments, strict=True))
    same = _sets.comparisons((p, "==", q) for p, q in pairs)
    equal = same & _holds(v, "==", w)
    if one.array in facts.increasing and len(pairs) == 1:
        [(p, q)] = pairs
        strict = one.array in facts.strict
        return equal | _climbing(p, q, v, w, strict) | _climbing(q, p, w, v, strict)
    apart = same.complement()
    if one.array in facts.injective:
        apart = apart & _holds(v, "!=", w)
    return equal | apart


def _climbing(
    p: Expression, q: Expression, v: Expression, w: Expression, strictly: bool
) -> isl.Set:
    """``v`` at ``p`` and ``w`` at ``q``, where ``p < q``."""
    further = prim.Sum((v, q, prim.Product((-1, p)))) if strictly else v
    return _sets.comparisons([(p, "<", q), (further, "<=", w)])


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
