"""The ranges of index arithmetic, which determine the width of its integers."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _intervals, _sets
from loopkit._arrays import ValueArg
from loopkit._cached import cached_property, once
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._kernel import Kernel
from loopkit._linear import NotAffineError
from loopkit._nodes import Expression
from loopkit._poly.pairs import between
from loopkit.codegen.hardware import Coordinate, Hardware
from loopkit.codegen.ir import Code, For, Let, walk

INT32 = np.dtype("int32")
INT64 = np.dtype("int64")
_NARROW = _intervals.of_dtype(INT32)
HEADROOM = 65536
"""How far 32-bit sizes stay below the largest integer, so that rounding them up cannot overflow.

That is what a block has where each of 1,024 threads has 64 numbers.
"""
EVERYTHING = _intervals.of_dtype(INT64)
_COUNTABLE = (-(2**53), 2**53)


def largest_size(dtype: np.dtype[Any]) -> int:
    """The largest value that generated code takes for a size of this type."""
    info = np.iinfo(dtype)
    return int(info.max) - HEADROOM if info.bits == 32 else int(info.max)


@dataclass
class _Place:
    """The conditions that hold at a point of the code, and the ranges found there."""

    context: tuple[isl.Set | Expression, ...]
    sizes: isl.Set
    ranges: dict[str, _intervals.Interval] = field(default_factory=dict)
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

    def of_name(self, name: str) -> _intervals.Interval:
        """The smallest and largest value that a name has here."""
        return once(self.ranges, name, _sets.bounds, self.set, prim.Variable(name), EVERYTHING)


class Ranges:
    """Bounds of inames, sizes and expressions of them, under a kernel's assumptions."""

    def __init__(self, kernel: Kernel, hardware: Hardware) -> None:
        self.kernel = kernel
        self.hardware = hardware
        self._known: dict[str, _intervals.Interval] = {}
        self._held: dict[str, _intervals.Interval] = {}
        self._context = kernel.assumptions.set
        self._extent_sizes = _sizes_of_extents(kernel)
        for name in kernel.sizes:
            self._context = self._context & between(name, *self._type_range(name))
        self._places: dict[tuple[int, ...], _Place] = {}
        self._place = _Place((), self._context)

    @property
    def context(self) -> tuple[isl.Set | Expression, ...]:
        """What holds where texts stand now, beside the assumptions: sets and conditions."""
        return self._place.context

    def enter(self, context: tuple[isl.Set | Expression, ...]) -> None:
        """Texts stand where all of ``context`` holds, from now on."""
        key = tuple(map(id, context))
        self._place = once(self._places, key, _Place, context, self._context)

    def _type_range(self, name: str) -> _intervals.Interval:
        argument = self.kernel.arg_by_name[name]
        assert isinstance(argument, ValueArg)
        dtype = argument.dtype or INT32
        low = 0 if name in self._extent_sizes else _intervals.of_dtype(dtype)[0]
        return low, largest_size(dtype)

    def of_name(self, name: str) -> _intervals.Interval:
        """The smallest and largest value of an iname or size."""
        return once(self._known, name, self._find_range, name)

    def _find_range(self, name: str) -> _intervals.Interval:
        domain = self._context
        if name in self.kernel.home_domain:
            # What only data bounds is as large as their type says.
            domain = self._with_data(self.kernel.domain_around([name]) & domain)
        elif name not in self.kernel.sizes:
            return self._data_limits(name) or EVERYTHING
        return _sets.bounds(domain, prim.Variable(name), EVERYTHING)

    def add(self, name: str, values: _intervals.Interval) -> None:
        """An iname's variable takes these values, too, and texts compute with them."""
        self._known[name] = _intervals.hull(self.of_name(name), values)

    def hold(self, name: str, values: _intervals.Interval) -> None:
        """An iname's variable must hold these values, though nothing is computed with them."""
        self._held[name] = _intervals.hull(self._held.get(name, values), values)

    def reached(self, expr: Expression) -> _intervals.Interval:
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
        return _intervals.intersection(_sets.bounds(values, value, EVERYTHING), rough)

    def _with_data(self, domain: isl.Set) -> isl.Set:
        """A set where data in it has values of its type."""
        for name in sorted(_sets.involved_names(domain)):
            limits = self._data_limits(name)
            if limits is not None:
                domain = domain & between(name, *limits)
        return domain

    def _data_limits(self, name: str) -> _intervals.Interval | None:
        dtype = self.kernel.array(name).dtype if self.kernel.is_array(name) else None
        return None if dtype is None or dtype.kind not in "iu" else _intervals.of_dtype(dtype)

    def dtype_of(self, name: str) -> np.dtype[Any]:
        """The type that an iname or size has in the generated code."""
        argument = self.kernel.arg_by_name.get(name)
        if isinstance(argument, ValueArg):
            return argument.dtype or INT32
        values = self.of_name(name)
        return (
            INT32
            if self.is_narrow(_intervals.hull(values, self._held.get(name, values)))
            else INT64
        )

    def of(self, expr: Expression) -> _intervals.Interval:
        """The smallest and largest value of an integer expression, by intervals."""
        return _intervals.of_expression(expr, self.of_name, EVERYTHING)

    def holds(self, expr: Expression) -> bool:
        """Whether integers of 64 bits hold what inames and sizes make where texts stand now.

        Sizes of 64 bits, and what nothing but data bounds, are taken to stay below 2**53:
        no array has as many elements.
        """
        return self.magnitude(expr) < 2**63 or _intervals.contains(EVERYTHING, self.reached(expr))

    def magnitude(self, expr: Expression) -> int:
        """The largest magnitude of what inames and sizes make, by intervals."""
        return _intervals.magnitude(_intervals.of_expression(expr, self._countable, EVERYTHING))

    def _countable(self, name: str) -> _intervals.Interval:
        return _intervals.intersection(self.of_name(name), _COUNTABLE)

    def is_nonnegative(self, expr: Expression) -> bool:
        """Whether an integer expression is provably never negative where texts stand now.

        What is asked is not the domain: a loop may pass values for which the loops
        inside of it are empty, and computes their bounds first.
        """
        return once(self._place.nonnegative, expr, self._is_nonnegative, expr)

    def _is_nonnegative(self, expr: Expression) -> bool:
        # What a name can be anywhere is known, and mostly enough.
        for of_name in (self._anywhere, self._place_of_name):
            bounds = _intervals.of_expression(expr, of_name, EVERYTHING, may_wrap=False)
            if bounds[0] >= 0:
                return True
        try:
            return _sets.is_nowhere(self._place.set, [prim.Comparison(expr, "<", 0)])
        except NotAffineError:
            return False

    def _anywhere(self, name: str) -> _intervals.Interval:
        is_known = name in self.kernel.sizes or name in self.kernel.home_domain
        return self.of_name(name) if is_known else EVERYTHING

    def _place_of_name(self, name: str) -> _intervals.Interval:
        if name in self.kernel.sizes:
            return self.of_name(name)
        return self._place.of_name(name) if name in self.kernel.home_domain else EVERYTHING

    @staticmethod
    def is_narrow(values: _intervals.Interval) -> bool:
        """Whether 32-bit integers hold all values of a range."""
        return _intervals.contains(_NARROW, values)


