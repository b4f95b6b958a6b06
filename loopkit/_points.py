"""Concrete points of sets: the smallest one, which witnesses show, and all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._errors import InvalidArgumentError
from loopkit._expression import evaluate

PARAM = isl.dim_type.param

Rows = np.ndarray[Any, np.dtype[np.int64]]


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


def range_in(domain: isl.Set, name: str) -> tuple[int, int] | None:
    """The smallest and the largest value of a name in a set that is not empty, if there are."""
    low, high = _sets.value_range(domain, prim.Variable(name))
    return None if low is None or high is None else (low, high)


class TooManyPointsError(Exception):
    """More points would have to be looked at than were allowed."""


def points_of(
    domain: isl.Set, names: Sequence[str], values: Mapping[str, int], most: int | None = None
) -> Rows:
    """The values of ``names`` in ``domain``, one row each, sorted.

    ``domain`` is a parameter set; ``values`` gives all names that are not in ``names``.
    Raises :class:`TooManyPointsError` rather than look at more than ``most`` points.
    """
    domain = _sets.at_values(domain, {n: v for n, v in values.items() if n not in names})
    for name in names:
        if domain.find_dim_by_name(PARAM, name) < 0:
            raise InvalidArgumentError(f"iname '{name}' has no bounds, so it cannot be enumerated")
    left = sorted(_sets.involved_names(domain).difference(names))
    if left:
        raise InvalidArgumentError(f"{', '.join(left)} must have a value to enumerate the loops")
    if not names:
        return np.zeros((0 if domain.is_empty() else 1, 0), np.int64)
    # Last of all: coalescing may leave numbers that are no quotients of others.
    pieces = domain.coalesce().compute_divs().get_basic_sets()
    found = [_points_of_piece(piece, names, most) for piece in pieces if not piece.is_empty()]
    if not found:
        return np.zeros((0, len(names)), np.int64)
    if len(found) == 1:
        return found[0]
    return np.unique(np.concatenate(found), axis=0)


def listed(domain: isl.Set, names: Sequence[str], most: int) -> Rows | None:
    """The values of some names in a set, whatever the others are; None where they are too many."""
    try:
        return points_of(_sets.project_onto(domain, names), names, {}, most)
    except (InvalidArgumentError, TooManyPointsError):
        return None


def _points_of_piece(piece: isl.BasicSet, names: Sequence[str], most: int | None) -> Rows:
    """The points inside of the box around a basic set that satisfy its constraints."""
    forms = [(c.is_equality(), _sets.form_of(c)) for c in piece.get_constraints()]
    constraints = [(is_equality, form, form.names) for is_equality, form in forms]
    columns: dict[str, Any] = {}
    count = 1
    for name in names:
        ends = range_in(piece.to_set(), name)
        if ends is None:
            raise InvalidArgumentError(f"the loop over '{name}' is unbounded")
        low, high = ends
        if most is not None and (high - low + 1) * count > most:
            raise TooManyPointsError
        values = np.arange(low, high + 1, dtype=np.int64)
        columns = {n: np.repeat(column, len(values)) for n, column in columns.items()}
        columns[name] = np.tile(values, count)
        kept = np.ones(len(values) * count, bool)
        for is_equality, form, used in constraints:
            if name in used and used <= columns.keys():
                terms = (c * evaluate(atom, columns) for atom, c in form.terms.items())
                total = sum(terms, start=form.constant)
                kept &= total == 0 if is_equality else total >= 0
        columns = {n: column[kept] for n, column in columns.items()}
        count = int(kept.sum())
    return np.stack(list(columns.values()), axis=1)
