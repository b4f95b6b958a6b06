"""Integer expressions, conditions and addresses as C text."""

from __future__ import annotations

import numpy as np
import pymbolic.primitives as prim

from loopkit._nodes import Expression
from loopkit.codegen.values import ValuePrinter
from loopkit.codegen.widths import Ranges, fits

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
        self.helpers: set[str] = set()

    def __call__(self, expr: Expression, *, wide: bool = False) -> str:
        """C text of an integer expression or a condition."""
        return self._print(expr, _OR, wide)

    def linear(self, terms: list[tuple[Expression, Expression]], offset: Expression = 0) -> str:
        """``stride*index + ... + offset``, in 64 bits where 32 might not do."""
        products = [_times(s, i) for s, i in terms]
        kept = [p for p in products if p != 0]
        if offset != 0 or not kept:
            kept.append(offset)
        total = kept[0] if len(kept) == 1 else prim.Sum(tuple(kept))
        return self._print(total, _OR, not self.ranges.is_narrow(total))

    def _print(self, expr: Expression, level: int, wide: bool) -> str:
        if isinstance(expr, (bool, np.bool_)):
            return "true" if expr else "false"
        if isinstance(expr, (int, np.integer)):
            value = int(expr)
            suffix = "LL" if not fits((value, value)) else ""
            return f"{value}{suffix}" if value >= 0 or level < _UNARY else f"({value}{suffix})"
        if isinstance(expr, prim.Variable):
            if not self._is_integer_name(expr.name):
                return self.values.integer(expr)
            return str(expr.name)
        if isinstance(expr, prim.Sum):
            return _paren(self._sum(expr, wide), level > _SUM)
        if isinstance(expr, prim.Product):
            return _paren(self._product(expr, wide), level > _PRODUCT)
        if isinstance(expr, (prim.FloorDiv, prim.Remainder)):
            return self._division(expr, level, wide)
        if isinstance(expr, (prim.Min, prim.Max)):
            return self._extreme(expr, wide)
        if isinstance(expr, (prim.Comparison, prim.LogicalNot)) and self.values.is_data(expr):
            return self.values.condition(expr)
        if isinstance(expr, prim.Comparison):
            left = self._print(expr.left, _SUM, self._widened(expr.left, wide))
            right = self._print(expr.right, _SUM, self._widened(expr.right, wide))
            return _paren(f"{left} {expr.operator} {right}", level > _COMPARE)
        if isinstance(expr, prim.LogicalAnd):
            text = " && ".join(self._print(c, _AND + 1, wide) for c in expr.children)
            return _paren(text, level > _AND)
        if isinstance(expr, prim.LogicalOr):
            text = " || ".join(self._print(c, _AND + 1, wide) for c in expr.children)
            return _paren(text, level > _OR)
        if isinstance(expr, prim.LogicalNot):
            return "!" + self._print(expr.child, _UNARY, wide)
        if isinstance(expr, prim.If):
            parts = (expr.condition, expr.then, expr.else_)
            condition, then, otherwise = (self._print(p, _OR, wide) for p in parts)
            return f"({condition} ? {then} : {otherwise})"
        return self.values.integer(expr)

    def _is_integer_name(self, name: str) -> bool:
        kernel = self.ranges.kernel
        return name in kernel.home_domain or name in kernel.sizes or "." in name

    def _widened(self, expr: Expression, wide: bool) -> bool:
        return wide or not self.ranges.is_narrow(expr)

    def _sum(self, expr: prim.Sum, wide: bool) -> str:
        text = ""
        for position, child in enumerate(expr.children):
            negated = _negated(child)
            if position == 0:
                text = self._print(child, _SUM, wide)
                if wide and isinstance(child, prim.Variable) and not self.ranges.is_narrow(expr):
                    text = f"(long long){text}"
            elif negated is None:
                text += " + " + self._print(child, _SUM, wide)
            else:
                text += " - " + self._print(negated, _PRODUCT, wide)
        return text

    def _product(self, expr: prim.Product, wide: bool) -> str:
        children = list(expr.children)
        if children and children[0] == -1 and len(children) > 1:
            rest = children[1] if len(children) == 2 else prim.Product(tuple(children[1:]))
            return "-" + self._print(rest, _UNARY, wide)
        widen = wide and not self.ranges.is_narrow(expr)
        texts = []
        for position, child in enumerate(children):
            text = self._print(child, _PRODUCT if position == 0 else _UNARY, wide)
            if position == 0 and widen and not text.startswith("(long long)"):
                text = f"{text}LL" if text.isdigit() else f"(long long){self._cast_operand(child)}"
            texts.append(text)
        return " * ".join(texts)

    def _cast_operand(self, expr: Expression) -> str:
        return self._print(expr, _UNARY + 1, False)

    def _division(self, expr: prim.FloorDiv | prim.Remainder, level: int, wide: bool) -> str:
        is_floor = isinstance(expr, prim.FloorDiv)
        plain = (
            self.ranges.is_nonnegative(expr.numerator) and self.ranges.of(expr.denominator)[0] > 0
        )
        if plain:
            numerator = self._print(expr.numerator, _PRODUCT, wide)
            denominator = self._print(expr.denominator, _UNARY, wide)
            return _paren(f"{numerator} {'/' if is_floor else '%'} {denominator}", level > _PRODUCT)
        helper = "lk_floordiv" if is_floor else "lk_mod"
        self.helpers.add(helper)
        numerator = self._print(expr.numerator, _OR, wide)
        return f"{helper}({numerator}, {self._print(expr.denominator, _OR, wide)})"

    def _extreme(self, expr: prim.Min | prim.Max, wide: bool) -> str:
        name = "min" if isinstance(expr, prim.Min) else "max"
        texts = [self._print(c, _OR, wide) for c in expr.children]
        if wide:
            texts = [f"(long long)({t})" for t in texts]
        result = texts[-1]
        for text in reversed(texts[:-1]):
            result = f"{name}({text}, {result})"
        return result


def _negated(expr: Expression) -> Expression | None:
    if isinstance(expr, (int, np.integer)) and expr < 0:
        return -int(expr)
    if isinstance(expr, prim.Product) and expr.children:
        first = expr.children[0]
        if isinstance(first, (int, np.integer)) and first < 0:
            rest = expr.children[1:]
            if first == -1 and rest:
                return rest[0] if len(rest) == 1 else prim.Product(rest)
            return prim.Product((-int(first), *rest))
    return None


def _times(stride: Expression, index: Expression) -> Expression:
    if stride == 0 or index == 0:
        return 0
    if stride == 1:
        return index
    if isinstance(stride, (int, np.integer)) and isinstance(index, (int, np.integer)):
        return int(stride) * int(index)
    if isinstance(stride, prim.Product):
        return prim.Product((*stride.children, index))
    return prim.Product((stride, index))


def _paren(text: str, needed: bool) -> str:
    return f"({text})" if needed else text
