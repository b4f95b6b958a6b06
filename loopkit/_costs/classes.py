"""Equivalence classes of requests with equal cost, so that each class is counted once.

The domain of an access links the *request names* (loops and blocks) with the names of threads by
constraints.  A constraint depends on the request only through the value of a linear form, and only
within the range in which this value decides something: for blocks in the interior of a grid all
values are equivalent.  The cost also depends on the address modulo a period.  So a class is
determined by these forms, clamped to their decisive range, and the remainder of the address.
Names that no constraint links form separate classes, which are multiplied.  Where a name runs
through a range in which nothing is decided, its remainders are counted without enumeration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import gcd
from typing import Any

import numpy as np

from loopkit import _budget, _sets
from loopkit._cached import once
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._poly.integer_points import (
    Answers,
    Rows,
    System,
    TooManyPointsError,
    Walk,
    enumerated,
)
from loopkit._poly.linear_rows import UNKNOWN

Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of requests.

    ``values`` has a row for each case: values of ``names`` that represent the case; ``systems``
    lists the systems of the access in which it occurs.  Class ``c`` is the case ``case[c]`` with
    the address ``moved[c]`` within the period, and occurs ``times[c]`` times (Python's integers).
    """

    names: tuple[str, ...]
    values: Rows
    systems: np.ndarray[Any, np.dtype[np.bool_]]
    case: Rows
    moved: Rows
    times: Numbers


@dataclass(frozen=True, eq=False)
class _Form:
    """The part of a constraint in one group of names, and the range in which its value matters."""

    row: Rows
    low: int
    high: int


def request_columns(system: System, requests: Sequence[str]) -> set[int]:
    """The columns of request names, and of quotients that only they decide."""
    found = {n for n, name in enumerate(system.names) if name in requests or not name}
    rows = np.concatenate([system.equalities, system.inequalities])[:, :-1] != 0
    while True:
        others = [n for n in range(len(system.names)) if n not in found]
        linked = rows[rows[:, others].any(axis=1)].any(axis=0)
        leave = {n for n in found if not system.names[n] and linked[n]}
        if not leave:
            return found
        found -= leave


def request_classes(
    found: Sequence[System], requests: tuple[str, ...], factors: Mapping[str, int], period: int
) -> Classes:
    """The classes of an access whose points are those of disjoint systems.

    ``factors`` gives by how many bytes each name moves the address.
    """
    none = np.zeros(0, np.int64)
    if not found:
        empty = np.zeros((0, len(requests)), np.int64)
        return Classes(requests, empty, np.zeros((0, 0), bool), none, none, none.astype(object))
    columns = [request_columns(system, requests) for system in found]
    groups = _groups(found, columns, requests)
    tables = [_of_group(found, c, names, factors, period) for names, c in groups]
    everything = np.ones((1, len(found)), bool)
    zero = np.zeros(1, np.int64)
    start = Classes((), np.zeros((1, 0), np.int64), everything, zero, zero, zero.astype(object) + 1)
    both = reduce(lambda a, b: _combined(a, b, period), tables, start)
    order = [both.names.index(name) for name in requests]
    return Classes(requests, both.values[:, order], both.systems, both.case, both.moved, both.times)


def _groups(
    found: Sequence[System], columns: Sequence[set[int]], requests: tuple[str, ...]
) -> list[tuple[tuple[str, ...], list[list[int]]]]:
    """Request names that constraints link, and their columns in each system."""

    def token(number: int, column: int) -> str:
        return found[number].names[column] or hidden(f"quotient{number}", column)

    tokens = list(requests)
    links = []
    for number, system in enumerate(found):
        mine = sorted(columns[number])
        tokens += [token(number, c) for c in mine if not system.names[c]]
        for row in (*system.equalities, *system.inequalities):
            links.append([token(number, c) for c in mine if row[c]])
    groups = []
    for group in _sets.linked(tokens, links):
        held = [
            [c for c in sorted(mine) if token(number, c) in group]
            for number, mine in enumerate(columns)
        ]
        groups.append((tuple(name for name in group if name in requests), held))
    return groups


def _of_group(
    found: Sequence[System],
    columns: list[list[int]],
    names: tuple[str, ...],
    factors: Mapping[str, int],
    period: int,
) -> Classes:
    """The classes of request names that constraints link."""
    parts = [s.within(c) for s, c in zip(found, columns, strict=True)]
    places = [[part.names.index(name) for name in names] for part in parts]
    forms = [
        form
        for system, part, held, place in zip(found, parts, columns, places, strict=True)
        for form in _forms(system, held, place)
    ]
    move = [factors.get(name, 0) % period for name in names]
    key = (
        tuple(part.key for part in parts),
        tuple(map(tuple, places)),
        tuple((form.row.tobytes(), form.low, form.high) for form in forms),
        tuple(move),
        period,
    )
    return once(_GROUPS, key, _of_parts, parts, places, forms, np.array(move, np.int64), period)


_GROUPS = Answers[Classes]()


def _of_parts(
    parts: Sequence[System],
    places: Sequence[list[int]],
    forms: Sequence[_Form],
    move: Rows,
    period: int,
) -> Classes:
    """The classes of the columns of systems for the names at these positions."""
    names = tuple(parts[0].names[n] for n in places[0])
    if len(parts) == 1 and len(parts[0].names) == len(names):
        # Without quotients, its columns are the names, in their order.
        points, times = _condensed(parts[0], forms, move, period)
        member = np.ones((len(points), 1), bool)
    else:
        held = [enumerated(part)[:, place] for part, place in zip(parts, places, strict=True)]
        points, number = np.unique(np.concatenate(held), axis=0, return_inverse=True)
        member = np.zeros((len(points), len(parts)), bool)
        origin = np.repeat(np.arange(len(parts)), [len(h) for h in held])
        member[number.reshape(-1), origin] = True
        times = np.ones(len(points), np.int64)
    seen = [np.clip(points @ form.row, form.low, form.high) for form in forms]
    case, first = numbered(np.column_stack([*member.T, *seen]))
    moved = points @ move % period
    return _merged(Classes(names, points[first], member[first], case, moved, times), period)


