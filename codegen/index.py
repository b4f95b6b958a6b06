"""Integer expressions, conditions and addresses as C text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pymbolic.primitives as prim

from loopkit._expression import variable_names
from loopkit._intervals import Interval
from loopkit._nodes import Expression
from loopkit._promotion import UINT64
from loopkit.codegen.ir import Whole
from loopkit.codegen.sized import Sized, Sizing
from loopkit.codegen.values import ValuePrinter
from loopkit.codegen.widths import Ranges

_OR, _AND, _COMPARE, _SUM, _PRODUCT, _UNARY = range(6)


class IndexPrinter:
    """Prints integer expressions over inames and sizes, widening where 32 bits may overflow.

    ``values`` prints what is neither iname nor size: elements of index arrays,
    and conditions on data.  Helper functions that the text calls are collected
    in ``helpers``.
    """

    def __init__(self, ranges: Ranges, values: ValuePrinter) -> None:
        self.ranges = ranges
        self.values = values
        self.sized = Sizing(ranges, values.dtype_of, values.computed_in)
        self.helpers: set[str] = set()

    def __call__(self, expr: Expression) -> str:
        """C text of an integer expression or a condition."""
        return self._condition(expr, _OR)

    def subscript(self, index: Expression, extent: Expression) -> str:
        """C text of an index that lies inside of an axis."""
        return self._print(self.sized(index, self._inside(extent), is_offset=True), _OR)

    def linear(
        self,
        axes: Sequence[tuple[Expression, Expression, Expression]],
        offset: Expression = 0,
    ) -> str:
        """``stride*index + ... + offset`` for axes of strides, indices and extents.

        No index leaves its axis: an access is in bounds, or not executed.
        """
        terms = [self._term(*axis) for axis in axes]
        kept = [t for t in terms if t.expr != 0]
        if offset != 0 or not kept:
            kept.append(self.sized(offset, is_offset=True))
        return self._print(kept[0] if len(kept) == 1 else self.sized.sum(kept), _OR)

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

    # {{{ conditions

    def _condition(self, expr: Expression, level: int) -> str:
        if isinstance(expr, (bool, np.bool_)):
            return "true" if expr else "false"
        if self._is_of_types(expr):
            return self.values.condition(expr)
        if isinstance(expr, Whole) and self._needs_no_sign(expr):
            return self.values.condition(prim.Comparison(expr.left, expr.operator, expr.right))
        if isinstance(expr, prim.Comparison):
            left, right = (self._compared(e) for e in (expr.left, expr.right))
            return _paren(f"{left} {expr.operator} {right}", level > _COMPARE)
        if isinstance(expr, prim.LogicalAnd):
            return _paren(" && ".join(self._conjuncts(expr.children)), level > _AND)
        if isinstance(expr, prim.LogicalOr):
            text = " || ".join(self._condition(c, _AND + 1) for c in expr.children)
            return _paren(text, level > _OR)
        if isinstance(expr, prim.LogicalNot):
            return "!" + self._condition(expr.child, _UNARY)
        return self._print(self.sized(expr), level)

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

    def _compared(self, side: Expression) -> str:
        """A side of a comparison; C would compare what has a sign as if it had none, too."""
        node = self.sized(side)
        if self._has_no_sign(side):
            return f"(long long){self._print(node, _UNARY)}"
        return self._operand(node, _SUM)

    def _conjuncts(self, conditions: Sequence[Expression]) -> list[str]:
        """Conditions each of which is only looked at where those before it hold."""
        texts = []
        outside = self.ranges.context
        for position, condition in enumerate(conditions):
            texts.append(self._condition(condition, _AND + 1))
            # What is computed in the types of data may wrap around, and says nothing of sets.
            held = (c for c in conditions[: position + 1] if not self._is_of_types(c))
            self.ranges.enter((*outside, *held))
        self.ranges.enter(outside)
        return texts

    # }}}

    # {{{ integers

    def _print(self, node: Sized, level: int, *, widen: bool = False) -> str:
        """A text of the node's own type, or of 64 bits where it is to be widened."""
        expr = node.expr
        widen = widen and not node.is_long
        if isinstance(expr, (int, np.integer)):
            suffix = "LL" if node.is_long or widen else ""
            return f"{expr}{suffix}" if expr >= 0 or level < _UNARY else f"({expr}{suffix})"
        if isinstance(expr, prim.Product):
            return _paren(self._product(node, widen), level > _PRODUCT)
        if widen:
            return f"(long long){self._print(node, _UNARY + 1)}"
        if isinstance(expr, prim.Variable) and self.sized.is_integer_name(expr.name):
            return str(expr.name)
        if isinstance(expr, prim.Sum):
            return _paren(self._sum(node), level > _SUM)
        if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
            return self._division(node, level)
        if isinstance(expr, (prim.Min, prim.Max)):
            return self._extreme(node)
        if isinstance(expr, prim.If):
            then, otherwise = self._alike(node, _OR)
            return f"({self._condition(expr.condition, _OR)} ? {then} : {otherwise})"
        if isinstance(
            expr,
            (bool, np.bool_, prim.Comparison, prim.LogicalAnd, prim.LogicalOr, prim.LogicalNot),
        ):
            return self._condition(expr, level)
        return self.values.integer(expr)

    def _operand(self, node: Sized, level: int) -> str:
        """A text of 64 bits where the value needs more than ``int``."""
        return self._print(node, level, widen=not self.ranges.is_narrow(node.range))

    def _alike(self, node: Sized, level: int) -> list[str]:
        """The parts of a node, in its type."""
        return [self._print(p, level, widen=node.is_long) for p in node.parts]

    def _sum(self, node: Sized) -> str:
        first, *others = node.parts
        text = self._print(first, _SUM, widen=node.is_widened)
        for part in others:
            negated = self._negated(part)
            if negated is None:
                text += " + " + self._print(part, _SUM)
            else:
                # What is long with its minus must be so without it.
                text += " - " + self._print(negated, _PRODUCT, widen=part.is_long)
        return text

    def _product(self, node: Sized, widen: bool) -> str:
        first, *others = node.parts
        widen = widen or node.is_widened
        if first.expr == -1 and others:
            rest = others[0] if len(others) == 1 else self.sized.product(others)
            return "-" + self._print(rest, _UNARY, widen=widen)
        texts = [self._print(first, _UNARY if widen else _PRODUCT, widen=widen)]
        texts += [self._print(p, _UNARY) for p in others]
        return " * ".join(texts)

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

    def _division(self, node: Sized, level: int) -> str:
        expr = node.expr
        is_floor = isinstance(expr, prim.FloorDiv)
        numerator, denominator = node.parts
        if denominator.range[0] > 0 and self.ranges.is_nonnegative(expr.numerator):
            above = self._print(numerator, _PRODUCT, widen=node.is_widened)
            below = self._print(denominator, _UNARY)
            return _paren(f"{above} {'/' if is_floor else '%'} {below}", level > _PRODUCT)
        helper = "lk_floordiv" if is_floor else "lk_mod"
        self.helpers.add(helper)
        above = self._print(numerator, _OR, widen=node.is_widened)
        return f"{helper}({above}, {self._print(denominator, _OR)})"

    def _extreme(self, node: Sized) -> str:
        name = "min" if isinstance(node.expr, prim.Min) else "max"
        *texts, result = self._alike(node, _OR)
        for text in reversed(texts):
            result = f"{name}({text}, {result})"
        return result

    # }}}


def _paren(text: str, needed: bool) -> str:
    return f"({text})" if needed else text
