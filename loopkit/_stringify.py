"""Expressions as the text of an instruction, with few parentheses."""

from __future__ import annotations

from typing import Any

import pymbolic.primitives as prim
from pymbolic.mapper.stringifier import (
    PREC_COMPARISON,
    PREC_NONE,
    PREC_PRODUCT,
    PREC_SUM,
    PREC_UNARY,
    StringifyMapper,
)

from loopkit._nodes import Expression, Reduction, TypeCast, TypeName

_DIVISIONS = (prim.Quotient, prim.FloorDiv, prim.Remainder)


def _negated(expr: Expression) -> Expression | None:
    """``x`` if ``expr`` is ``-x``, else None."""
    if isinstance(expr, (int, float)) and not isinstance(expr, bool) and expr < 0:
        return -expr
    if isinstance(expr, prim.Product) and expr.children:
        first, *rest = expr.children
        if isinstance(first, int) and first < 0:
            if first == -1 and rest:
                return rest[0] if len(rest) == 1 else prim.Product(tuple(rest))
            return prim.Product((-first, *rest))
    return None


class Stringifier(StringifyMapper):  # type: ignore[misc]
    """Writes ``a - b`` for ``a + -1*b`` and leaves no blanks inside products."""

    def map_sum(self, expr: prim.Sum, enclosing_prec: int, *args: Any) -> str:
        text = ""
        for position, child in enumerate(expr.children):
            positive = _negated(child)
            if position == 0:
                text = self.rec(child, PREC_SUM, *args)
            elif positive is None:
                text += " + " + self.rec(child, PREC_SUM, *args)
            else:
                text += " - " + self.rec(positive, PREC_PRODUCT, *args)
        return str(self.parenthesize_if_needed(text, enclosing_prec, PREC_SUM))

    def map_product(self, expr: prim.Product, enclosing_prec: int, *args: Any) -> str:
        positive = _negated(expr)
        if positive is not None:
            text = "-" + self.rec(positive, PREC_UNARY, *args)
            return str(self.parenthesize_if_needed(text, enclosing_prec, PREC_UNARY))
        first, *rest = expr.children
        # `2*(i % 8)` is not `2*i % 8`.
        text = self.rec(first, PREC_PRODUCT, *args)
        text += "".join(
            "*" + self.rec(c, PREC_UNARY if isinstance(c, _DIVISIONS) else PREC_PRODUCT, *args)
            for c in rest
        )
        return str(self.parenthesize_if_needed(text, enclosing_prec, PREC_PRODUCT))

    def map_subscript(self, expr: prim.Subscript, enclosing_prec: int, *args: Any) -> str:
        index = expr.index if isinstance(expr.index, tuple) else (expr.index,)
        inner = ", ".join(self.rec(i, PREC_NONE, *args) for i in index)
        return f"{expr.aggregate.name}[{inner}]"

    def map_if(self, expr: prim.If, enclosing_prec: int, *args: Any) -> str:
        parts = (expr.condition, expr.then, expr.else_)
        return "if(" + ", ".join(self.rec(p, PREC_NONE, *args) for p in parts) + ")"

    def map_comparison(self, expr: prim.Comparison, enclosing_prec: int, *args: Any) -> str:
        left = self.rec(expr.left, PREC_SUM - 1, *args)
        right = self.rec(expr.right, PREC_SUM - 1, *args)
        text = f"{left} {expr.operator} {right}"
        return str(self.parenthesize_if_needed(text, enclosing_prec, PREC_COMPARISON))

    def map_reduction(self, expr: Reduction, enclosing_prec: int, *args: Any) -> str:
        inames = expr.inames[0] if len(expr.inames) == 1 else "(" + ", ".join(expr.inames) + ")"
        dtype = "" if expr.dtype is None else f", dtype={expr.dtype.name}"
        return f"{expr.operation}({inames}, {self.rec(expr.operand, PREC_NONE, *args)}{dtype})"

    def map_type_name(self, expr: TypeName, enclosing_prec: int, *args: Any) -> str:
        return f"dtype={expr.dtype.name}"

    def map_type_cast(self, expr: TypeCast, enclosing_prec: int, *args: Any) -> str:
        return f"cast({expr.dtype.name}, {self.rec(expr.operand, PREC_NONE, *args)})"
