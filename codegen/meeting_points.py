"""Where two instances touch one cell, as sets; remembered, also from one kernel to the next.

Launches of one kernel often ask the same, of the words that coordinates are here.
"""

from __future__ import annotations

from functools import reduce

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._nodes import Expression
from loopkit._same import remembered


@remembered(1 << 12)
def equal(one: tuple[Expression, ...], two: tuple[Expression, ...]) -> isl.Set:
    """Where the affine indices of two cells are equal."""
    pairs = (pair for pair in zip(one, two, strict=True) if pair[0] != pair[1])
    return _sets.intersection(_sets.pw_affine(a).eq_set(_sets.pw_affine(b)) for a, b in pairs)


@remembered(1 << 12)
def common(one: isl.Set, two: isl.Set) -> isl.Set | None:
    """What two sets have in common; None where that is nothing."""
    found = one & two
    return None if found.is_empty() else found


@remembered(1 << 12)
def holds_somewhere(pairs: isl.Set, conditions: tuple[isl.Set, ...]) -> bool:
    """Whether one of several conditions holds somewhere."""
    return any(not (pairs & condition).is_empty() for condition in conditions)


def apart(one: Expression, two: Expression) -> tuple[isl.Set, isl.Set]:
    """``{ one < two }``, and its mirror image."""
    less, more = (_sets.condition_set(prim.Comparison(one, op, two)) for op in "<>")
    return less, more


@remembered(1 << 12)
def hull(sets: tuple[isl.Set, ...]) -> isl.Set:
    """A set around several ones, of constraints that hold in all of them."""
    return reduce(lambda one, two: (one | two).plain_unshifted_simple_hull().to_set(), sets)
