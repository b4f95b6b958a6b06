"""Concrete points of sets: what witnesses show."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from loopkit import _sets

PARAM = isl.dim_type.param
SET = isl.dim_type.set


def smallest_point(domain: isl.Set, order: Sequence[str]) -> dict[str, int] | None:
    """A point of a parameter set, small in the names of ``order`` first; None if there is none.

    The sizes come first in ``order``, so that the smallest example is found; those
    that nobody uses, below zero, are avoided where that is possible.
    """
    names = [n for n in order if domain.find_dim_by_name(PARAM, n) >= 0]
    names += [n for n in _sets.names_of(domain) if n not in names]
    lifted = isl.Set.from_params(domain)
    for name in names:
        position = lifted.find_dim_by_name(PARAM, name)
        lifted = lifted.move_dims(SET, lifted.dim(SET), PARAM, position, 1)
    if lifted.is_empty():
        return None
    for position in range(len(names)):
        cut = lifted.lower_bound_val(SET, position, isl.Val(0))
        if not cut.is_empty():
            lifted = cut
    point = lifted.lexmin().sample_point()
    return {
        name: int(point.get_coordinate_val(SET, position).to_python())
        for position, name in enumerate(names)
    }
