"""All points of an integer set, in lexicographic order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import islpy as isl
import numpy as np

from loopkit import _sets
from loopkit._errors import InvalidArgumentError

PARAM = isl.dim_type.param
SET = isl.dim_type.set
DIV = isl.dim_type.div

Rows = np.ndarray[Any, np.dtype[np.int64]]


def with_values(domain: isl.Set, values: Mapping[str, int]) -> isl.Set:
    """A parameter set with some of its names fixed and removed."""
    for position in reversed(range(domain.dim(PARAM))):
        value = values.get(domain.get_dim_name(PARAM, position))
        if value is not None:
            domain = domain.fix_val(PARAM, position, _sets.val(value))
            domain = domain.project_out(PARAM, position, 1)
    return domain


class TooManyPointsError(Exception):
    """More points would have to be looked at than were allowed."""


def points_of(
    domain: isl.Set, names: Sequence[str], values: Mapping[str, int], most: int | None = None
) -> Rows:
    """The values of ``names`` in ``domain``, one row each, sorted.

    ``domain`` is a parameter set; ``values`` gives all names that are not in ``names``.
    Raises :class:`TooManyPointsError` rather than look at more than ``most`` points.
    """
    domain = with_values(domain, {n: v for n, v in values.items() if n not in names})
    lifted = isl.Set.from_params(domain)
    for position, name in enumerate(names):
        source = lifted.find_dim_by_name(PARAM, name)
        if source < 0:
            raise InvalidArgumentError(f"iname '{name}' has no bounds, so it cannot be enumerated")
        lifted = lifted.move_dims(SET, position, PARAM, source, 1)
    left = [lifted.get_dim_name(PARAM, p) for p in range(lifted.dim(PARAM))]
    left = [n for p, n in enumerate(left) if lifted.involves_dims(PARAM, p, 1)]
    if left:
        raise InvalidArgumentError(f"{', '.join(left)} must have a value to enumerate the loops")
    if not names:
        return np.zeros((0 if lifted.is_empty() else 1, 0), np.int64)
    pieces = lifted.compute_divs().coalesce().get_basic_sets()
    found = [_points_of_piece(piece, names, most) for piece in pieces if not piece.is_empty()]
    if not found:
        return np.zeros((0, len(names)), np.int64)
    if len(found) == 1:
        return found[0]
    return np.unique(np.concatenate(found), axis=0)


def _points_of_piece(piece: isl.BasicSet, names: Sequence[str], most: int | None) -> Rows:
    """The points inside of the box around a basic set that satisfy its constraints."""
    divs = _divs(piece, len(names))
    constraints = [_coefficients(c, len(names), len(divs)) for c in piece.get_constraints()]
    whole = piece.to_set()
    rows: Rows = np.zeros((1, 0), np.int64)
    for position, name in enumerate(names):
        low, high = whole.dim_min_val(position), whole.dim_max_val(position)
        if not (low.is_int() and high.is_int()):
            raise InvalidArgumentError(f"the loop over '{name}' is unbounded")
        if most is not None and (_sets.integer(high) - _sets.integer(low) + 1) * len(rows) > most:
            raise TooManyPointsError
        values = np.arange(_sets.integer(low), _sets.integer(high) + 1, dtype=np.int64)
        rows = np.concatenate(
            [
                np.repeat(rows, len(values), axis=0),
                np.tile(values, len(rows))[:, None],
            ],
            axis=1,
        )
        rows = rows[_holds(rows, position + 1, constraints, divs)]
    return rows


def _divs(piece: isl.BasicSet, count: int) -> list[tuple[list[int], list[int], int, int]]:
    """Each integer division: coefficients of names and of earlier divisions, constant, divisor."""
    found = []
    space = piece.get_local_space()
    for number in range(piece.dim(DIV)):
        aff = space.get_div(number)
        divisor = _sets.integer(aff.get_denominator_val())
        aff = aff.scale_val(_sets.val(divisor))
        own = [_sets.integer(aff.get_coefficient_val(isl.dim_type.in_, p)) for p in range(count)]
        earlier = [_sets.integer(aff.get_coefficient_val(DIV, d)) for d in range(number)]
        found.append((own, earlier, _sets.integer(aff.get_constant_val()), divisor))
    return found


Constraint = tuple[bool, list[int], list[int], int]


def _coefficients(constraint: isl.Constraint, count: int, divs: int) -> Constraint:
    return (
        bool(constraint.is_equality()),
        [_sets.integer(constraint.get_coefficient_val(SET, p)) for p in range(count)],
        [_sets.integer(constraint.get_coefficient_val(DIV, d)) for d in range(divs)],
        _sets.integer(constraint.get_constant_val()),
    )


def _holds(
    rows: Rows,
    known: int,
    constraints: Sequence[Constraint],
    divs: Sequence[tuple[list[int], list[int], int, int]],
) -> Any:
    """Which rows meet all constraints on the first ``known`` names; those that need more wait."""
    quotients: list[Any] = []
    for own, earlier, constant, divisor in divs:
        if any(own[known:]) or any(c and quotients[d] is None for d, c in enumerate(earlier)):
            quotients.append(None)
            continue
        total = rows @ np.array(own[:known], np.int64) + constant
        for d, c in enumerate(earlier):
            if c:
                total = total + c * quotients[d]
        quotients.append(total // divisor)
    result = np.ones(len(rows), bool)
    for is_equality, own, of_divs, constant in constraints:
        if any(own[known:]) or any(c and quotients[d] is None for d, c in enumerate(of_divs)):
            continue
        total = rows @ np.array(own[:known], np.int64) + constant
        for d, c in enumerate(of_divs):
            if c:
                total = total + c * quotients[d]
        result &= total == 0 if is_equality else total >= 0
    return result
