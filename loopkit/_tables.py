"""Elements of tables of constants in expressions: what a subscript that reads one is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._arrays import ConstantTable
from loopkit._cached import memoised
from loopkit._expression import ExpressionMapper, evaluate, index_tuple, variable_names
from loopkit._kernel import Kernel
from loopkit._nodes import Expression

Array = np.ndarray[Any, Any]


@memoised
def tables_of(kernel: Kernel) -> Mapping[str, Array]:
    """The tables of whole numbers that a kernel has (memoised)."""
    tables = {a.name: a.array for a in kernel.args if isinstance(a, ConstantTable)}
    return {name: array for name, array in tables.items() if array.dtype.kind in "iu"}


def looked_up(kernel: Kernel, expr: Expression, numbers: Mapping[str, int]) -> Expression:
    """An expression with elements of tables as numbers.

    Raises :class:`IndexError` for what is no element, and what ``evaluate`` does.
    """
    tables = tables_of(kernel)
    used = variable_names(expr)
    return expr if used.isdisjoint(tables) else _LookUp(tables, numbers)(expr)


class _LookUp(ExpressionMapper):
    def __init__(self, tables: Mapping[str, Array], numbers: Mapping[str, int]) -> None:
        super().__init__()
        self.tables, self.numbers = tables, numbers

    def map_subscript(self, expr: prim.Subscript) -> Any:
        table = self.tables.get(expr.aggregate.name)
        if table is None:
            return super().map_subscript(expr)
        index = [int(evaluate(self.rec(i), self.numbers)) for i in index_tuple(expr)]
        if not all(0 <= i < extent for i, extent in zip(index, table.shape, strict=True)):
            raise IndexError(expr)
        return int(table[tuple(index)])
