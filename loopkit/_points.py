"""Concrete points of sets: what witnesses show."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets


def smallest_point(
    domain: isl.Set, order: Sequence[str], most: Sequence[int] | None = None
) -> dict[str, int] | None:
    """A point of a parameter set, as small as can be in each name of ``order`` in turn.

    Names that are not in ``order`` come last.  Values below zero are taken only
    where there are no others.  None if the set is empty, or where the values in ``order`` (0 for
    what is not in the set) would come behind ``most``.
    """
    if domain.is_empty():
        return None
    names = list(dict.fromkeys(order))
    names += [n for n in _sets.names_of(domain) if n not in set(names)]
    point: dict[str, int] = {}
    whole = domain
    for number, name in enumerate(names):
        if most is not None and number <= min(len(order), len(most)):
            before = [point.get(n, 0) for n in order[:number]]
            if before > [*most[:number]]:
                return None
        position = domain.find_dim_by_name(_sets.PARAM, name)
        if position < 0:
            continue
        # Coordinate by coordinate: isl's lexmin gives up on some sets with strides.
        line, variable = _sets.project_onto(domain, [name]), prim.Variable(name)
        cut = line & _sets.condition_set(prim.Comparison(variable, ">=", 0))
        value = _sets.minimum_value(cut, variable)
        value = _sets.maximum_value(line, variable) if value is None else value
        if value is None:
            # isl misjudged a smallest value before: any point, then.
            some, numbers = whole.sample_point(), range(whole.dim(_sets.PARAM))
            values = [_sets.integer(some.get_coordinate_val(_sets.PARAM, n)) for n in numbers]
            return dict(zip(_sets.names_of(whole), values, strict=True))
        point[name] = value
        domain = domain.fix_val(_sets.PARAM, position, _sets.val(value))
    return point
