"""The interface of reduction operations, and operations on records such as ``argmin``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit import _promotion as dt
from loopkit._errors import InvalidArgumentError, TypeInferenceError
from loopkit._expression import substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import variable
from loopkit._nodes import Component, Expression, Record
from loopkit._promotion import FLOAT64, DType, components_of, record_of
from loopkit._same import Exact, same
from loopkit._spelling import check_expression, shown
from loopkit._types import Kind, concrete, dtype_of, joined_kind

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


Parts = tuple[Expression, ...]


def lowest(dtype: DType) -> Any:
    """What a maximum starts from."""
    if dtype == dt.BOOL:
        return False
    return int(np.iinfo(dtype).min) if dtype.kind in "iu" else -float("inf")


def highest(dtype: DType) -> Any:
    """What a minimum starts from."""
    if dtype == dt.BOOL:
        return True
    return int(np.iinfo(dtype).max) if dtype.kind in "iu" else float("inf")


@dataclass(frozen=True, eq=False)
class RecordOperation(ReductionOperation):
    """What operations on records have in common."""

    def start(self, dtype: DType | None) -> Expression:
        """The neutral element; of an unknown type, one whose numbers will be replaced."""
        first, *others = self.components
        dtype = dtype or record_of({first: dt.FLOAT64, **dict.fromkeys(others, dt.INT64)})
        return Record(self.components, self.neutral([*components_of(dtype).values()]))

    def result_type(self, *kinds: Kind) -> DType:
        """The record of what the components hold."""
        if len(kinds) == 1 and isinstance(kinds[0], np.dtype):
            return kinds[0]
        return record_of(dict(zip(self.components, self.types(kinds), strict=True)))

    def neutral(self, kinds: Sequence[DType]) -> tuple[Any, ...]:
        """What an empty range gives."""
        raise NotImplementedError

    def types(self, kinds: Sequence[Kind]) -> Sequence[DType]:
        """The types of the components, for operands of some types."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class FirstExtremum(RecordOperation):
    """``argmin`` and ``argmax``: a value, and the smallest index at which it stands.

    NaN comes before all numbers, as in NumPy: the order of pairs is total, and the first of two
    pairs an operation that is associative and commutative.
    """

    components: tuple[str, ...] = ("value", "index")

    @property
    def order(self) -> str:
        """Which of two values comes first."""
        return "<" if self.name == "argmin" else ">"

    def neutral(self, kinds: Sequence[DType]) -> tuple[Any, ...]:
        """The last value there is at the largest index: it comes behind all pairs."""
        value, index = kinds
        return (highest if self.order == "<" else lowest)(value), highest(index)

    def joined(self, dtype: DType) -> Parts:
        """The second pair where it comes first, else the first."""
        (x, i), (y, j) = operands(self.components)
        is_tied: Expression = prim.Comparison(y, "==", x)
        ways = [prim.Comparison(y, self.order, x)]
        if dtype["value"] in dt.FLOATS:
            x_is_nan, y_is_nan = (prim.Call(prim.Variable("isnan"), (v,)) for v in (x, y))
            is_tied = prim.LogicalOr((is_tied, y_is_nan))
            ways.append(prim.LogicalAnd((y_is_nan, prim.LogicalNot(x_is_nan))))
        ways.append(prim.LogicalAnd((prim.Comparison(j, "<", i), is_tied)))
        is_second = prim.LogicalOr(tuple(ways))
        return prim.If(is_second, y, x), prim.If(is_second, j, i)

    def on_values(self, a: Any, b: Any) -> Any:
        """The one of two pairs that comes first."""
        return min(a, b, key=self._rank)

    def _rank(self, pair: tuple[Any, Any]) -> tuple[int, Any, int]:
        value = pair[0].item() if pair[0].dtype.kind in "biu" else float(pair[0])
        if value != value:
            return 0, 0, int(pair[1])
        return 1, value if self.order == "<" else -value, int(pair[1])

    def types(self, kinds: Sequence[Kind]) -> Sequence[DType]:
        """Those of the operands: of what has an order, and of an integer."""
        value, index = map(concrete, kinds)
        if value in dt.COMPLEXES:
            raise dt.refuse(f"'{self.name}'", value, "", "complex numbers have no order")
        if index not in dt.INTEGERS:
            raise TypeInferenceError(
                f"the last operand of '{self.name}' is {dt.dtype_name(index)}, and no integer",
                instead=f"it is the index of the value: v, k = {self.name}(k, x[k], k)",
            )
        return value, index


