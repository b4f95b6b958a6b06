"""Values of data-dependent subscripts and conditions, for many points at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._errors import InvalidArgumentError, counted
from loopkit._expression import index_tuple, is_constant
from loopkit._frozen import dataclass
from loopkit._linear import NotAffineError
from loopkit._nodes import Expression
from loopkit._poly.integer_points import Rows
from loopkit._promotion import COMPARE, FOLD

Array = np.ndarray[Any, np.dtype[Any]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class Points:
    """Values of names, a column each of ``count`` numbers; ``sizes`` have one for all."""

    columns: Mapping[str, Rows]
    sizes: Mapping[str, int]
    count: int

    def where(self, kept: Flags) -> Points:
        """Some of the points."""
        columns = {name: column[kept] for name, column in self.columns.items()}
        return Points(columns, self.sizes, int(kept.sum()))


@dataclass(frozen=True, eq=False)
class Data:
    """Arguments of a call, by name: arrays, and numbers that are no sizes.

    Those that the call has ``written`` hold something else by the time that they decide.
    """

    values: Mapping[str, Array]
    written: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """Whose data are at hand."""
        return frozenset(self.values)

    def check_cell(self, array: str, axis: int, index: Rows, extent: int) -> None:
        """Refuse data that make a kernel touch what is outside of an array."""
        wrong = np.flatnonzero((index < 0) | (index >= extent))
        if wrong.size:
            raise InvalidArgumentError(
                f"with these data, index {int(index[wrong[0]])} would be asked of '{array}', whose "
                f"axis {axis} has {counted(str(extent), 'element')}"
            )

    def at(self, name: str, indices: tuple[Rows, ...]) -> Array:
        """The elements of an array."""
        values = self.values.get(name)
        if values is None:
            raise NotAffineError
        for axis, index in enumerate(indices):
            self.check_cell(name, axis, index, values.shape[axis])
        found: Array = values[indices]
        return found


NO_DATA = Data({})

_FOLDED: Mapping[type, Callable[[Any, Any], Any]] = {
    **{kind: FOLD[kind] for kind in (prim.Sum, prim.Product)},
    **{kind: FOLD[kind] for kind in (prim.BitwiseAnd, prim.BitwiseOr, prim.BitwiseXor)},
    prim.Min: np.minimum,
    prim.Max: np.maximum,
}


def values_of(expr: Expression, points: Points, data: Data) -> Rows:
    """The values of an integer expression: those of whole numbers, of data that are integers.

    Raises :class:`NotAffineError` where it is of another kind, or of other data.
    """

    def value(node: Expression) -> Any:
        if is_constant(node) and isinstance(node, int | np.integer):
            return np.int64(node)
        if isinstance(node, prim.Variable):
            if node.name in points.columns:
                return points.columns[node.name]
            if node.name in points.sizes:
                return np.int64(points.sizes[node.name])
            return _integers(data.at(node.name, ()))
        if isinstance(node, prim.Subscript):
            return _integers(data.at(node.aggregate.name, _indices(node, points, data)))
        if type(node) in _FOLDED:
            return reduce(_FOLDED[type(node)], map(value, node.children))
        if isinstance(node, prim.FloorDiv | prim.Remainder):
            one, other = value(node.numerator), value(node.denominator)
            return one // other if isinstance(node, prim.FloorDiv) else one % other
        raise NotAffineError

    return np.broadcast_to(value(expr), (points.count,)).astype(np.int64, copy=False)


def _indices(node: prim.Subscript, points: Points, data: Data) -> tuple[Rows, ...]:
    return tuple(values_of(index, points, data) for index in index_tuple(node))


def _integers(found: Array) -> Array:
    if found.dtype.kind not in "iub" or found.dtype == np.uint64:
        raise NotAffineError
    return found.astype(np.int64)


def truth_of(expr: Expression, points: Points, data: Data) -> Flags:
    """At which points a condition holds; what is not evaluated reads nothing.

    Elements are compared with each other, with literals and with integers, exactly; raises
    :class:`NotAffineError` where arithmetic on data would round or wrap around.
    """
    if isinstance(expr, prim.LogicalAnd | prim.LogicalOr):
        found = np.full(points.count, isinstance(expr, prim.LogicalAnd))
        for child in expr.children:
            asked = found if isinstance(expr, prim.LogicalAnd) else ~found
            found[asked] = truth_of(child, points.where(asked), data)
        return found
    if isinstance(expr, prim.LogicalNot):
        return ~truth_of(expr.child, points, data)
    if isinstance(expr, prim.Comparison):
        sides = [_side(side, points, data) for side in (expr.left, expr.right)]
        kinds = {np.asarray(side).dtype for side in sides if not is_constant(side)}
        if len(kinds) > 1:
            raise NotAffineError
        return np.broadcast_to(COMPARE[expr.operator](*sides), (points.count,)).copy()
    return np.broadcast_to(_side(expr, points, data) != 0, (points.count,)).copy()


def _side(expr: Expression, points: Points, data: Data) -> Any:
    """One side of a comparison: an element as it is, a literal, or an integer."""
    if is_constant(expr):
        return expr
    if isinstance(expr, prim.Subscript):
        found = data.at(expr.aggregate.name, _indices(expr, points, data))
        return found if found.dtype.kind == "f" else _integers(found)
    if isinstance(expr, prim.Variable) and expr.name in data.names:
        return data.at(expr.name, ())
    return values_of(expr, points, NO_DATA)  # of inames and sizes: that of data would wrap around
