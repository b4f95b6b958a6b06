"""What forms with digits are, point by point: sets are slow with digits, and points often few."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, product
from typing import Any

import islpy as isl
import numpy as np

from loopkit import _sets
from loopkit._points import listed
from loopkit.codegen.proof.forms import Form, has_digits, names_of, renamed, value_at, variable
from loopkit.codegen.proof.spaces import Space, equal

_SAID = 256
"""How many points a set may be made of."""


def values_at(where: isl.Set, form: Form, most: int) -> tuple[Mapping[str, Any], Any] | None:
    """The names of a form and the form itself, at all points that a set has for these names.

    None where they are too many, or where data decide.
    """
    order = sorted(names_of(form))
    points = listed(where, order, most)
    if points is None:
        return None
    columns = dict(zip(order, points.T.astype(object), strict=True))
    try:
        return columns, value_at(form, columns)
    except (KeyError, ValueError):  # what data decide, or has no one value for many points
        return None


def equal_at(
    space: Space,
    where: isl.Set,
    name: str,
    form: Form,
    renaming: Callable[[str], str] = str,
) -> isl.Set | None:
    """Points of a set, where ``name`` is what a form is there; None where others say it better.

    The names of the form have others in the result.
    """
    found = values_at(where, form, _SAID) if has_digits(form) else None
    if found is None:
        return None
    each = (({renaming(n): at for n, at in point.items()}, value) for point, value in _each(*found))
    return _points(space, [{**point, name: value} for point, value in each])


def cells_at(
    space: Space,
    where: isl.Set,
    cells: Iterable[tuple[str, Form]],
    renaming: Callable[[str], str] = str,
) -> isl.Set:
    """Where names are what affine forms are; of forms with digits at the points of a set, if few.

    The names of the forms have others in the result.
    """
    found, parts = space.everything, []
    for name, form in cells:
        points = equal_at(space, where, name, form, renaming)
        if points is None:
            parts.append(equal(variable(name), renamed(form, renaming)))
        else:
            found = found & points
    return found & space.all_of(parts)


def equal_pairs(
    space: Space,
    one: tuple[isl.Set, Form],
    two: tuple[isl.Set, Form],
    renaming: Callable[[str], str],
) -> isl.Set | None:
    """Pairs of points of two sets, where two forms are equal; None where others say it better.

    The names of the second have others in the result.
    """
    if not (has_digits(one[1]) or has_digits(two[1])):
        return None
    first, second = (values_at(where, form, _SAID) for where, form in (one, two))
    if first is None or second is None:
        return None
    others = [({renaming(n): at for n, at in p.items()}, value) for p, value in _each(*second)]
    pairs = (
        {**point, **other}
        for (point, value), (other, its) in product(_each(*first), others)
        if value == its and all(other.get(n, at) == at for n, at in point.items())  # in both
    )
    found = [*islice(pairs, _SAID + 1)]
    return None if len(found) > _SAID else _points(space, found)


def _each(columns: Mapping[str, Any], values: Any) -> Iterator[tuple[dict[str, int], int]]:
    """Each point, and a value there."""
    number = len(next(iter(columns.values()), (0,)))
    every = np.broadcast_to(np.asarray(values, object), number)
    for *point, value in zip(*columns.values(), every, strict=True):
        yield dict(zip(columns, map(int, point), strict=True)), int(value)


def _points(space: Space, points: Iterable[Mapping[str, int]]) -> isl.Set:
    result = space.nothing
    for point in points:
        result = result | space.aligned(_sets.at(point))
    return result.coalesce()
