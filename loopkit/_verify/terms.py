"""Sums in which values take the places of terms."""

from __future__ import annotations

from collections.abc import Sequence

import pymbolic.primitives as prim

from loopkit._check.value_types import ValueTypes
from loopkit._nodes import Expression, subtrahend


def summed(
    types: ValueTypes, terms: Sequence[Expression], values: Sequence[Expression]
) -> prim.Sum:
    """The sum of some values in the place of terms; a term stays where ``-x`` may not be added."""
    done: list[Expression] = []
    for term, value in zip(terms, values, strict=True):
        is_new = subtrahend(value) is not None and subtrahend(term) is None
        is_kept = is_new and done and not types.is_negated((*done, value))
        done.append(term if is_kept else value)
    return prim.Sum(tuple(done))