def _sizes_of_extents(kernel: Kernel) -> frozenset[str]:
    """Sizes that are, alone, the extent of an argument: never negative."""
    extents = (e for argument in kernel.args for e in getattr(argument, "shape", None) or ())
    return frozenset(e.name for e in extents if isinstance(e, prim.Variable))


def observe_ranges(ranges: Ranges, nodes: tuple[Code, ...]) -> None:
    """Record in ``ranges`` all values that the code's variables take.

    Launches, loops and constants may take values outside a domain, which guards inside them
    exclude, and compute with these. A loop counter also takes its first value if the loop is
    empty, and the value that ends the loop.
    """
    ranges.enter(())
    for coordinate in ranges.hardware.coordinates:
        _launched(ranges, coordinate)
    for node in walk(nodes):
        if isinstance(node, For):
            ranges.enter(node.context)
            _looped(ranges, node)
        elif isinstance(node, Let):
            ranges.enter(node.context)
            if not _intervals.contains(ranges.of_name(node.iname), ranges.of(node.value)):
                ranges.add(node.iname, ranges.reached(node.value))


def _launched(ranges: Ranges, coordinate: Coordinate) -> None:
    """A grid has one block at least, and as many as the longest of several domains."""
    known, lower = ranges.of_name(coordinate.iname), coordinate.lower
    least = 0 if coordinate.is_exact else 1
    count = max(least, ranges.of(coordinate.extent)[1])
    if not _intervals.contains(known, (lower, lower + count - 1)):
        count = max(least, ranges.reached(coordinate.extent)[1])
        if count > 0:
            ranges.add(coordinate.iname, (lower, lower + count - 1))


def _looped(ranges: Ranges, loop: For) -> None:
    """What a loop passes, and what its counter holds before and after that."""
    first, end = ranges.of(loop.lower), ranges.of(loop.upper)
    if not (
        _intervals.contains(ranges.of_name(loop.iname), (first[0], end[1] - 1))
        and ranges.is_narrow((first[0], max(first[1], end[1] - 1 + loop.step)))
    ):
        first, end = ranges.reached(loop.lower), ranges.reached(loop.upper)
    if first[0] < end[1]:
        ranges.add(loop.iname, (first[0], end[1] - 1))
    # Whatever does not fit is compared and counted on in 64 bits.
    ranges.hold(loop.iname, (first[0], max(first[1], end[1] - 1 + loop.step)))
