"""The literals in an expression: ``2`` is not ``2.0``, though they compare as equal."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pymbolic.primitives as prim

from loopkit._expression import is_constant, nodes_of
from loopkit._nodes import Expression


def parts(expr: Expression) -> Iterator[object]:
    """The fields of an expression, tuples flattened."""
    for field in dataclasses.fields(expr):
        value = getattr(expr, field.name)
        if isinstance(value, tuple):
            yield len(value)
            yield from value
        else:
            yield value


def same_constant(a: Expression, b: Expression) -> bool:
    """Whether two literals are the same number of the same kind."""
    if isinstance(a, np.generic) or isinstance(b, np.generic):
        return np.asarray(a).dtype == np.asarray(b).dtype and repr(a) == repr(b)
    return type(a) is type(b) and repr(a) == repr(b)


def same_number(a: Expression, b: Expression) -> bool:
    """Whether two literals are the same number, of whatever type."""
    return is_constant(a) and is_constant(b) and bool(a == b or (a != a and b != b))


def literals(expr: Expression) -> Iterator[Expression]:
    """The literals in an expression, in order."""
    return filter(is_constant, nodes_of(expr))


def holds_typed(expr: Expression) -> bool:
    """Whether a literal that is no plain integer stands in an expression."""
    if isinstance(expr, prim.Variable):
        return False
    if isinstance(expr, (prim.Sum, prim.Product)):
        return any(map(holds_typed, expr.children))
    return any(not isinstance(literal, int) for literal in literals(expr))


def holds_floats(expr: Expression) -> bool:
    """Whether a literal that is no integer stands in an expression."""
    return any(not isinstance(literal, (int, np.integer)) for literal in literals(expr))
