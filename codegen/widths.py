"""How large index arithmetic gets, and so how wide its integers must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ValueArg
from loopkit._cached import cached_property
from loopkit._hidden import hidden
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._sets import NotAffineError
from loopkit.codegen import bits
from loopkit.codegen.hardware import Hardware

INT32 = np.dtype("int32")
INT64 = np.dtype("int64")
Range = tuple[int, int]
_LIMITS = (-(2**31), 2**31 - 1)
HEADROOM = 1024
"""How far 32-bit sizes stay below the largest integer, so that rounding them up cannot overflow."""
EVERYTHING = (-(2**63), 2**63 - 1)
_COUNTABLE = 2**53


def largest_size(dtype: np.dtype[Any]) -> int:
    """The largest value that generated code takes for a size of this type."""
    info = np.iinfo(dtype)
    return int(info.max) - HEADROOM if info.bits == 32 else int(info.max)


@dataclass
class _Place:
    """Where texts stand: what holds there, and what was found out about it."""

    context: tuple[isl.Set | Expression, ...]
    sizes: isl.Set
    ranges: dict[str, Range] = field(default_factory=dict)
    nonnegative: dict[Expression, bool] = field(default_factory=dict)

    @cached_property
    def set(self) -> isl.Set:
        """All that holds, as far as sets can say it."""
        result = self.sizes
        for part in self.context:
            if not isinstance(part, isl.Set):
                try:
                    part = _sets.condition_set(part)
                except NotAffineError:
                    continue
            result = result & part
        return result

    def of_name(self, name: str) -> Range:
        """The smallest and largest value that a name has here."""
        found = self.ranges.get(name)
        if found is None:
            found = self.ranges[name] = extremes(self.set, prim.Variable(name))
        return found


class Ranges:
    """Bounds of inames, sizes and expressions of them, under a kernel's assumptions."""

    def __init__(self, kernel: Kernel, hardware: Hardware) -> None:
        self.kernel = kernel
        self.hardware = hardware
        self._known: dict[str, Range] = {}
        self._held: dict[str, Range] = {}
        self._context = kernel.assumptions.set
        self._extent_sizes = _sizes_of_extents(kernel)
        for name in kernel.sizes:
            self._context = self._context & _box(name, self._type_range(name))
        self._places: dict[tuple[int, ...], _Place] = {}
        self._place = _Place((), self._context)

    @property
    def context(self) -> tuple[isl.Set | Expression, ...]:
        """What holds where texts stand now, beside the assumptions: sets and conditions."""
        return self._place.context

    def enter(self, context: tuple[isl.Set | Expression, ...]) -> None:
        """Texts stand where all of ``context`` holds, from now on."""
        key = tuple(map(id, context))
        if key not in self._places:
            self._places[key] = _Place(context, self._context)
        self._place = self._places[key]

    def _type_range(self, name: str) -> Range:
        argument = self.kernel.arg_by_name[name]
        assert isinstance(argument, ValueArg)
        info = np.iinfo(argument.dtype or INT32)
        low = 0 if name in self._extent_sizes else int(info.min)
        return low, largest_size(argument.dtype or INT32)

    def of_name(self, name: str) -> Range:
        """The smallest and largest value of an iname or size."""
        found = self._known.get(name)
        if found is None:
            if name in self.kernel.home_domain:
                # What only data bounds stays as large as can be.
                domain = self.kernel.domain_around([name])
            elif name in self.kernel.sizes:
                domain = _sets.universe()
            else:
                return self._data_limits(name) or EVERYTHING
            found = extremes(domain & self._context, prim.Variable(name))
            self._known[name] = found
        return found

    def add(self, name: str, values: Range) -> None:
        """An iname's variable takes these values, too, and texts compute with them."""
        self._known[name] = hull(self.of_name(name), values)

    def hold(self, name: str, values: Range) -> None:
        """An iname's variable must hold these values, though nothing is computed with them."""
        self._held[name] = hull(self._held.get(name, values), values)

    def reached(self, expr: Expression) -> Range:
        """The smallest and largest value of an integer expression where texts stand now.

        Exactly so where sets can say it.
        """
        rough = self.of(expr)
        value = prim.Variable(hidden("value"))
        try:
            graph = _sets.condition_set(prim.Comparison(value, "==", expr))
        except NotAffineError:
            return rough
        values = self._with_data(self._place.set & graph)
        if values.is_empty():
            return 0, 0
        low, high = extremes(values, value)
        return max(low, rough[0]), min(high, rough[1])

    def _with_data(self, domain: isl.Set) -> isl.Set:
        """A set where data in it has values of its type."""
        for name in sorted(_sets.involved_names(domain)):
            limits = self._data_limits(name)
            if limits is not None:
                domain = domain & _box(name, limits)
        return domain

    def _data_limits(self, name: str) -> Range | None:
        if not self.kernel.is_array(name):
            return None
        dtype = self.kernel.array(name).dtype
        if dtype is None or dtype.kind not in "iu":
            return None
        info = np.iinfo(dtype)
        return int(info.min), int(info.max)

    def dtype_of(self, name: str) -> np.dtype[Any]:
        """The type that an iname or size has in the generated code."""
        argument = self.kernel.arg_by_name.get(name)
        if isinstance(argument, ValueArg):
            return argument.dtype or INT32
        values = self.of_name(name)
        return INT32 if fits(hull(values, self._held.get(name, values))) else INT64

    def of(self, expr: Expression) -> Range:
        """The smallest and largest value of an integer expression, by intervals."""
        return interval(expr, self.of_name, bits.interval)

    def holds(self, expr: Expression) -> bool:
        """Whether integers of 64 bits hold what inames and sizes make where texts stand now.

        Sizes of 64 bits, and what nothing but data bounds, are taken to stay below 2**53:
        no array has as many elements.
        """
        return self.magnitude(expr) < 2**63 or in_64_bits(self.reached(expr))

    def magnitude(self, expr: Expression) -> int:
        """The largest magnitude of what inames and sizes make, by intervals."""
        low, high = interval(expr, self._countable, bits.interval)
        return max(-low, high)

    def _countable(self, name: str) -> Range:
        low, high = self.of_name(name)
        return max(low, -_COUNTABLE), min(high, _COUNTABLE)

    def is_nonnegative(self, expr: Expression) -> bool:
        """Whether an integer expression is provably never negative where texts stand now.

        What is asked is not the domain: a loop may pass values for which the loops
        inside of it are empty, and computes their bounds first.
        """
        known = self._place.nonnegative
        if expr not in known:
            known[expr] = self._is_nonnegative(expr)
        return known[expr]

    def _is_nonnegative(self, expr: Expression) -> bool:
        if interval(expr, self._place_of_name)[0] >= 0:
            return True
        try:
            below = _sets.pw_affine(expr).lt_set(_sets.pw_affine(0))
        except NotAffineError:
            return False
        return bool((self._place.set & below).is_empty())

    def _place_of_name(self, name: str) -> Range:
        if name in self.kernel.sizes:
            return self.of_name(name)
        return self._place.of_name(name) if name in self.kernel.home_domain else EVERYTHING

    def is_narrow(self, values: Range) -> bool:
        """Whether 32-bit integers hold all values of a range."""
        return fits(values)


