"""Projections of systems of linear constraints that are exact for whole numbers.

Names are eliminated one after the other, by an equality in which they have the coefficient 1, or
by combining each lower with each upper bound.  The latter is exact where the combination leaves
room for a whole number in between: the *dark shadow* is then the whole shadow (Pugh, The Omega
Test, 1991).  That covers the indices that tiles, threads and fetches are made of, takes
microseconds, and says so where it does not hold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from math import prod

import numpy as np

from loopkit import _budget
from loopkit._poly.integer_points import (
    Box,
    Rows,
    System,
    TooManyPointsError,
    enumerated,
    points_of,
    remembered,
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


def distinct(found: Sequence[System], keep: Collection[str]) -> int:
    """How many values of ``keep`` occur in systems over these and other names.

    Raises :class:`TooManyPointsError` where that would take too long.
    """
    if len(found) == 1:
        kept = frozenset(keep)
        return prod(_distinct_in(part, kept.intersection(part.names)) for part in found[0].parts)
    try:
        return _together([image(system, keep) for system in found])
    except (InexactError, TooManyPointsError):
        held = [enumerated(s)[:, [s.names.index(name) for name in keep]] for s in found]
        return _different_rows(np.concatenate(held))


@remembered
def _distinct_in(part: System, keep: frozenset[str]) -> int:
    mine = [name for name in part.names if name in keep]
    if len(part.names) == 1:
        return points_of(part) if mine else min(points_of(part), 1)
    try:
        return points_of(_with_fewer_names(image(part, mine, in_full=False)))
    except InexactError:
        return _different_rows(enumerated(part)[:, [part.names.index(name) for name in mine]])


def _different_rows(rows: Rows) -> int:
    return len(np.unique(rows, axis=0)) if rows.shape[1] else int(bool(len(rows)))


def _together(found: Sequence[System]) -> int:
    """How many values of the names there are that occur in any of several systems."""
    found = _different(found)
    if len(found) > _budget.UNIONS:
        raise TooManyPointsError
    return sum(
        (-1) ** (size + 1) * points_of(_with_fewer_names(_both(some)))
        for size in range(1, len(found) + 1)
        for some in combinations(found, size)
    )


def _different(found: Sequence[System]) -> list[System]:
    """The same points in fewer systems, where boxes lie in or beside each other."""
    boxes: list[list[tuple[int, int]]] = []
    others = []
    names = [name for name in found[0].names if name] if found else []
    for system in found:
        if system.box is None:
            continue
        if _is_box(system):
            low, high = system.box
            columns = [system.names.index(name) for name in names]
            boxes.append([(low[c], high[c]) for c in columns])
        else:
            others.append(system)
    while pair := next((p for p in combinations(boxes, 2) if _joined(*p) is not None), None):
        boxes = [box for box in boxes if box is not pair[0] and box is not pair[1]]
        boxes.append(_joined(*pair) or [])
    return [*others, *(_box_system(names, box, found[0]) for box in boxes)]


def _is_box(system: System) -> bool:
    rows = np.concatenate([system.equalities, system.inequalities])[:, :-1]
    return all(system.names) and bool((np.count_nonzero(rows, axis=1) <= 1).all())


def _joined(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> list[tuple[int, int]] | None:
    """The union of two boxes, if it is one."""
    around = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(one, two, strict=True)]
    if around in (one, two):
        return around
    first, *more = ((p, q) for p, q in zip(one, two, strict=True) if p != q)
    (a, b), (c, d) = first
    return None if more or max(a, c) > min(b, d) + 1 else around


def _box_system(names: Sequence[str], box: list[tuple[int, int]], like: System) -> System:
    low, high = zip(*box, strict=True) if box else ((), ())
    rows = np.array(tidy((), (), low, high), np.int64).reshape(-1, len(names) + 1)
    return System(tuple(names), rows[:0], rows, like.domain)


def _both(some: Sequence[System]) -> System:
    """What systems over the same names have in common."""
    if len(some) == 1:
        return some[0]
    names = [name for name in some[0].names if name]
    extra = [[n for n, name in enumerate(s.names) if not name] for s in some]
    width = len(names) + sum(map(len, extra))
    begin = len(names)
    equalities: list[Rows] = []
    inequalities: list[Rows] = []
    for system, own in zip(some, extra, strict=True):
        columns = [system.names.index(name) for name in names] + own
        place = [*range(len(names)), *range(begin, begin + len(own)), width]
        begin += len(own)
        for rows, into in ((system.equalities, equalities), (system.inequalities, inequalities)):
            wide = np.zeros((len(rows), width + 1), np.int64)
            wide[:, place] = rows[:, [*columns, -1]]
            into.append(wide)
    return System(
        (*names, *[""] * (width - len(names))),
        np.concatenate(equalities),
        np.concatenate(inequalities),
        some[0].domain,
    )


def image(system: System, keep: Collection[str], *, in_full: bool = True) -> System:
    """The values of ``keep`` that occur in a system.

    Its other columns, which have no name, have one value for those; ``in_full`` says that there
    should be as few of them as possible.  Raises :class:`InexactError` where that cannot be said.
    """
    if system.box is None:
        return system
    kept = {n for n, name in enumerate(system.names) if name in keep}
    everything = set(range(len(system.names)))
    # The cheapest name first; where that leads nowhere, the one that is farthest from kept ones.
    for groups in ([everything - kept], _by_distance(system, kept)):
        left, rows = everything - kept, _Rows(system)
        while several := left - (set() if in_full else rows.determined(kept, left)):
            tried = (rows.eliminate(several & group) for group in groups)
            column = next((c for c in tried if c is not None), None)
            if column is None:
                break
            left.remove(column)
        if not left - rows.determined(kept, left):
            names = [name if n in kept else "" for n, name in enumerate(system.names)]
            return rows.over(sorted(left | kept), names)
    raise InexactError


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
            self.equalities = [plus(row, -row[column] * by[column], by) for row in self.equalities]
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
