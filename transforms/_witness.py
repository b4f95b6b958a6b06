"""Concrete values out of a set, the smallest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import islpy as isl

from loopkit import _sets


def smallest_point(domain: isl.Set, sizes: Iterable[str], names: Sequence[str]) -> dict[str, int]:
    """A point of a set that is not empty: smallest sizes first, then smallest ``names``.

    Where there is no smallest, some point.
    """
    order = [n for n in sorted(set(sizes)) if domain.find_dim_by_name(_sets.PARAM, n) >= 0]
    order += [n for n in names if n not in order]
    domain = _sets.project_onto(domain, order)
    lifted = isl.Set.from_params(domain).insert_dims(isl.dim_type.set, 0, len(order))
    for number, name in enumerate(order):
        position = lifted.find_dim_by_name(_sets.PARAM, name)
        if position < 0:
            continue
        lifted = lifted.project_out(isl.dim_type.set, number, 1).move_dims(
            isl.dim_type.set, number, _sets.PARAM, position, 1
        )
    bounded = all(
        lifted.dim_has_lower_bound(isl.dim_type.set, number) for number in range(len(order))
    )
    best = lifted.lexmin() if bounded else _positive(lifted, len(order))
    point = best.sample_point()
    result = {}
    for number, name in enumerate(order):
        value = point.get_coordinate_val(isl.dim_type.set, number)
        result[name] = int(value.to_python())
    return result


def _positive(lifted: isl.Set, dimensions: int) -> isl.Set:
    """The smallest point without negative coordinates, if there is one."""
    cut = lifted
    for number in range(dimensions):
        cut = cut.lower_bound_val(isl.dim_type.set, number, isl.Val(0))
    return lifted if cut.is_empty() else cut.lexmin()
