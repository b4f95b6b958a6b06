"""Bits of several inames in one subscript: ``(i & 1) << 2 | i & 2 | i >> 2`` is a sum.

Where operands of ``|`` and ``^`` have no bit in common, they add up, and sums are affine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pymbolic.primitives as prim

from loopkit._algebra.conditions import is_zero
from loopkit._algebra.make import make_term
from loopkit._algebra.ranges import INTEGERS
from loopkit._algebra.reading import term_of
from loopkit._algebra.terms import ZERO, Term, UnreadableError, name
from loopkit._decide import Proven, decide
from loopkit._make.expressions import TextMapper, with_expressions
from loopkit._make.making import Making
from loopkit._nodes import Expression, is_integer


class _Adder(TextMapper):
    def __init__(self, named: Callable[[Expression], Term | None]) -> None:
        super().__init__()
        self.named = named

    def map_bitwise_or(self, expr: prim.BitwiseOr) -> Expression:
        return self._sum(expr, prim.BitwiseOr)

    def map_bitwise_xor(self, expr: prim.BitwiseXor) -> Expression:
        return self._sum(expr, prim.BitwiseXor)

    def _sum(self, expr: Expression, kind: Callable[..., Expression]) -> Expression:
        parts = tuple(self.rec(child) for child in expr.children)
        # A mask of one unknown is affine.
        is_sum = sum(not is_integer(part) for part in parts) > 1 and self._are_apart(expr.children)
        return prim.Sum(parts) if is_sum else kind(parts)

    def _are_apart(self, exprs: Sequence[Expression]) -> bool:
        """Whether numbers have no bit in common, where no data decide what they are."""
        try:
            terms = [term_of(expr, self.named) for expr in exprs]
        except UnreadableError:
            return False
        before = ZERO
        for term in terms:
            if term.sort != "Z" or not isinstance(
                decide(is_zero(make_term("and", before, term))), Proven
            ):
                return False
            before = make_term("or", before, term)
        return True


def with_sums_of_bits(making: Making) -> None:
    """Add operands without common bits, in what holds no data."""

    def named(expr: Expression) -> Term | None:
        if not isinstance(expr, prim.Variable):
            return None
        domains, known = making.domains.domains, making.known.set
        home = next((d for d in domains if expr.name in d.inames), None)
        low, high = (None, None) if home is None else home.range_of(expr.name, known)
        least, most = INTEGERS["int64"]
        return name(expr.name, least if low is None else low, most if high is None else high)

    adder = _Adder(named)
    making.items = [with_expressions(item, adder) for item in making.items]
