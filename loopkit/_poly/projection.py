"""Projections of systems of linear constraints that are exact for integers.

Names are eliminated one after the other, by an equality in which they have the coefficient 1, or
by combining each lower with each upper bound. The latter is exact if each combination leaves room
for an integer: then the *dark shadow* equals the real shadow (Pugh, The Omega Test, 1991). This
covers the indices of tiles, threads and prefetches, takes microseconds, and raises an error where
it is not exact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from math import gcd, prod

import islpy as isl
import numpy as np

from loopkit import _budget, _sets
from loopkit._budget import SpentError, at_most
from loopkit._poly.integer_points import (
    Box,
    Rows,
    System,
    TooManyPointsError,
    plain_box,
    points_of,
    remembered,
    set_of,
    system_of,
    systems,
)
from loopkit._poly.linear_rows import (
    UNKNOWN,
    Row,
    least,
    names_in,
    narrowed,
    plus,
    tidy,
    tightened,
    unlinked,
)


class InexactError(Exception):
    """A name cannot be eliminated exactly."""


def distinct(domain: isl.Set, names: Collection[str], sizes: Mapping[str, int]) -> int:
    """How many values of ``names`` occur in ``{ names, others, sizes : ... }``.

    Raises what :func:`count` raises.
    """
    found = _systems(domain, names, sizes)
    if len(found) == 1:
        with suppress(InexactError):
            return prod(_distinct_of(part, frozenset(names)) for part in found[0].parts)
    return distinct_in([seen(domain, names, sizes)], names)


@remembered
def _distinct_of(part: System, names: frozenset[str]) -> int:
    return points_of(_with_fewer_names(image(part, names)))


def seen(domain: isl.Set, names: Collection[str], sizes: Mapping[str, int]) -> isl.Set:
    """The values of ``names`` that occur in ``{ names, others, sizes : ... }``."""
    every = _systems(domain, names, sizes)
    return reduce(isl.Set.union, (_seen_in(s, tuple(names)) for s in every), domain - domain)


def _systems(domain: isl.Set, names: Collection[str], sizes: Mapping[str, int]) -> list[System]:
    here = _sets.at_values(domain, sizes)
    return systems(here, sorted(_sets.involved_names(here).union(names)), {})


@remembered
def _seen_in(system: System, names: tuple[str, ...]) -> isl.Set:
    try:
        return set_of(image(system, names))
    except InexactError:
        pass
    try:
        with at_most(_budget.DISTINCT):
            return _sets.project_onto(system.domain, names)
    except SpentError:
        raise TooManyPointsError from None


def distinct_in(parts: Iterable[isl.Set], names: Collection[str]) -> int:
    """How many values of ``names`` there are in any of several sets over these alone."""
    every = systems(reduce(isl.Set.union, parts), names, {})
    return sum(points_of(_with_fewer_names(system)) for system in every)


def image(system: System, keep: Collection[str]) -> System:
    """The values of ``keep`` that occur in a system.

    Its other columns, which have no name, have one value for those.  Raises :class:`InexactError`
    where that cannot be said.
    """
    if system.box is None:
        return system
    kept = {n for n, name in enumerate(system.names) if name in keep}
    everything = set(range(len(system.names)))
    # The cheapest name first; where that leads nowhere, the one that is farthest from kept ones.
    for groups in ([everything - kept], _by_distance(system, kept)):
        left, rows = everything - kept, _Rows(system)
        while several := left - rows.determined(kept, left):
            tried = (rows.eliminate(several & group) for group in groups)
            column = next((c for c in tried if c is not None), None)
            if column is None:
                break
            left.remove(column)
        if not left - rows.determined(kept, left):
            names = [name if n in kept else "" for n, name in enumerate(system.names)]
            return rows.over(sorted(left | kept), names)
    raise InexactError


def project_onto(domain: isl.Set, keep: Iterable[str]) -> isl.Set:
    """The projection of ``domain`` to the names in ``keep``.

    Where equalities tie names that are gone, as in ``256*round + 16*y + x = 20*row + column``, isl
    would keep them as unknowns, and what is asked then takes it a hundred times as long.
    """
    kept = {*keep}
    if len(_sets.involved_names(domain) - kept) > 1:
        pieces = domain.compute_divs().get_basic_sets()
        domain = reduce(isl.Set.union, (_untied(p, kept) for p in pieces), domain - domain)
    return _sets.project_onto(domain, kept)


def _untied(piece: isl.BasicSet, keep: Collection[str]) -> isl.Set:
    """A set with the same projection; that itself, where names that are tied can be eliminated."""
    system = system_of(piece, _sets.names_of(piece))
    gone = [n for n, name in enumerate(system.names) if name not in keep]
    ties = np.count_nonzero(system.equalities[:, gone], axis=1)
    if (ties > 1).any() and (box := plain_box(system)) is not None:
        with suppress(InexactError, TooManyPointsError):
            return set_of(image(replace(system, bounds=box), keep))
    return piece.to_set()


def _by_distance(system: System, kept: set[int]) -> list[set[int]]:
    """Columns by how many constraints lie between them and those kept, the farthest first."""
    links = [
        set(np.flatnonzero(row[:-1]).tolist()) for row in (*system.equalities, *system.inequalities)
    ]
    groups = [set(kept)]
    seen = set(kept)
    while near := set().union(*(link for link in links if link & groups[-1])) - seen:
        groups.append(near)
        seen |= near
    rest = set(range(len(system.names))) - seen
    return [rest, *reversed(groups[1:])]


def _with_fewer_names(system: System) -> System:
    """A system with as many points: without names that have one value for those of the others."""
    if system.box is None:
        return system
    left = set(range(len(system.names)))
    rows = _Rows(system)
    while True:
        linked = {n for row in rows.linking for n in left if row[n]}
        determined = {n for n in linked if rows.determined(left - {n}, {n})}
        column = rows.eliminate(determined)
        if column is None:
            return rows.over(sorted(left), system.names)
        left.remove(column)


class _Rows:
    """The constraints of a system, from which names are eliminated one after the other."""

    def __init__(self, system: System) -> None:
        assert system.box is not None
        self.box: Box = system.box
        self.domain = system.domain
        self.equalities: list[Row] = [tuple(row) for row in system.equalities.tolist()]
        rows = map(tuple, system.inequalities.tolist())
        self.inequalities = tidy(self.equalities, rows, *self.box)
        self.box = narrowed(self.inequalities, *self.box)

    def over(self, columns: Sequence[int], names: Sequence[str]) -> System:
        """The system over columns, which others are eliminated from."""
        return System(
            tuple(names[n] for n in columns),
            _array(self.equalities, columns),
            _array(self.inequalities, columns),
            self.domain,
        )

    @property
    def linking(self) -> list[Row]:
        """The constraints that are about more than one name; and all equalities."""
        return [*self.equalities, *(row for row in self.inequalities if names_in(row) > 1)]

    def determined(self, known: set[int], columns: set[int]) -> set[int]:
        """Those columns that have at most one value where those of ``known`` ones are given."""
        found: set[int] = set()
        while more := {n for n in columns - found if self._is_determined(n, known | found)}:
            found |= more
        return found

    def _is_determined(self, column: int, known: Collection[int]) -> bool:
        """Whether there is room for one value only, wherever unknown names are in their bounds."""
        low, high = self.box

        def parts(row: Row) -> tuple[Row, Row]:
            """What is known, or of the column, without the constant; and the rest."""
            mine = [n in known or n == column for n in range(len(row) - 1)]
            own = tuple(c if m else 0 for c, m in zip(row[:-1], mine, strict=True))
            return own, (*(0 if m else c for c, m in zip(row[:-1], mine, strict=True)), 0)

        for row in self.equalities:
            if row[column]:
                rest = parts(row)[1]
                negated = tuple(-c for c in rest)
                if -least(negated, low, high) - least(rest, low, high) < abs(row[column]):
                    return True
        ends: dict[Row, int] = {}
        for row in self.inequalities:
            if row[column]:
                own, rest = parts(row)
                most = row[-1] - least(tuple(-c for c in rest), low, high)
                ends[own] = min(most, ends.get(own, most))
        return any(
            own[column] > 0 and most + ends.get(tuple(-c for c in own), UNKNOWN) < own[column]
            for own, most in ends.items()
        )

    def eliminate(self, left: Collection[int]) -> int | None:
        """Eliminate that one of the columns which links the fewest others; None if none can be.

        Raises :class:`TooManyPointsError` where that leaves too many constraints.
        """
        best: tuple[int, int, Row | None, list[Row]] | None = None
        for column in sorted(left):
            mine = [row for row in self.inequalities if row[column]]
            linking = sum(names_in(row) > 1 for row in mine)
            equalities = [row for row in self.equalities if row[column]]
            by: Row | None = None
            shadow: list[Row] | None = []
            if equalities:
                by = min((e for e in equalities if abs(e[column]) == 1), key=names_in, default=None)
                if by is None:
                    continue
                cost = (linking + len(equalities) - 1) * (names_in(by) - 2)
            else:
                shadow = _shadow(mine, column, self.box)
                if shadow is None:
                    continue
                cost = _links(shadow) - _links(mine)
            if best is None or cost < best[0]:
                best = cost, column, by, shadow or []
        if best is None:
            return None
        _, column, by, shadow = best
        if by is None:
            rest = [row for row in self.inequalities if not row[column]]
            self.inequalities = [*rest, *shadow]
        else:
            self.equalities.remove(by)
            left_over = (plus(row, -row[column] * by[column], by) for row in self.equalities)
            self.equalities = [tuple(c // (gcd(*row) or 1) for c in row) for row in left_over]
            self.inequalities = [
                plus(row, -row[column] * by[column], by) for row in self.inequalities
            ]
        self.inequalities = unlinked(self.equalities, self.inequalities, *self.box)
        if len(self.inequalities) > _budget.ROWS:
            raise TooManyPointsError
        return column


def _array(rows: Sequence[Row], columns: Sequence[int]) -> Rows:
    whole = [[row[c] for c in columns] + [row[-1]] for row in rows]
    return np.array(whole, np.int64).reshape(-1, len(columns) + 1)


def _links(rows: Sequence[Row]) -> int:
    return sum(max(names_in(row) - 1, 0) for row in rows)


def _shadow(inequalities: Sequence[Row], column: int, box: Box) -> list[Row] | None:
    """Inequalities without the name, if every value of the others leaves room for one of it."""
    found = []
    for one in inequalities:
        for two in inequalities:
            a, b = one[column], -two[column]
            if a > 0 and b > 0:
                row = plus(two, b, one, a)
                if min(a, b) > 1 and least(row, *box) < (a - 1) * (b - 1):
                    return None
                found.append(tightened(row))
    return found
