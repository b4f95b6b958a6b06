"""What every reduction's operation says of itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any

import pymbolic.primitives as prim

from loopkit._expression import substitute
from loopkit._frozen import dataclass
from loopkit._hidden import variable
from loopkit._nodes import Component, Expression, Record
from loopkit._promotion import FLOAT64, DType
from loopkit._same import Exact, same
from loopkit._types import Kind

SCALAR = ("x",)
"""What the only component of an operation on numbers is called in :func:`operands`."""


@dataclass(frozen=True, eq=False)
class ReductionOperation(Exact):
    """An associative operation that a reduction may use.

    It is commutative, unless ``is_ordered`` says that its operands have an order.  One with
    ``components`` works on records of these; it gives as many results.  All functions that it
    holds must be importable, so that kernels can be pickled.
    """

    name: str
    components: tuple[str, ...] = ()
    is_ordered: bool = False

    def start(self, dtype: DType | None) -> Expression:
        """What a reduction starts from: of an accumulator's type, or of one not yet known."""
        raise NotImplementedError

    def result_type(self, *kinds: Kind) -> DType:
        """The accumulator's type for operands of some types, or for one record."""
        raise NotImplementedError

    @property
    def shown(self) -> str:
        """What notes call it."""
        return self.name

    @property
    def has_values(self) -> bool:
        """Whether :meth:`on_values` is there; else expressions say what is meant."""
        return True

    def joined(self, dtype: DType) -> tuple[Expression, ...]:
        """The components of what joins two records, in terms of :func:`operands`."""
        raise NotImplementedError

    def on_values(self, a: Any, b: Any) -> Any:
        """The operation on values of NumPy's; records are tuples."""
        raise NotImplementedError

    def applied(self, a: Expression, b: Expression) -> Expression:
        """The expression that joins two operands: a variable, and a term of a reduction."""
        components = self.components
        mine = tuple(Component(a, name) for name in components) or (a,)
        its = b.parts if components else (b,)
        names = [v.name for side in operands(components or SCALAR) for v in side]
        values = dict(zip(names, (*mine, *its), strict=True))
        parts = tuple(substitute(part, values) for part in self.joined(FLOAT64))
        return Record(components, parts) if components else parts[0]

    def term(self, a: Expression, expr: Expression) -> Expression | None:
        """The term that :meth:`applied` joined with ``a``, if terms have an order; else None."""
        if not self.is_ordered:
            return None
        _, right = operands(self.components or SCALAR)
        names = {v.name for v in right}
        term = Record(self.components, right) if self.components else right[0]
        found: dict[str, Expression] = {}
        if not _matches(self.applied(a, term), expr, names, found) or found.keys() != names:
            return None
        return substitute(term, found)


def _matches(pattern: Any, expr: Any, names: Collection[str], found: dict[str, Expression]) -> bool:
    """Whether an expression is a pattern with values in the place of some names: ``found``."""
    if isinstance(pattern, prim.Variable) and pattern.name in names:
        return same(found.setdefault(pattern.name, expr), expr)
    if isinstance(pattern, tuple) and isinstance(expr, tuple) and len(pattern) == len(expr):
        return all(_matches(a, b, names, found) for a, b in zip(pattern, expr, strict=True))
    if not isinstance(pattern, prim.ExpressionNode) or type(pattern) is not type(expr):
        return same(pattern, expr)
    parts = (field.name for field in fields(pattern))
    return all(_matches(getattr(pattern, n), getattr(expr, n), names, found) for n in parts)


def operands(components: Sequence[str]) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """Variables for the components of the two records that an operation joins."""
    left, right = (tuple(variable(name, side) for name in components) for side in ("a", "b"))
    return left, right
