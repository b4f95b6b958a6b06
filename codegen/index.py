"""Integer expressions, conditions and addresses in C, in types wide enough for their values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
import pymbolic.primitives as prim

from loopkit import _intervals
from loopkit._arrays import ArrayArg, TemporaryVariable, swizzles_of
from loopkit._expression import variable_names
from loopkit._frozen import dataclass
from loopkit._intervals import Interval, hull, intersection
from loopkit._nodes import Expression
from loopkit._promotion import UINT64
from loopkit._swizzle import Swizzle
from loopkit._types import not_an_index
from loopkit.codegen.c.tree import Binary, Call, Cast, CExpression, Choice, Name, Number, Unary
from loopkit.codegen.ir import Whole
from loopkit.codegen.operands import integer, joined, too_large
from loopkit.codegen.values import ValueLowering
from loopkit.codegen.widths import EVERYTHING

_CONDITIONS = (np.bool_, prim.Comparison, prim.LogicalAnd, prim.LogicalOr, prim.LogicalNot)


@dataclass(frozen=True, eq=False)
class Sized:
    """An integer expression in C with its smallest and largest value.

    ``is_long`` says that its type has 64 bits, because an operand has or because ``int`` could
    overflow. Numbers know their ``value``, sums and products their operands.
    """

    node: CExpression
    range: Interval
    is_long: bool
    value: int | None = None
    terms: tuple[Sized, ...] = ()
    factors: tuple[Sized, ...] = ()


class IndexLowering:
    """Lowers integer expressions over inames and sizes, widening where 32 bits may overflow.

    ``values`` lowers what is neither iname nor size: elements of index arrays,
    and conditions on data.
    """

    def __init__(self, values: ValueLowering) -> None:
        self.ranges = values.ranges
        self.values = values

    def __call__(self, expr: Expression) -> CExpression:
        """An integer expression or a condition in C."""
        if isinstance(expr, (bool, np.bool_)):
            return Number(int(expr), "bool")
        if self._is_of_types(expr):
            return self.values.truth(expr)
        if isinstance(expr, Whole) and self._needs_no_sign(expr):
            return self.values.truth(prim.Comparison(expr.left, expr.operator, expr.right))
        if isinstance(expr, prim.Comparison):
            return Binary(expr.operator, self._compared(expr.left), self._compared(expr.right))
        if isinstance(expr, prim.LogicalAnd):
            return joined("&&", self._conjuncts(expr.children))
        if isinstance(expr, prim.LogicalOr):
            return joined("||", map(self, expr.children))
        if isinstance(expr, prim.LogicalNot):
            return Unary("!", self(expr.child))
        return self._sized(expr).node

    def places(
        self, array: ArrayArg | TemporaryVariable, indices: Sequence[Expression]
    ) -> list[Sized]:
        """The index of an element along each axis.

        It is within the extent of the axis: accesses that execute are in bounds.
        """
        shape = array.shape or ()
        inside = [
            self._sized(index, self._inside(extent), is_offset=True)
            for index, extent in zip(indices, shape, strict=True)
        ]
        found = list(inside)
        for swizzle in swizzles_of(array):
            # What data decide is masked: whoever reads the line need not know how large they are.
            is_data = self.values.is_data(indices[swizzle.by])
            extent = None if is_data else shape[swizzle.by]
            mine, its = inside[swizzle.axis], inside[swizzle.by]
            found[swizzle.axis] = self._swizzled(swizzle, mine, its, extent)
        return found

    def _swizzled(self, swizzle: Swizzle, index: Sized, by: Sized, extent: Expression) -> Sized:
        """``index ^ ((by >> skip & mask) << base)``, where ``by`` is less than a known extent."""
        if by.value is None:
            changed, most = by.node, (1 << swizzle.bits) - 1
            if swizzle.skip:
                changed = Binary(">>", changed, integer(swizzle.skip))
            if not swizzle.takes_all(extent):
                changed = Binary("&", changed, integer(most))
            if swizzle.base:
                changed, most = Binary("<<", changed, integer(swizzle.base)), most << swizzle.base
        else:
            most = swizzle.changed(by.value)
            if most == 0:
                return index
            if index.value is not None:
                return self._number(index.value ^ most)
            changed = integer(most)
        values = _intervals.bitwise_or((0, index.range[1]), (0, most))
        node = Binary("^", index.node, changed)
        return Sized(node, values, index.is_long or (by.is_long and by.value is None))

    def linear(
        self, strides: Sequence[Expression], places: Sequence[Sized], offset: Expression = 0
    ) -> CExpression:
        """``stride*place + ... + offset``."""
        terms = map(self._term, strides, places)
        kept = [term for term in terms if term.value != 0]
        if offset != 0 or not kept:
            kept.append(self._sized(offset, is_offset=True))
        return (kept[0] if len(kept) == 1 else self._sum(kept)).node

    def _term(self, stride: Expression, place: Sized) -> Sized:
        if stride == 0 or place.value == 0:
            return self._number(0)
        if isinstance(stride, (int, np.integer)) and place.value is not None:
            return self._number(int(stride) * place.value)
        if stride == 1:
            return place
        if place.value == 1:
            return self._sized(stride, is_offset=True)
        factors = stride.children if isinstance(stride, prim.Product) else (stride,)
        return self._product([*(self._sized(f, is_offset=True) for f in factors), place])

    def _inside(self, extent: Expression) -> Interval:
        return 0, max(0, self.ranges.of(extent)[1] - 1)

    def _is_of_types(self, condition: Expression) -> bool:
        """Whether a condition is computed in the types of the data that it reads."""
        is_whole = isinstance(condition, Whole)
        compares = isinstance(condition, (prim.Comparison, prim.LogicalNot)) and not is_whole
        return compares and self.values.is_data(condition)

    def _needs_no_sign(self, condition: Whole) -> bool:
        """Whether unsigned 64-bit data are compared as they are, without a conversion."""
        sides = (condition.left, condition.right)
        unsigned = any(map(self._has_no_sign, sides))
        alone = (isinstance(s, prim.Variable) or not self.values.is_data(s) for s in sides)
        return unsigned and all(alone)

    def _has_no_sign(self, expr: Expression) -> bool:
        names = {n for n in variable_names(expr) if not self._is_integer_name(n)}
        return any(self.values.dtype_of(n) == UINT64 for n in names)

    def _is_integer_name(self, name: str) -> bool:
        """Whether a name is an iname, a size or a word like ``threadIdx.x``."""
        return name in self.ranges.kernel.integers or "." in name

    def _compared(self, side: Expression) -> CExpression:
        """An operand of a comparison; unsigned 64-bit data are cast to signed.

        Otherwise C would convert the other, signed operand to an unsigned number.
        """
        found = self._sized(side)
        if self._has_no_sign(side):
            return Cast("long long", found.node)
        return found.node if self.ranges.is_narrow(found.range) else _widened(found)

    def _conjuncts(self, conditions: Sequence[Expression]) -> list[CExpression]:
        """Conditions joined by ``&&``: each is evaluated only if those before it hold."""
        found = []
        outside = self.ranges.context
        for position, condition in enumerate(conditions):
            found.append(self(condition))
            # What is computed in the types of data may wrap around, and says nothing of sets.
            held = (c for c in conditions[: position + 1] if not self._is_of_types(c))
            self.ranges.enter((*outside, *held))
        self.ranges.enter(outside)
        return found

    def _sized(
        self, expr: Expression, within: Interval = EVERYTHING, *, is_offset: bool = False
    ) -> Sized:
        """``expr``, whose value is known to be ``within`` a range.

        A memory offset, and each summand of one, fits in 64 bits because memory does.
        """
        if isinstance(expr, (int, np.integer)):
            return self._number(int(expr))
        if isinstance(expr, prim.Variable) and self._is_integer_name(expr.name):
            is_long = self.ranges.dtype_of(expr.name).itemsize == 8
            return Sized(Name(expr.name), self.ranges.of_name(expr.name), is_long)
        if isinstance(expr, (prim.Sum, prim.Product)):
            parts = [self._sized(c, is_offset=is_offset) for c in expr.children]
            if not is_offset:
                self._check_size(expr)
            return (self._sum if isinstance(expr, prim.Sum) else self._product)(parts, within)
        if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
            return self._division(expr, within)
        if isinstance(expr, (prim.Min, prim.Max)):
            name = "min" if isinstance(expr, prim.Min) else "max"
            extreme = _intervals.least if name == "min" else _intervals.greatest
            parts = [self._sized(c) for c in expr.children]
            values = extreme(*(p.range for p in parts))
            is_long = self._is_long(parts, values)
            *nodes, last = _alike(parts, is_long)
            node = reduce(lambda result, part: Call(name, (part, result)), reversed(nodes), last)
            return Sized(node, intersection(values, within), is_long)
        if isinstance(expr, prim.If):
            parts = [self._sized(e, within, is_offset=is_offset) for e in (expr.then, expr.else_)]
            values = hull(*(p.range for p in parts))
            is_long = self._is_long(parts, values)
            node = Choice(self(expr.condition), *_alike(parts, is_long))
            return Sized(node, intersection(values, within), is_long)
        return self._data(expr, within)

    def _number(self, value: int) -> Sized:
        values = (value, value)
        is_long = not self.ranges.is_narrow(values)
        return Sized(integer(value, "long" if is_long else "int"), values, is_long, value)

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

    def _sum(self, parts: Sequence[Sized], within: Interval = EVERYTHING) -> Sized:
        """The sum of terms, evaluated from left to right as C does, without parentheses.

        The first term is widened if a partial sum may overflow 32 bits, even if all terms and the
        whole sum fit.
        """
        terms: list[Sized] = []
        total, is_long, is_widened = (0, 0), False, False
        for part in parts:
            running, total = total, _intervals.add(total, part.range)
            if part is parts[-1]:
                total = intersection(total, within)
            inner = part.terms or (part,)
            for term in inner:
                running = total if term is inner[-1] else _intervals.add(running, term.range)
                is_long = is_long or term.is_long
                is_widened = is_widened or not (is_long or self.ranges.is_narrow(running))
            terms += inner
        node = _widened(terms[0]) if is_widened else terms[0].node
        for term in terms[1:]:
            negated = self._negated(term)
            if negated is None:
                node = Binary("+", node, term.node)
            else:
                # What is long with its minus must be so without it.
                node = Binary("-", node, _widened(negated) if term.is_long else negated.node)
        return Sized(node, total, is_long or is_widened, terms=tuple(terms))

    def _product(self, factors: Sequence[Sized], within: Interval = EVERYTHING) -> Sized:
        """The product of factors, multiplied from the left."""
        total, is_long, is_widened = (1, 1), False, False
        for position, factor in enumerate(factors, 1):
            total = _intervals.multiply(total, factor.range)
            if position == len(factors):
                total = intersection(total, within)
            is_long = is_long or factor.is_long
            # A minus may be printed in front of all of it, or taken away.
            either = hull(total, _intervals.negate(total))
            is_widened = is_widened or not (is_long or self.ranges.is_narrow(either))
        node = _multiplied(factors, is_widened=is_widened)
        return Sized(node, total, is_long or is_widened, factors=tuple(factors))

    def _negated(self, term: Sized) -> Sized | None:
        """A term without its leading minus sign."""
        first, *others = term.factors or (term,)
        if first.value is None or first.value >= 0:
            return None
        rest = others if others and first.value == -1 else [self._number(-first.value), *others]
        return rest[0] if len(rest) == 1 else self._product(rest)

    def _division(self, expr: prim.FloorDiv | prim.Remainder, within: Interval) -> Sized:
        above, below = parts = [self._sized(expr.numerator), self._sized(expr.denominator)]
        is_floor = isinstance(expr, prim.FloorDiv)
        values = _intervals.floor_remainder(below.range)
        if is_floor:
            values = _intervals.floor_divide(above.range, below.range)
        is_long = self._is_long(parts, values)
        numerator = above.node if below.is_long or not is_long else _widened(above)
        if below.range[0] > 0 and self.ranges.is_nonnegative(expr.numerator):
            node: CExpression = Binary("/" if is_floor else "%", numerator, below.node)
        else:
            node = Call("lk_floordiv" if is_floor else "lk_mod", (numerator, below.node))
        return Sized(node, intersection(values, within), is_long)

    def _is_long(self, parts: Sequence[Sized], values: Interval) -> bool:
        """Whether computing these values needs 64 bits."""
        ranges = (values, *(p.range for p in parts))
        return any(p.is_long for p in parts) or not all(map(self.ranges.is_narrow, ranges))

    def _data(self, expr: Expression, within: Interval) -> Sized:
        """An array element, or another expression that depends on data."""
        values = self.ranges.of(expr)
        if isinstance(expr, _CONDITIONS):
            return Sized(self(expr), intersection(values, within), False)
        inner = expr.aggregate if isinstance(expr, prim.Subscript) else expr
        if isinstance(inner, prim.Variable):
            dtype = self.values.dtype_of(inner.name)
        else:
            dtype = self.values.type_in_c(expr)
            if dtype.kind not in "iub":
                raise not_an_index(expr, dtype)
            if dtype.kind != "b" and self.values.reads_data(expr):
                values = _intervals.of_dtype(dtype)  # it may wrap around
        is_long = dtype.kind in "iu" and dtype.itemsize == 8
        return Sized(self.values(expr), intersection(values, within), is_long)


def _widened(part: Sized) -> CExpression:
    """A 32-bit expression converted to 64 bits; a product from its first factor on."""
    if part.is_long:
        return part.node
    if part.value is not None:
        return integer(part.value, "long")
    if part.factors:
        return _multiplied(part.factors, is_widened=True)
    return Cast("long long", part.node)


def _multiplied(factors: Sequence[Sized], *, is_widened: bool) -> CExpression:
    """Factors multiplied from the left, the first one widened."""
    first, *others = factors
    if first.value == -1 and others:
        return Unary("-", _multiplied(others, is_widened=is_widened))
    node = _widened(first) if is_widened else first.node
    return joined("*", (node, *(factor.node for factor in others)))


def _alike(parts: Sequence[Sized], is_long: bool) -> list[CExpression]:
    """Expressions converted to one common type."""
    return [_widened(part) if is_long else part.node for part in parts]