def _forms(system: System, columns: Sequence[int], place: Sequence[int]) -> list[_Form]:
    """What constraints with other names say about columns, and where that decides anything."""
    assert system.box is not None
    low, high = (np.array(ends, object) for ends in system.box)
    held = set(columns)
    others = [n for n in range(len(system.names)) if n not in held]
    forms = []
    for rows, is_equality in ((system.equalities, True), (system.inequalities, False)):
        for row in rows:
            rest = [n for n in others if row[n]]
            if not row[list(held)].any() or not rest:
                continue
            ends = [(int(row[n]) * low[n], int(row[n]) * high[n]) for n in rest]
            least = max(int(row[-1]) + sum(map(min, ends)), -UNKNOWN)
            most = min(int(row[-1]) + sum(map(max, ends)), UNKNOWN)
            mine = row[list(columns)][list(place)]
            forms.append(_Form(mine, -most - 1, -least + is_equality))
    return forms


def _condensed(
    part: System, forms: Sequence[_Form], move: Rows, period: int
) -> tuple[Rows, Numbers]:
    """Points that represent all points of a system, and how many each represents."""
    if part.box is None:
        return np.zeros((0, len(part.names)), np.int64), np.zeros(0, np.int64)
    widths = [high - low for low, high in zip(*part.box, strict=True)]
    last = max(range(len(widths)), key=lambda n: (widths[n], -n))
    walk = Walk(part, last=last)
    rows = walk.rows(walk.order[:-1])
    low, high = walk.bounds(rows, walk.order[:-1], last)
    high = np.maximum(high, low - 1)
    cuts = [low, high + 1]
    undecided = []
    for form in forms:
        factor = int(form.row[last])
        rest = rows @ form.row[walk.order[:-1]]
        if factor == 0:
            continue
        # Undecided strictly between the form's low and high.
        ends = (form.low + 1 - rest, form.high - 1 - rest)[:: 1 if factor > 0 else -1]
        begin = np.clip(-(-ends[0] // factor), low, high + 1)
        end = np.clip(ends[1] // factor + 1, begin, high + 1)
        undecided.append((begin, end))
        cuts += [begin, end]
    ordered = np.sort(np.column_stack(cuts), axis=1)
    start, length = ordered[:, :-1], np.diff(ordered, axis=1)
    whole = np.zeros(start.shape, bool)
    for begin, end in undecided:
        whole |= (begin[:, None] <= start) & (start < end[:, None])
    turn = period // gcd(int(move[last]), period)
    count = np.where(whole, length, np.minimum(length, turn))
    if count.sum() * max(len(widths), 1) > _budget.POINTS:
        raise TooManyPointsError
    row, piece = np.nonzero(count)
    many = count[row, piece]
    offset = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    row, piece = np.repeat(row, many), np.repeat(piece, many)
    step = np.where(whole, length, turn)[row, piece]
    times = (length[row, piece] - offset + step - 1) // step
    times = np.where(whole[row, piece], 1, times)
    points = np.column_stack([rows[row], start[row, piece] + offset])
    return points[:, np.argsort(walk.order)], times


def _combined(one: Classes, two: Classes, period: int) -> Classes:
    """Classes of the names of both, which nothing links."""
    cases = len(one.values) * len(two.values)
    if max(cases, len(one.case) * len(two.case)) > _budget.CASES:
        raise TooManyPointsError
    a, b = (m.reshape(-1) for m in np.indices((len(one.values), len(two.values))))
    c, d = (m.reshape(-1) for m in np.indices((len(one.case), len(two.case))))
    found = Classes(
        (*one.names, *two.names),
        np.column_stack([one.values[a], two.values[b]]),
        one.systems[a] & two.systems[b],
        one.case[c] * len(two.values) + two.case[d],
        (one.moved[c] + two.moved[d]) % period,
        one.times[c] * two.times[d],
    )
    return _merged(found, period)


def _merged(found: Classes, period: int) -> Classes:
    """The same with each class once, without what occurs in no system."""
    runs = np.asarray(found.systems.any(axis=1))[found.case]
    kept, case = np.unique(found.case[runs], return_inverse=True)
    key, number = np.unique(case.reshape(-1) * period + found.moved[runs], return_inverse=True)
    if len(key) > _budget.PATTERNS:
        raise TooManyPointsError
    times = np.zeros(len(key), found.times.dtype)
    np.add.at(times, number.reshape(-1), found.times[runs])
    case, moved = key // period, key % period
    values, systems = found.values[kept], found.systems[kept]
    return Classes(found.names, values, systems, case, moved, times.astype(object))


def numbered(rows: Rows) -> tuple[Rows, Rows]:
    """The number of each row among different ones, and the first row that has each number."""
    if not rows.size:
        return np.zeros(len(rows), np.int64), np.zeros(min(len(rows), 1), np.int64)
    key = np.zeros(len(rows), np.int64)
    room = 1
    for column in rows.T:
        low = int(column.min())
        width = int(column.max()) - low + 1
        if room * width >= 1 << 62:
            _, key = np.unique(key, return_inverse=True)
            _, column = np.unique(column, return_inverse=True)
            low, width, room = 0, int(column.max()) + 1, int(key.max()) + 1
        key, room = key * width + (column - low), room * width
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return number.reshape(-1), first
