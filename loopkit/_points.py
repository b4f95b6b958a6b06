"""Concrete points of sets: what witnesses show."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets


def smallest_point(domain: isl.Set, order: Sequence[str]) -> dict[str, int] | None:
    """A point of a parameter set, as small as can be in each name of ``order`` in turn.

    Names that are not in ``order`` come last.  Values below zero are taken only
    where there are no others.  None if the set is empty.
    """
    if domain.is_empty():
        return None
    names = list(dict.fromkeys(order))
    names += [n for n in _sets.names_of(domain) if n not in set(names)]
    point: dict[str, int] = {}
    whole = domain
    for name in names:
        position = domain.find_dim_by_name(_sets.PARAM, name)
        if position < 0:
            continue
        # Coordinate by coordinate: isl's lexmin gives up on some sets with strides.
        value = _smallest_value(_sets.project_onto(domain, [name]), name)
        if value is None:
            # isl misjudged a smallest value before: any point, then.
            return _some_point(whole)
        point[name] = value
        domain = domain.fix_val(_sets.PARAM, position, _sets.val(value))
    return point


def _some_point(domain: isl.Set) -> dict[str, int]:
    """A point of a set that is not empty."""
    point = domain.sample_point()
    return {
        name: _sets.integer(point.get_coordinate_val(_sets.PARAM, position))
        for position, name in enumerate(_sets.names_of(domain))
    }


def _smallest_value(line: isl.Set, name: str) -> int | None:
    """The smallest value of ``name`` that is not below zero, or else the largest; None if none."""
    variable = prim.Variable(name)
    cut = line & _sets.condition_set(prim.Comparison(variable, ">=", 0))
    found = _sets.minimum_value(cut, variable)
    return _sets.maximum_value(line, variable) if found is None else found
