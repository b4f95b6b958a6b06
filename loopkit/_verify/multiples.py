"""``x + x + x`` and ``x + 2*x`` as ``3*x``: one form for sums of like terms.

Whole numbers of one type are numbers modulo a power of two: sums and products of them may be
regrouped at will, and ``x << 3`` is ``8*x``.  Floating-point numbers may not; but ``2*x`` is
exact, so that ``2*(4*x)`` is ``8*x`` and ``2*x + x`` is rounded once, as ``3*x`` is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._arrays import DType
from loopkit._check.value_types import ValueTypes
from loopkit._expression import (
    MOST_NESTED,
    ExpressionMapper,
    access_of,
    index_tuple,
    is_constant,
    is_no_access,
    nesting,
    nodes_of,
    variable_names,
)
from loopkit._nodes import Expression, subtrahend
from loopkit._promotion import FLOATS, INTEGERS
from loopkit._same import key_of, same
from loopkit._simplify import simplify
from loopkit._verify.terms import summed

_Factors = tuple[Expression, ...]
_Term = tuple[int, _Factors]
"""A coefficient and what it multiplies; nothing in the term that is a number."""

_LARGEST = 1 << 24
"""So large are the coefficients of floating-point terms."""


@dataclass(frozen=True)
class _Ring:
    """Whole numbers of one type."""

    dtype: DType

    @property
    def bits(self) -> int:
        """How many bits a number has."""
        return 8 * self.dtype.itemsize

    def holds(self, number: Expression) -> bool:
        """Whether a literal is a number of this type."""
        if isinstance(number, np.generic):
            return number.dtype == self.dtype
        known = np.iinfo(self.dtype)
        return type(number) is int and known.min <= number <= known.max

    def reduced(self, number: int, *, is_factor: bool) -> int:
        """The number of this type that a whole number is congruent to.

        As a factor the largest is -1, which subtracts.
        """
        size = 1 << self.bits
        number %= size
        is_negative = self.dtype.kind == "i" and number >= size // 2
        return number - size if is_negative or (is_factor and number == size - 1) else number


class Multiples(ExpressionMapper):
    """Collects like terms of sums, where every part is of the type of the whole."""

    def __init__(self, types: ValueTypes) -> None:
        super().__init__()
        self.types = types

    def map_subscript(self, expr: Any) -> Expression:
        # An index wraps around in no type; what is affine is compared as such.
        integers = self.types.model.integers
        indices = tuple(
            index if variable_names(index) <= integers else simplify(index)
            for index in index_tuple(expr)
        )
        return prim.Subscript(expr.aggregate, indices)

    def map_sum(self, expr: Any) -> Expression:
        kind = self.types.of(expr)
        if kind in INTEGERS:
            return self.collected(expr, kind)
        whole = self.whole_sum(expr)
        return self.float_sum(whole, kind) if kind in FLOATS else whole

    def whole_sum(self, expr: prim.Sum) -> prim.Sum:
        """A sum of terms in each of which like terms are collected."""
        terms = [self.rec(expr.children[0])]
        for number, child in enumerate(expr.children[1:], 2):
            subtracted = subtrahend(child)
            if subtracted is None or self.types.is_negated(expr.children[:number]):
                terms.append(self.rec(child))
            else:
                terms.append(prim.Product((-1, self.rec(subtracted))))
        return summed(self.types, expr.children, terms)

    def map_product(self, expr: Any) -> Expression:
        kind = self.types.of(expr)
        if kind in INTEGERS:
            return self.collected(expr, kind)
        whole = super().map_product(expr)
        return self.float_product(whole, kind) if kind in FLOATS else whole

    def map_left_shift(self, expr: Any) -> Expression:
        kind = self.types.of(expr)
        return self.collected(expr, kind) if kind in INTEGERS else super().map_left_shift(expr)

    def map_power(self, expr: Any) -> Expression:
        # As it is computed by code, and by NumPy; higher powers are rounded otherwise there.
        base, exponent = expr.base, expr.exponent
        kind = self.types.of(expr)
        if type(exponent) is int and exponent == 2 and kind in (*FLOATS, *INTEGERS):
            whole = prim.Product((base, base))
            if self.types.of(base) == kind == self.types.of(whole):
                return self.rec(whole)
        return super().map_power(expr)

    def collected(self, expr: Expression, dtype: Any) -> Expression:
        """A value of whole numbers with like terms collected."""
        ring = _Ring(dtype)
        found: dict[object, _Term] = {}
        for coefficient, factors in self.terms(expr, ring):
            key = tuple(map(key_of, factors))
            before = found[key][0] if key in found else 0
            found[key] = (before + coefficient, factors)
        # What cancels is still read.
        terms = [(ring.reduced(c, is_factor=bool(f)), f) for c, f in found.values()]
        now = reduce(_plus, (_value(c, f) for c, f in self.in_order(terms) if f or c))
        is_short = nesting(now, in_pairs=True) <= MOST_NESTED
        return now if is_short and self.types.of(now) == dtype else self.atom(expr)

    def terms(self, expr: Expression, ring: _Ring) -> Iterator[_Term]:
        """What is added up in a value of whole numbers of one type."""
        if is_constant(expr):
            yield int(expr), ()
        elif isinstance(expr, prim.Sum) and self.are_of(expr.children, ring):
            for child in expr.children:
                yield from self.terms(child, ring)
        elif isinstance(expr, prim.Product) and self.are_of(expr.children, ring, -1):
            parts = [[*self.terms(child, ring)] for child in expr.children]
            if sum(len(part) > 1 for part in parts) < 2 and all(c for p in parts for c, _ in p):
                yield from reduce(self.times, parts)
            else:
                yield 1, (self.atom(expr),)
        elif isinstance(expr, prim.LeftShift) and self.is_shift(expr, ring):
            yield from ((c << int(expr.shift), f) for c, f in self.terms(expr.shiftee, ring))
        else:
            yield 1, (self.atom(expr),)

    def atom(self, expr: Expression) -> Expression:
        """An expression as it stands, with like terms collected inside of its parts."""
        if isinstance(expr, prim.Sum):
            return self.whole_sum(expr)
        if isinstance(expr, prim.Product):
            return super().map_product(expr)
        return super().map_left_shift(expr) if isinstance(expr, prim.LeftShift) else self.rec(expr)

    def is_shift(self, expr: prim.LeftShift, ring: _Ring) -> bool:
        """Whether a shift is a product: it goes by fewer bits than there are."""
        by = expr.shift
        return self.are_of([expr.shiftee], ring) and type(by) is int and 0 <= by < ring.bits

    def are_of(self, parts: Sequence[Expression], ring: _Ring, *others: int) -> bool:
        """Whether all parts are of one type, or literals of it."""
        return all(
            ring.holds(p) or p in others if is_constant(p) else self.types.of(p) == ring.dtype
            for p in parts
        )

    def times(self, one: Sequence[_Term], other: Sequence[_Term]) -> list[_Term]:
        """A product of two sums."""
        return [
            (c * d, tuple(sorted((*f, *g), key=lambda e: (self.names(e), repr(e)))))
            for c, f in one
            for d, g in other
        ]

    def names(self, *parts: Expression) -> list[str]:
        """The arrays that expressions read, from left to right."""
        data = self.types.model.data
        reads = (access_of(node, data) for part in parts for node in nodes_of(part, is_no_access))
        return [read[0] for read in reads if read is not None]

    def in_order(self, terms: Sequence[_Term]) -> list[_Term]:
        """Terms by what they read of arguments, where all do that alone; the number last."""
        arguments = self.types.model.kernel.arg_by_name
        is_known = all(n in arguments for _, factors in terms for n in self.names(*factors))

        def place(term: _Term) -> tuple[object, ...]:
            by_name = (self.names(*term[1]), -term[0]) if is_known else ()
            return (not term[1], *by_name)

        return sorted(terms, key=place)

    def float_sum(self, whole: prim.Sum, dtype: Any) -> Expression:
        """A sum of floating-point numbers, with two like terms as one where that rounds alike."""
        left, *rest = whole.children
        kept: list[Expression] = [left]
        for child in rest:
            both = self.rounded_once(kept[0], child, dtype) if len(kept) == 1 else None
            kept = [*kept, child] if both is None else [both]
        return reduce(_plus, kept) if len(kept) < len(whole.children) else whole

    def rounded_once(self, one: Expression, two: Expression, dtype: Any) -> Expression | None:
        """A sum of multiples of one value as a multiple of it; None where it may differ.

        Multiples by powers of two are exact, and so their sum is rounded once.  The rounded
        ``3*x`` is off by half of what tells ``4*x`` from its neighbours at most, and by that
        much only where ``4*x`` is the even one: ``3*x + x`` is ``4*x``.
        """
        (first, mine), (second, its) = _scaled(one), _scaled(two)
        if is_constant(mine) or not same(mine, its) or (first > 0) != (second > 0):
            return None
        exact = _is_power(first) and _is_power(second)
        if not exact and {abs(first), abs(second)} != {1, 3}:
            return None
        if not self.all_of([one, two, mine], dtype) or not _is_exact(first + second, dtype):
            return None
        return _multiple(first + second, mine)

    def float_product(self, whole: prim.Product, dtype: Any) -> Expression:
        """A product with a whole number in front, those inside of each other as one."""
        if len(whole.children) != 2:
            return whole
        numbers = [c for c in whole.children if is_constant(c)]
        others = [c for c in whole.children if not is_constant(c)]
        if len(others) != 1 or not self.all_of(others, dtype):
            return whole
        factor = _whole(numbers[0])
        if factor is None or not _is_exact(factor, dtype):
            return whole
        now = _multiple(factor, others[0])
        inner, value = _scaled(others[0])
        is_rounded_once = all(map(_is_power, (factor, inner))) or 1 in (abs(factor), abs(inner))
        if is_rounded_once and _is_exact(factor * inner, dtype):
            now = _multiple(factor * inner, value)
        return now if self.types.of(now) == dtype else whole

    def all_of(self, parts: Sequence[Expression], dtype: Any) -> bool:
        """Whether all parts are of one type."""
        return all(self.types.of(part) == dtype for part in parts)


def _plus(one: Expression, two: Expression) -> Expression:
    return prim.Sum((one, two))


def _value(factor: int, values: _Factors) -> Expression:
    """A term as an expression, of two operands each."""
    return (
        _multiple(factor, reduce(lambda a, b: prim.Product((a, b)), values)) if values else factor
    )


def _multiple(factor: int, value: Expression) -> Expression:
    return value if factor == 1 else prim.Product((factor, value))


def _scaled(expr: Expression) -> tuple[int, Expression]:
    """A value as a multiple of another."""
    if isinstance(expr, prim.Product) and len(expr.children) == 2:
        factor, value = expr.children
        if type(factor) is int and not is_constant(value):
            return factor, value
    return 1, expr


def _whole(number: Expression) -> int | None:
    """A literal as a whole number other than zero; None where it is none."""
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return int(number) if number and number == number // 1 else None
    return None


def _is_power(number: int) -> bool:
    """Whether a number is a power of two, or minus one of these."""
    return abs(number).bit_count() == 1


def _is_exact(number: int, dtype: DType) -> bool:
    """Whether a floating-point type has a whole number, and a large one it may be."""
    return 0 < abs(number) <= _LARGEST and float(dtype.type(number)) == number
