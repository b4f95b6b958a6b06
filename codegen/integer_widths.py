"""Integer expressions whose parts know how large they get, and in which type C computes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import pymbolic.primitives as prim

from loopkit._arrays import DType
from loopkit._errors import TypeInferenceError
from loopkit._expression import to_text
from loopkit._frozen import dataclass
from loopkit._intervals import (
    Interval,
    add,
    floor_divide,
    floor_remainder,
    greatest,
    hull,
    intersection,
    least,
    multiply,
    negate,
    of_dtype,
)
from loopkit._nodes import Expression
from loopkit.codegen.conversions import too_large
from loopkit.codegen.widths import EVERYTHING, Ranges


@dataclass(frozen=True, eq=False)
class Sized:
    """An integer expression, annotated.

    Attributes
    ----------
    range
        The smallest and largest value.
    is_long
        Whether its C text has a type of 64 bits, because an operand has one or
        because ``int`` could overflow.
    is_widened
        Whether the first operand must be cast for that.
    """

    expr: Expression
    parts: tuple[Sized, ...]
    range: Interval
    is_long: bool
    is_widened: bool = False


class Sizing:
    """Annotates the integer expressions of one kernel.

    Parameters
    ----------
    dtype_of_data
        The type of a name that is neither iname nor size, or of its elements.
    """

    def __init__(
        self,
        ranges: Ranges,
        dtype_of_data: Callable[[str], DType],
        computed: Callable[[Expression], DType],
    ) -> None:
        self.ranges = ranges
        self.dtype_of_data = dtype_of_data
        self.computed = computed

    def __call__(
        self, expr: Expression, within: Interval = EVERYTHING, *, is_offset: bool = False
    ) -> Sized:
        """``expr``, whose value is known to lie ``within`` a range.

        What is, or is added to, an offset in memory fits in 64 bits as memory does.
        """
        if isinstance(expr, (int, np.integer)):
            value = int(expr)
            return Sized(value, (), (value, value), not self.ranges.is_narrow((value, value)))
        if isinstance(expr, prim.Variable) and self.is_integer_name(expr.name):
            is_long = self.ranges.dtype_of(expr.name).itemsize == 8
            return Sized(expr, (), self.ranges.of_name(expr.name), is_long)
        if isinstance(expr, prim.Sum):
            terms = [self(c, is_offset=is_offset) for c in expr.children]
            if not is_offset:
                self._check_size(expr)
            return self.sum(terms, within, expr)
        if isinstance(expr, prim.Product):
            last = len(expr.children) - 1
            inner = within if last == 0 else EVERYTHING
            parts = [self(c, inner, is_offset=is_offset) for c in expr.children]
            if not is_offset:
                self._check_size(expr)
            return self.product(parts, within, expr)
        if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
            parts = [self(expr.numerator), self(expr.denominator)]
            return self._of_equals(expr, parts, self._divided(expr, *parts), within)
        if isinstance(expr, (prim.Min, prim.Max)):
            combined = least if isinstance(expr, prim.Min) else greatest
            parts = [self(c, EVERYTHING) for c in expr.children]
            return self._of_equals(expr, parts, combined(*(p.range for p in parts)), within)
        if isinstance(expr, prim.If):
            parts = [self(e, within, is_offset=is_offset) for e in (expr.then, expr.else_)]
            return self._of_equals(expr, parts, hull(*(p.range for p in parts)), within)
        return self._data(expr, within)

    @staticmethod
    def _divided(expr: prim.FloorDiv | prim.Remainder, above: Sized, below: Sized) -> Interval:
        if isinstance(expr, prim.FloorDiv):
            return floor_divide(above.range, below.range)
        return floor_remainder(below.range)

    def _check_size(self, expr: prim.Sum | prim.Product) -> None:
        """That 64 bits hold what is computed from the left."""
        sizes = [self.ranges.magnitude(c) for c in expr.children]
        most = sum(sizes) if isinstance(expr, prim.Sum) else math.prod(max(1, s) for s in sizes)
        if most < 2**63:
            return
        for number in range(2, len(expr.children) + 1):
            part = type(expr)(expr.children[:number])
            if not self.ranges.holds(part):
                raise too_large(part)

    def is_integer_name(self, name: str) -> bool:
        """Whether a name is an iname, a size or a word like ``threadIdx.x``."""
        kernel = self.ranges.kernel
        return name in kernel.home_domain or name in kernel.sizes or "." in name

    def sum(
        self, parts: Iterable[Sized], within: Interval = EVERYTHING, expr: Expression | None = None
    ) -> Sized:
        """The sum of annotated terms, added from the left as C does it, without parentheses.

        It is widened where what has been added so far need not fit, also if the
        terms do, and the whole does.
        """
        parts = tuple(parts)
        terms: list[Sized] = []
        total, is_long, is_widened = (0, 0), False, False
        for part in parts:
            before, running = total, total
            total = add(before, part.range)
            if part is parts[-1]:
                total = intersection(total, within)
            inner = part.parts if isinstance(part.expr, prim.Sum) else (part,)
            for term in inner:
                running = total if term is inner[-1] else add(running, term.range)
                is_long = is_long or term.is_long
                is_widened = is_widened or not (is_long or self.ranges.is_narrow(running))
            terms += inner
        if expr is None:
            expr = prim.Sum(tuple(t.expr for t in terms))
        return Sized(expr, tuple(terms), total, is_long or is_widened, is_widened)

    def product(
        self, parts: Iterable[Sized], within: Interval = EVERYTHING, expr: Expression | None = None
    ) -> Sized:
        """The product of annotated factors, multiplied from the left."""
        parts = tuple(parts)
        total, is_long, is_widened = (1, 1), False, False
        for position, part in enumerate(parts):
            total = multiply(total, part.range)
            if position == len(parts) - 1:
                total = intersection(total, within)
            is_long = is_long or part.is_long
            # A minus may be printed in front of all of it, or taken away.
            either = hull(total, negate(total))
            is_widened = is_widened or not (is_long or self.ranges.is_narrow(either))
        if expr is None:
            expr = prim.Product(tuple(p.expr for p in parts))
        return Sized(expr, parts, total, is_long or is_widened, is_widened)

    def _of_equals(
        self, expr: Expression, parts: list[Sized], values: Interval, within: Interval
    ) -> Sized:
        """What operands of one type are combined to, all of them long or none."""
        is_long = any(p.is_long for p in parts)
        narrow = all(self.ranges.is_narrow(r) for r in (values, *(p.range for p in parts)))
        is_widened = not (is_long or narrow)
        return Sized(
            expr, tuple(parts), intersection(values, within), is_long or is_widened, is_widened
        )

    def _data(self, expr: Expression, within: Interval) -> Sized:
        """An element of an array, or what else is computed from data."""
        inner = expr.aggregate if isinstance(expr, prim.Subscript) else expr
        if not isinstance(inner, prim.Variable):
            dtype = self.computed(expr)
            if dtype.kind not in "iub":
                raise TypeInferenceError(
                    f"the index '{to_text(expr)}' is of type {dtype}",
                    instead="an index is an integer: a//b rounds down, and int32(x) converts",
                )
            return Sized(expr, (), intersection(self.ranges.of(expr), within), dtype.itemsize == 8)
        dtype = self.dtype_of_data(inner.name)
        if dtype.kind not in "iu":
            return Sized(expr, (), within, False)
        return Sized(expr, (), intersection(of_dtype(dtype), within), dtype.itemsize == 8)
