"""Where an index is a position on an axis of some length."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._nodes import Expression


def inside(index: Expression, extent: Expression) -> isl.Set:
    """``{ names of both : 0 <= index < extent }``, exactly.

    Raises :class:`NotAffineError` where no set can say so.
    """
    limits = (prim.Comparison(index, ">=", 0), prim.Comparison(index, "<", extent))
    return _sets.condition_set(prim.LogicalAnd(limits))


def between(name: str, low: Expression, high: Expression) -> isl.Set:
    """``{ name, names of both ends : low <= name <= high }``, exactly."""
    variable = prim.Variable(name)
    limits = (prim.Comparison(variable, ">=", low), prim.Comparison(variable, "<=", high))
    return _sets.condition_set(prim.LogicalAnd(limits))


def is_inside(domain: isl.Set, index: Expression, extent: Expression) -> bool:
    """Whether ``0 <= index < extent`` everywhere in ``domain``; False where no set can say so."""
    try:
        return bool(domain.is_subset(inside(index, extent)))
    except _sets.NotAffineError:
        return False


def outside(index: Expression, extent: Expression) -> Iterator[tuple[bool, isl.Set]]:
    """``(True, { index < 0 })`` and ``(False, { index >= extent })``, each exactly.

    What no set can say is left out.
    """
    for operator, limit in (("<", 0), (">=", extent)):
        try:
            yield operator == "<", _sets.condition_set(prim.Comparison(index, operator, limit))
        except _sets.NotAffineError:
            continue
