"""Integer expressions, conditions and addresses in C, in types that hold how large they get."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np
import pymbolic.primitives as prim

from loopkit import _intervals
from loopkit._errors import TypeInferenceError
from loopkit._expression import to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._intervals import Interval, hull, intersection
from loopkit._nodes import Expression
from loopkit._promotion import UINT64
from loopkit.codegen.c.tree import Binary, Call, Cast, CExpression, Choice, Name, Number, Unary
from loopkit.codegen.ir import Whole
from loopkit.codegen.operands import integer, joined, too_large
from loopkit.codegen.values import ValueLowering
from loopkit.codegen.widths import EVERYTHING


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
    """Annotates the integer expressions of one kernel."""

    def __init__(self, values: ValueLowering) -> None:
        self.values = values
        self.ranges = values.ranges

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
        if isinstance(expr, (prim.Sum, prim.Product)):
            parts = [self(c, is_offset=is_offset) for c in expr.children]
            if not is_offset:
                self._check_size(expr)
            combine = self.sum if isinstance(expr, prim.Sum) else self.product
            return combine(parts, within, expr)
        if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
            parts = [self(expr.numerator), self(expr.denominator)]
            return self._of_equals(expr, parts, self._divided(expr, *parts), within)
        if isinstance(expr, (prim.Min, prim.Max)):
            extreme = _intervals.least if isinstance(expr, prim.Min) else _intervals.greatest
            parts = [self(c) for c in expr.children]
            return self._of_equals(expr, parts, extreme(*(p.range for p in parts)), within)
        if isinstance(expr, prim.If):
            parts = [self(e, within, is_offset=is_offset) for e in (expr.then, expr.else_)]
            return self._of_equals(expr, parts, hull(*(p.range for p in parts)), within)
        return self._data(expr, within)

    @staticmethod
    def _divided(expr: prim.FloorDiv | prim.Remainder, above: Sized, below: Sized) -> Interval:
        if isinstance(expr, prim.FloorDiv):
            return _intervals.floor_divide(above.range, below.range)
        return _intervals.floor_remainder(below.range)

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
            total = _intervals.add(before, part.range)
            if part is parts[-1]:
                total = intersection(total, within)
            inner = part.parts if isinstance(part.expr, prim.Sum) else (part,)
            for term in inner:
                running = total if term is inner[-1] else _intervals.add(running, term.range)
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
            total = _intervals.multiply(total, part.range)
            if position == len(parts) - 1:
                total = intersection(total, within)
            is_long = is_long or part.is_long
            # A minus may be printed in front of all of it, or taken away.
            either = hull(total, _intervals.negate(total))
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
        values = self.ranges.of(expr)
        if isinstance(inner, prim.Variable):
            dtype = self.values.dtype_of(inner.name)
        else:
            dtype = self.values.type_in_c(expr)
            if dtype.kind not in "iub":
                raise TypeInferenceError(
                    f"the index '{to_text(expr)}' is of type {dtype}",
                    instead="an index is an integer: a//b rounds down, and int32(x) converts",
                )
            if dtype.kind != "b" and self.values.reads_data(expr):
                values = _intervals.of_dtype(dtype)  # it may wrap around
        is_long = dtype.kind in "iu" and dtype.itemsize == 8
        return Sized(expr, (), intersection(values, within), is_long)


class IndexLowering:
    """Lowers integer expressions over inames and sizes, widening where 32 bits may overflow.

    ``values`` lowers what is neither iname nor size: elements of index arrays,
    and conditions on data.
    """

    def __init__(self, values: ValueLowering) -> None:
        self.ranges = values.ranges
        self.values = values
        self.sized = Sizing(values)

    def __call__(self, expr: Expression) -> CExpression:
        """An integer expression or a condition in C."""
        return self._condition(expr)

    def subscript(self, index: Expression, extent: Expression) -> CExpression:
        """An index that lies inside of an axis."""
        return self._integer(self.sized(index, self._inside(extent), is_offset=True))

    def linear(
        self,
        axes: Sequence[tuple[Expression, Expression, Expression]],
        offset: Expression = 0,
    ) -> CExpression:
        """``stride*index + ... + offset`` for axes of strides, indices and extents.

        No index leaves its axis: an access is in bounds, or not executed.
        """
        terms = [self._term(*axis) for axis in axes]
        kept = [t for t in terms if t.expr != 0]
        if offset != 0 or not kept:
            kept.append(self.sized(offset, is_offset=True))
        return self._integer(kept[0] if len(kept) == 1 else self.sized.sum(kept))

    def _term(self, stride: Expression, index: Expression, extent: Expression) -> Sized:
        if stride == 0 or index == 0:
            return self.sized(0)
        if isinstance(stride, (int, np.integer)) and isinstance(index, (int, np.integer)):
            return self.sized(int(stride) * int(index))
        last = self.sized(index, self._inside(extent), is_offset=True)
        if stride == 1:
            return last
        factors = stride.children if isinstance(stride, prim.Product) else (stride,)
        return self.sized.product([*(self.sized(f, is_offset=True) for f in factors), last])

    def _inside(self, extent: Expression) -> Interval:
        return 0, max(0, self.ranges.of(extent)[1] - 1)

    def _condition(self, expr: Expression) -> CExpression:
        if isinstance(expr, (bool, np.bool_)):
            return Number(int(expr), "bool")
        if self._is_of_types(expr):
            return self.values.truth(expr)
        if isinstance(expr, Whole) and self._needs_no_sign(expr):
            return self.values.truth(prim.Comparison(expr.left, expr.operator, expr.right))
        if isinstance(expr, prim.Comparison):
            left, right = (self._compared(e) for e in (expr.left, expr.right))
            return Binary(expr.operator, left, right)
        if isinstance(expr, prim.LogicalAnd):
            return joined("&&", self._conjuncts(expr.children))
        if isinstance(expr, prim.LogicalOr):
            return joined("||", map(self._condition, expr.children))
        if isinstance(expr, prim.LogicalNot):
            return Unary("!", self._condition(expr.child))
        return self._integer(self.sized(expr))

    def _is_of_types(self, condition: Expression) -> bool:
        """Whether a condition is computed in the types of the data that it reads."""
        is_whole = isinstance(condition, Whole)
        compares = isinstance(condition, (prim.Comparison, prim.LogicalNot)) and not is_whole
        return compares and self.values.is_data(condition)

    def _needs_no_sign(self, condition: Whole) -> bool:
        """Whether data of 64 bits without a sign are compared as they are, however large."""
        sides = (condition.left, condition.right)
        unsigned = any(map(self._has_no_sign, sides))
        alone = (isinstance(s, prim.Variable) or not self.values.is_data(s) for s in sides)
        return unsigned and all(alone)

    def _has_no_sign(self, expr: Expression) -> bool:
        names = {n for n in variable_names(expr) if not self.sized.is_integer_name(n)}
        return any(self.values.dtype_of(n) == UINT64 for n in names)

    def _compared(self, side: Expression) -> CExpression:
        """A side of a comparison; C would compare what has a sign as if it had none, too."""
        node = self.sized(side)
        if self._has_no_sign(side):
            return Cast("long long", self._integer(node))
        return self._integer(node, widen=not self.ranges.is_narrow(node.range))

    def _conjuncts(self, conditions: Sequence[Expression]) -> list[CExpression]:
        """Conditions each of which is only looked at where those before it hold."""
        found = []
        outside = self.ranges.context
        for position, condition in enumerate(conditions):
            found.append(self._condition(condition))
            # What is computed in the types of data may wrap around, and says nothing of sets.
            held = (c for c in conditions[: position + 1] if not self._is_of_types(c))
            self.ranges.enter((*outside, *held))
        self.ranges.enter(outside)
        return found

    def _integer(self, node: Sized, *, widen: bool = False) -> CExpression:
        """An expression of the node's own type, or of 64 bits where it is to be widened."""
        expr = node.expr
        widen = widen and not node.is_long
        if isinstance(expr, (int, np.integer)):
            return integer(int(expr), "long" if node.is_long or widen else "int")
        if isinstance(expr, prim.Product):
            return self._product(node, widen=widen)
        if widen:
            return Cast("long long", self._integer(node))
        if isinstance(expr, prim.Variable) and self.sized.is_integer_name(expr.name):
            return Name(expr.name)
        if isinstance(expr, prim.Sum):
            return self._sum(node)
        if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
            return self._division(node)
        if isinstance(expr, (prim.Min, prim.Max)):
            name = "min" if isinstance(expr, prim.Min) else "max"
            *parts, last = self._alike(node)
            return reduce(lambda result, part: Call(name, (part, result)), reversed(parts), last)
        if isinstance(expr, prim.If):
            then, otherwise = self._alike(node)
            return Choice(self._condition(expr.condition), then, otherwise)
        if isinstance(
            expr,
            (bool, np.bool_, prim.Comparison, prim.LogicalAnd, prim.LogicalOr, prim.LogicalNot),
        ):
            return self._condition(expr)
        return self.values(expr)

    def _alike(self, node: Sized) -> list[CExpression]:
        """The parts of a node, in its type."""
        return [self._integer(p, widen=node.is_long) for p in node.parts]

    def _sum(self, node: Sized) -> CExpression:
        first, *others = node.parts
        total = self._integer(first, widen=node.is_widened)
        for part in others:
            negated = self._negated(part)
            if negated is None:
                total = Binary("+", total, self._integer(part))
            else:
                # What is long with its minus must be so without it.
                total = Binary("-", total, self._integer(negated, widen=part.is_long))
        return total

    def _product(self, node: Sized, *, widen: bool) -> CExpression:
        first, *others = node.parts
        widen = widen or node.is_widened
        if first.expr == -1 and others:
            rest = others[0] if len(others) == 1 else self.sized.product(others)
            return Unary("-", self._integer(rest, widen=widen))
        factors = [self._integer(first, widen=widen), *map(self._integer, others)]
        return joined("*", factors)

    def _negated(self, node: Sized) -> Sized | None:
        """The node without a minus in front."""
        if isinstance(node.expr, (int, np.integer)):
            return self.sized(-int(node.expr)) if node.expr < 0 else None
        if not isinstance(node.expr, prim.Product) or not node.parts:
            return None
        first, *others = node.parts
        if not isinstance(first.expr, (int, np.integer)) or first.expr >= 0:
            return None
        if first.expr == -1 and others:
            return others[0] if len(others) == 1 else self.sized.product(others)
        return self.sized.product([self.sized(-int(first.expr)), *others])

    def _division(self, node: Sized) -> CExpression:
        expr = node.expr
        is_floor = isinstance(expr, prim.FloorDiv)
        numerator, denominator = node.parts
        above = self._integer(numerator, widen=node.is_widened)
        below = self._integer(denominator)
        if denominator.range[0] > 0 and self.ranges.is_nonnegative(expr.numerator):
            return Binary("/" if is_floor else "%", above, below)
        return Call("lk_floordiv" if is_floor else "lk_mod", (above, below))
