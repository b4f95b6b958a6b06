"""How large index arithmetic gets, and so how wide its integers must be."""

from __future__ import annotations

from typing import Any

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ValueArg
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._sets import NotAffineError
from loopkit.codegen.hardware import Hardware

INT32 = np.dtype("int32")
INT64 = np.dtype("int64")
Range = tuple[int, int]
_LIMITS = (-(2**31), 2**31 - 1)
HEADROOM = 1024
"""How far 32-bit sizes stay below the largest integer, so that rounding them up cannot overflow."""
EVERYTHING = (-(2**63), 2**63 - 1)


def largest_size(dtype: np.dtype[Any]) -> int:
    """The largest value that generated code takes for a size of this type."""
    info = np.iinfo(dtype)
    return int(info.max) - HEADROOM if info.bits == 32 else int(info.max)


class Ranges:
    """Bounds of inames, sizes and expressions of them, under a kernel's assumptions."""

    def __init__(self, kernel: Kernel, hardware: Hardware) -> None:
        self.kernel = kernel
        self.hardware = hardware
        self._known: dict[str, Range] = {}
        self._context = kernel.assumptions.set
        self._extent_sizes = _sizes_of_extents(kernel)
        for name in kernel.sizes:
            low, high = self._type_range(name)
            box = prim.LogicalAnd(
                (
                    prim.Comparison(prim.Variable(name), ">=", low),
                    prim.Comparison(prim.Variable(name), "<=", high),
                )
            )
            self._context = self._context & _sets.condition_set(box)

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
                domain = self.kernel.domain_of([name])
                parents = _sets.involved_names(domain) & set(self.kernel.all_inames) - {name}
                if parents:
                    domain = domain & self.kernel.domain_of(parents)
            elif name in self.kernel.sizes:
                domain = _sets.universe()
            else:
                return EVERYTHING
            found = self._extremes(domain & self._context, prim.Variable(name))
            self._known[name] = found
        return found

    def _extremes(self, domain: isl.Set, expr: Expression) -> Range:
        if domain.is_empty():
            return 0, 0
        low = _sets.minimum_value(domain, expr)
        high = _sets.maximum_value(domain, expr)
        return (
            EVERYTHING[0] if low is None else low,
            EVERYTHING[1] if high is None else high,
        )

    def dtype_of(self, name: str) -> np.dtype[Any]:
        """The type that an iname or size has in the generated code."""
        argument = self.kernel.arg_by_name.get(name)
        if isinstance(argument, ValueArg):
            return argument.dtype or INT32
        return INT32 if fits(self.of_name(name)) else INT64

    def of(self, expr: Expression) -> Range:
        """The smallest and largest value of an integer expression, by intervals."""
        if isinstance(expr, (int, np.integer)):
            return int(expr), int(expr)
        if isinstance(expr, prim.Variable):
            return self.of_name(expr.name)
        if isinstance(expr, prim.Sum):
            ranges = [self.of(c) for c in expr.children]
            return sum(r[0] for r in ranges), sum(r[1] for r in ranges)
        if isinstance(expr, prim.Product):
            product = 1, 1
            for child in expr.children:
                product = product_range(product, self.of(child))
            return product
        if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
            return quotient_range(expr, self.of(expr.numerator), self.of(expr.denominator))
        if isinstance(expr, prim.Min):
            parts = [self.of(c) for c in expr.children]
            return min(p[0] for p in parts), min(p[1] for p in parts)
        if isinstance(expr, prim.Max):
            parts = [self.of(c) for c in expr.children]
            return max(p[0] for p in parts), max(p[1] for p in parts)
        if isinstance(expr, prim.If):
            then, other = self.of(expr.then), self.of(expr.else_)
            return min(then[0], other[0]), max(then[1], other[1])
        return EVERYTHING

    def is_nonnegative(self, expr: Expression) -> bool:
        """Whether an integer expression is provably never negative."""
        if self.of(expr)[0] >= 0:
            return True
        try:
            below = _sets.pw_affine(expr).lt_set(_sets.pw_affine(0))
        except NotAffineError:
            return False
        names = frozenset(n for n in _sets.names_of(below) if n in self.kernel.home_domain)
        return bool((self.kernel.domain_of(names) & self._context & below).is_empty())

    def is_narrow(self, values: Range) -> bool:
        """Whether 32-bit integers hold all values of a range."""
        return fits(values)


def fits(values: Range) -> bool:
    """Whether all values of a range are 32-bit integers."""
    return _LIMITS[0] <= values[0] and values[1] <= _LIMITS[1]


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


def _sizes_of_extents(kernel: Kernel) -> frozenset[str]:
    """Sizes that are, alone, the extent of an argument: never negative."""
    found = set()
    for argument in kernel.args:
        for extent in getattr(argument, "shape", None) or ():
            if isinstance(extent, prim.Variable):
                found.add(extent.name)
    return frozenset(found)