@dataclass(frozen=True, eq=False, kw_only=True)
class OwnRecord(RecordOperation):
    """An operation of a user's on records of several components.

    ``starts`` has of each component the function that gives its neutral element for a type;
    ``combine`` joins two tuples of expressions, and ``reference`` two of NumPy's values.
    Without a reference the expressions are computed.
    """

    starts: tuple[Callable[[DType], Any], ...]
    combine: Callable[[Parts, Parts], Any]
    reference: Callable[[Any, Any], Any] | None

    def neutral(self, kinds: Sequence[DType]) -> tuple[Any, ...]:
        """A number for each component."""
        return tuple(start(kind) for start, kind in zip(self.starts, kinds, strict=True))

    def joined(self, dtype: DType) -> Parts:
        """What the user's function makes of two records, whatever their types."""
        a, b = operands(self.components)
        found = self._several(self.combine(a, b), "combine", "expressions")
        return tuple(as_expression(part, self.name, "combine", (*a, *b)) for part in found)

    @property
    def has_values(self) -> bool:
        """Whether there is a reference."""
        return self.reference is not None

    def on_values(self, a: Any, b: Any) -> Any:
        """What the user's function makes of two records of numbers."""
        assert self.reference is not None
        found = self._several(self.reference(a, b), "reference", "numbers")
        return tuple(as_number(part, self.name, "reference") for part in found)

    def _several(self, found: Any, which: str, what: str) -> tuple[Any, ...]:
        if isinstance(found, (tuple, list)) and len(found) == len(self.components):
            return tuple(found)
        raise InvalidArgumentError(
            f"{which} of the reduction '{self.name}' gives {shown(found)}, and no tuple of "
            f"{len(self.components)} {what}"
        )

    def types(self, kinds: Sequence[Kind]) -> Sequence[DType]:
        """Of each component the type that holds its operands and what they are combined to."""
        a, b = operands(self.components)
        parts = self.joined(dt.FLOAT64)
        found = [*kinds]
        while True:
            known = dict(zip((v.name for v in (*a, *b)), (*found, *found), strict=True))
            more = [dtype_of(part, known.__getitem__) for part in parts]
            larger = [joined_kind(x, y) for x, y in zip(found, more, strict=True)]
            if [(type(k), k) for k in larger] == [(type(k), k) for k in found]:
                return [concrete(kind) for kind in found]
            found = larger


def as_expression(found: Any, name: str, which: str, operands: Sequence[Any]) -> Expression:
    """What a user's function made of ``operands``, if it is an expression of these alone."""
    try:
        check_expression(found)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"{which} of the reduction '{name}' gives no expression: {error.why}",
            instead="Python's operators and pymbolic's nodes make expressions of its operands",
        ) from None
    known = frozenset().union(*map(variable_names, operands))
    strange = variable_names(found) - known
    if strange:
        raise InvalidArgumentError(
            f"{which} of the reduction '{name}' uses '{min(strange)}', which is no operand of it"
        )
    return found


def as_number(found: Any, name: str, which: str, operands: Sequence[Any] = ()) -> Any:
    """What a user's function gives, if it is a number of Python's or of NumPy's."""
    if isinstance(found, np.ndarray) and found.ndim == 0:
        found = found[()]
    kind = getattr(found, "dtype", None)
    is_known = isinstance(kind, np.dtype) and kind in dt.DTYPES.values()
    if is_known or isinstance(found, (bool, int, float, complex)):
        return found
    raise InvalidArgumentError(
        f"{which} of the reduction '{name}' gives {shown(found)}, and no number"
    )