def in_64_bits(values: Range) -> bool:
    """Whether all values of a range are 64-bit integers."""
    return EVERYTHING[0] <= values[0] and values[1] <= EVERYTHING[1]


def fits(values: Range) -> bool:
    """Whether all values of a range are 32-bit integers."""
    return _LIMITS[0] <= values[0] and values[1] <= _LIMITS[1]


Other = Callable[[Expression, Callable[[Expression], Range]], Range | None]


def interval(
    expr: Expression, of_name: Callable[[str], Range], other: Other = lambda expr, of: None
) -> Range:
    """The smallest and largest value of an integer expression, from those of its names.

    ``other`` knows what is no arithmetic of linear forms, from the values of its operands.
    """

    def of(part: Expression) -> Range:
        return interval(part, of_name, other)

    if isinstance(expr, (int, np.integer)):
        return int(expr), int(expr)
    if isinstance(expr, prim.Variable):
        return of_name(expr.name)
    if isinstance(expr, prim.Sum):
        ranges = [of(c) for c in expr.children]
        return sum(r[0] for r in ranges), sum(r[1] for r in ranges)
    if isinstance(expr, prim.Product):
        product = 1, 1
        for child in expr.children:
            product = product_range(product, of(child))
        return product
    if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
        sides = (of(e) for e in (expr.numerator, expr.denominator))
        return quotient_range(expr, *sides)
    if isinstance(expr, prim.Min):
        parts = [of(c) for c in expr.children]
        return min(p[0] for p in parts), min(p[1] for p in parts)
    if isinstance(expr, prim.Max):
        parts = [of(c) for c in expr.children]
        return max(p[0] for p in parts), max(p[1] for p in parts)
    if isinstance(expr, prim.If):
        return hull(of(expr.then), of(expr.else_))
    return other(expr, of) or EVERYTHING


def extremes(domain: isl.Set, expr: Expression) -> Range:
    """The smallest and largest value of an affine expression in a set."""
    if domain.is_empty():
        return 0, 0
    low = _sets.minimum_value(domain, expr)
    high = _sets.maximum_value(domain, expr)
    return EVERYTHING[0] if low is None else low, EVERYTHING[1] if high is None else high


def hull(first: Range, second: Range) -> Range:
    """The range around two ranges."""
    return min(first[0], second[0]), max(first[1], second[1])


def product_range(first: Range, second: Range) -> Range:
    """The smallest and largest product of values of two ranges."""
    corners = tuple(x * y for x in first for y in second)
    return min(corners), max(corners)


def quotient_range(
    expr: prim.FloorDiv | prim.Remainder, numerator: Range, denominator: Range
) -> Range:
    """The smallest and largest value of a floor division, or of its remainder."""
    low, high = numerator
    if isinstance(expr, prim.FloorDiv):
        if denominator[0] > 0:
            quotients = [x // d for x in numerator for d in denominator]
            return min(quotients), max(quotients)
        return min(low, -high), max(high, -low)
    low, high = denominator
    return (0, high - 1) if low > 0 else (min(low + 1, 0), max(high - 1, 0))


def _box(name: str, values: Range) -> isl.Set:
    """Where a name has a value in a range."""
    variable = prim.Variable(name)
    low = prim.Comparison(variable, ">=", values[0])
    return _sets.condition_set(prim.LogicalAnd((low, prim.Comparison(variable, "<=", values[1]))))


def _sizes_of_extents(kernel: Kernel) -> frozenset[str]:
    """Sizes that are, alone, the extent of an argument: never negative."""
    found = set()
    for argument in kernel.args:
        for extent in getattr(argument, "shape", None) or ():
            if isinstance(extent, prim.Variable):
                found.add(extent.name)
    return frozenset(found)
