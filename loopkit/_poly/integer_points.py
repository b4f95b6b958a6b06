"""Integer points of sets at fixed sizes: their number, or all points, exactly.

A set is split into disjoint systems of linear constraints over its names and isl's quotients.
Names not linked by a constraint are counted separately, and the counts are multiplied. Linked
names are enumerated one after the other, for all partial points at once; the last name is only
counted between its bounds. A tiled product of size 4096 thus needs a few thousand points, not
7e10.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import wraps
from math import prod
from typing import Any, TypeVar, TypeVarTuple

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _budget, _sets
from loopkit._cached import cached_property, once
from loopkit._frozen import dataclass
from loopkit._poly.linear_rows import UNKNOWN, tidy
from loopkit._sets import maximum_value, minimum_value

PARAM, DIV, SET = isl.dim_type.param, isl.dim_type.div, isl.dim_type.set
Rows = np.ndarray[Any, np.dtype[np.int64]]
Box = tuple[list[int], list[int]]
R = TypeVar("R")
Ts = TypeVarTuple("Ts")


class TooManyPointsError(Exception):
    """A part of a set has too many points to enumerate, and cannot be split."""


class EndlessError(Exception):
    """A name is unbounded."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True, eq=False)
class System:
    """Linear constraints over ``names``; those of quotients are empty.

    A row holds a coefficient for each name, and the constant: ``row @ (values, 1)`` is 0 for
    ``equalities``, at least 0 for ``inequalities``.  A quotient has one value for those of the
    others, so that points with and without quotients are as many.
    """

    names: tuple[str, ...]
    equalities: Rows
    inequalities: Rows
    domain: isl.Set
    bounds: Box | None = None

    @cached_property
    def box(self) -> Box | None:
        """The least and the largest value of each name, or bounds of them; None if it is empty.

        They are ``bounds`` where those are given, and may then be further apart.
        """
        return _box(self) if self.bounds is None else self.bounds

    @cached_property
    def key(self) -> Hashable:
        """The key on which answers about the points depend: equal keys mean equal answers."""
        rows = self.equalities.tobytes(), self.inequalities.tobytes()
        box = None if self.box is None else (*self.box[0], *self.box[1])
        return self.names, len(self.equalities), rows, box

    @cached_property
    def parts(self) -> tuple[System, ...]:
        """The systems over names that no constraint links."""
        return tuple(map(self.within, self.groups))

    @cached_property
    def groups(self) -> list[list[int]]:
        """Columns that constraints link."""
        numbers = [str(n) for n in range(len(self.names))]
        links = [
            [number for number, c in zip(numbers, row, strict=False) if c]
            for row in (*self.equalities.tolist(), *self.inequalities.tolist())
        ]
        return [sorted(map(int, group)) for group in _sets.linked(numbers, links)]

    def within(self, columns: Sequence[int]) -> System:
        """The constraints that are about no other columns."""
        others = [n for n in range(len(self.names)) if n not in columns]
        equalities, inequalities = (
            rows[~rows[:, others].any(axis=1)][:, [*columns, -1]]
            for rows in (self.equalities, self.inequalities)
        )
        names = tuple(self.names[c] for c in columns)
        box = self.box
        ends = None if box is None else ([box[0][c] for c in columns], [box[1][c] for c in columns])
        return System(names, equalities, inequalities, self.domain, ends)


def remembered(function: Callable[[System, *Ts], R]) -> Callable[[System, *Ts], R]:
    """Let a function of a system remember its answers, for systems of the same rows."""
    answers = Answers[R]()

    @wraps(function)
    def ask(system: System, *more: *Ts) -> R:
        return once(answers, (system.key, more), function, system, *more)

    return ask


class Answers(dict[Hashable, R]):
    """Answers to questions; where there are too many, all are forgotten."""

    def __setitem__(self, key: Hashable, answer: R) -> None:
        if len(self) >= _budget.REMEMBERED:
            self.clear()
        super().__setitem__(key, answer)


def systems(domain: isl.Set, names: Collection[str], sizes: Mapping[str, int]) -> list[System]:
    """Disjoint systems that have, together, the points of ``{ names, sizes : ... }``.

    ``sizes`` gives each other name that the set is about a number.
    """
    for name, value in sizes.items():
        position = domain.find_dim_by_name(PARAM, name)
        if position >= 0:
            domain = domain.fix_val(PARAM, position, _sets.val(value))
    order = tuple(names)
    stray = _sets.involved_names(domain) - sizes.keys() - set(order)
    if stray:
        raise ValueError(f"nothing says what {', '.join(sorted(stray))} is")
    domain = _sets.project_onto(domain, order).compute_divs()
    if domain.n_basic_set() > 1:
        domain = domain.coalesce().make_disjoint().compute_divs()
    found = (tidied(system_of(basic, order)) for basic in domain.get_basic_sets())
    return [system for system in found if system is not None]


def tidied(system: System) -> System | None:
    """The same points by constraints that link fewer names; None where there are none."""
    if system.box is None:
        return None
    equalities = [tuple(row) for row in system.equalities.tolist()]
    rows = [tuple(row) for row in system.inequalities.tolist()]
    return System(
        system.names,
        system.equalities,
        np.array(tidy(equalities, rows, *system.box), np.int64).reshape(-1, len(system.names) + 1),
        system.domain,
        system.box,
    )


def system_of(basic: isl.BasicSet, order: tuple[str, ...]) -> System:
    """The constraints of one basic set; the last ones define its quotients, two for each."""
    quotients = basic.dim(DIV)
    place = {name: position for position, name in enumerate(_sets.names_of(basic))}

    def row(of: Any, value: Any) -> list[int]:
        own = [value(of, PARAM, place[n]) if n in place else 0 for n in order]
        return own + [value(of, DIV, n) for n in range(quotients)]

    def coefficient(of: Any, kind: Any, position: int) -> int:
        return _sets.integer(of.get_coefficient_val(kind, position))

    equalities: list[list[int]] = []
    inequalities: list[list[int]] = []
    for constraint in basic.get_constraints():
        coefficients = row(constraint, coefficient)
        coefficients.append(_sets.integer(constraint.get_constant_val()))
        (equalities if constraint.is_equality() else inequalities).append(coefficients)
    for number in range(quotients):
        floor = basic.get_div(number)
        divisor = _sets.integer(floor.get_denominator_val())
        whole = floor.scale_val(_sets.val(divisor))
        remainder = [*row(whole, coefficient), _sets.integer(whole.get_constant_val())]
        remainder[len(order) + number] -= divisor
        inequalities.append(remainder)
        inequalities.append([-c for c in remainder[:-1]] + [divisor - 1 - remainder[-1]])
    columns = len(order) + quotients + 1
    return System(
        order + ("",) * quotients,
        np.array(equalities, np.int64).reshape(-1, columns),
        np.array(inequalities, np.int64).reshape(-1, columns),
        basic.to_set(),
    )


def set_of(system: System) -> isl.Set:
    """``{ names : the constraints of a system hold for some numbers in its other columns }``."""
    width, context = len(system.names), system.domain.get_ctx()

    def matrix(rows: Rows) -> isl.Mat:
        result = isl.Mat.alloc(context, len(rows), width + 1)
        for at, row in enumerate(rows.tolist()):
            for column, value in enumerate(row):
                result = result.set_element_val(at, column, _sets.val(value))
        return result

    space = isl.Space.set_alloc(context, 0, width)
    kinds = SET, PARAM, DIV, isl.dim_type.cst
    rows = matrix(system.equalities), matrix(system.inequalities)
    found = isl.BasicSet.from_constraint_matrices(space, *rows, *kinds).to_set()
    named = [column for column, name in enumerate(system.names) if name]
    for column in sorted({*range(width)}.difference(named), reverse=True):
        found = found.project_out(SET, column, 1)
    for place, column in enumerate(named):
        found = found.set_dim_name(SET, place, system.names[column])
    return found.move_dims(PARAM, 0, SET, 0, len(named)).params()


# {{{ bounds


def plain_box(system: System) -> Box | None:
    """Bounds of each name that its constraints give, if they do; None where it has no point."""
    low, high = [-UNKNOWN] * len(system.names), [UNKNOWN] * len(system.names)
    return (low, high) if _narrowed(_as_inequalities(system), low, high) else None


def _as_inequalities(system: System) -> list[list[int]]:
    equalities = system.equalities
    return [*system.inequalities.tolist(), *equalities.tolist(), *(-equalities).tolist()]


def _box(system: System) -> Box | None:
    """Bounds of each name, from those of the others, until nothing gets narrower."""
    found, rows = plain_box(system), _as_inequalities(system)
    if found is None:
        return None
    low, high = found
    for column, name in enumerate(system.names):
        # Where no name is bounded alone, isl looks at several constraints together.
        if name and (low[column] == -UNKNOWN or high[column] == UNKNOWN):
            _narrowed(rows, low, high)
        if name and (low[column] == -UNKNOWN or high[column] == UNKNOWN):
            ends = [f(system.domain, prim.Variable(name)) for f in (minimum_value, maximum_value)]
            if ends[0] is None or ends[1] is None:
                if system.domain.is_empty():
                    return None
                raise EndlessError(name)
            low[column], high[column] = max(low[column], ends[0]), min(high[column], ends[1])
    return (low, high) if _narrowed(rows, low, high) else None


def _narrowed(rows: list[list[int]], low: list[int], high: list[int]) -> bool:
    """Narrow bounds by all constraints until nothing changes; False where no value is left."""
    for _ in range(_budget.BOX_ROUNDS):
        before = low[:], high[:]
        for row in rows:
            _narrow(row, low, high)
        if any(a > b for a, b in zip(low, high, strict=True)):
            return False
        if (low, high) == before:
            break
    return True


def _narrow(row: list[int], low: list[int], high: list[int]) -> None:
    """Narrow the bounds of each name by ``row @ (values, 1) >= 0``."""
    used = [n for n, c in enumerate(row[:-1]) if c]
    most = {n: row[n] * (high[n] if row[n] > 0 else low[n]) for n in used}
    open_ = [n for n in used if (high[n] if row[n] > 0 else -low[n]) == UNKNOWN]
    if len(open_) > 1:
        return
    total = row[-1] + sum(most.values())
    for n in open_ or used:
        rest = row[-1] + sum(most[m] for m in used if m != n) if open_ else total - most[n]
        if row[n] > 0:
            low[n] = max(low[n], -(rest // row[n]))
        else:
            high[n] = min(high[n], rest // -row[n])
    if not used and row[-1] < 0:
        low[:1], high[:1] = [1], [0]


# }}}

# {{{ counting


def count(domain: isl.Set, names: Collection[str], sizes: Mapping[str, int]) -> int:
    """How many values of ``names`` there are in ``{ names, sizes : ... }``, exactly.

    Raises :class:`TooManyPointsError` where a part of it has more points than may be enumerated,
    and :class:`EndlessError` where it has endlessly many.
    """
    return sum(points_of(system) for system in systems(domain, names, sizes))


def points_of(system: System) -> int:
    """How many points a system has."""
    if not system.names:
        return int(not _is_broken(system))
    return prod(_linked_points(part) for part in system.parts)


def _is_broken(system: System) -> bool:
    """Whether a constraint that is about no name does not hold."""
    equal, least = (
        rows[~rows[:, :-1].any(axis=1), -1] for rows in (system.equalities, system.inequalities)
    )
    return bool(equal.any() or (least < 0).any())


@remembered
def _linked_points(system: System) -> int:
    walk = Walk(system)
    if walk.box is None:
        return 0
    rows = walk.rows(walk.order[:-1])
    low, high = walk.bounds(rows, walk.order[:-1], walk.order[-1])
    return sum(np.maximum(high - low + 1, 0).tolist())


def enumerated(system: System) -> Rows:
    """All points of a system, a row each, in the order of its names."""
    walk = Walk(system)
    if walk.box is None:
        return np.zeros((0, len(system.names)), np.int64)
    return walk.rows(walk.order)[:, np.argsort(walk.order)]


class Walk:
    """The points of a system, name by name: each between bounds that those before it give.

    ``first`` columns come first in ``order``, and the column ``last`` comes last.
    """

    def __init__(self, system: System, first: Sequence[int] = (), last: int | None = None) -> None:
        self.box = system.box
        self.low, self.high = self.box or ([], [])
        both = [*system.equalities, *-system.equalities, *system.inequalities]
        self.constraints = np.array(both, np.int64).reshape(-1, len(system.names) + 1)
        self.order = self._order(list(first), last)

    def _order(self, first: list[int], last: int | None) -> list[int]:
        """Names with few values first, or, where that leads far, those that decide many others."""
        found, points = self._ordered(first, last, lambda width, _: width)
        if points > _budget.POINTS // 100:
            other, fewer = self._ordered(first, last, lambda width, most: -most if width > 1 else 0)
            found = other if fewer < points else found
        return found if last is None else [*found, last]

    def _ordered(
        self, first: list[int], last: int | None, rank: Callable[[int, int], int]
    ) -> tuple[list[int], int]:
        """Names by how many values they have, given those before, and in all; about all points."""
        known, points = [*first], 1
        left = [n for n in range(len(self.low)) if n not in (*known, last)]
        while left:
            widths = {n: self._width(n, known) for n in left}
            name = min(left, key=lambda n: (rank(widths[n], self.high[n] - self.low[n] + 1), n))
            points *= widths[name]
            known.append(name)
            left.remove(name)
        return known, points

    def _width(self, name: int, known: list[int]) -> int:
        """About how many values a name has where those of ``known`` ones are given."""
        width = self.high[name] - self.low[name] + 1
        others = [n for n in range(len(self.low)) if n != name and n not in known]
        rows = self.constraints[self.constraints[:, name] != 0]
        # Of the others, each constraint says as much as their own bounds leave of it.
        most = [int(row[-1]) + self._most(row, others) for row in rows]
        for one, above in zip(rows, most, strict=True):
            if one[name] > 0:
                for two, below in zip(rows, most, strict=True):
                    if one[name] == -two[name] and not (one + two)[known].any():
                        width = min(width, max((above + below) // int(one[name]) + 1, 0))
        return width

    def _most(self, row: Rows, names: Sequence[int]) -> int:
        """The most that names add to a constraint within their own bounds."""
        ends = ((int(row[n]) * self.low[n], int(row[n]) * self.high[n]) for n in names)
        return sum(map(max, ends))

    def bounds(self, rows: Rows, known: Sequence[int], name: int) -> tuple[Rows, Rows]:
        """The values of a name at each of the partial points: all between two numbers.

        Exact where no other name is left, else a superset.
        """
        low = np.full(len(rows), self.low[name], np.int64)
        high = np.full(len(rows), self.high[name], np.int64)
        later = [n for n in range(len(self.low)) if n != name and n not in known]
        for constraint in self.constraints[self.constraints[:, name] != 0]:
            factor = int(constraint[name])
            rest = rows @ constraint[list(known)] + int(constraint[-1])
            rest += self._most(constraint, later)
            if factor > 0:
                np.maximum(low, -(rest // factor), out=low)
            else:
                np.minimum(high, rest // -factor, out=high)
        return low, high

    def rows(self, order: Sequence[int], begin: Rows | None = None) -> Rows:
        """All partial points over ``order``, which have a column each.

        ``begin`` gives the first of its names values: a row for each partial point to go on from.
        """
        return self.continued(order, np.zeros((1, 0), np.int64) if begin is None else begin)[0]

    def continued(self, order: Sequence[int], begin: Rows) -> tuple[Rows, Rows]:
        """All partial points over ``order``, and the row of ``begin`` that each goes on from."""
        rows, origin = begin, np.arange(len(begin))
        for number in range(begin.shape[1], len(order)):
            low, high = self.bounds(rows, order[:number], order[number])
            widths = np.maximum(high - low + 1, 0)
            total = int(widths.sum())
            if total * (number + 1) > _budget.POINTS:
                raise TooManyPointsError
            start = np.cumsum(widths) - widths
            values = np.arange(total) - np.repeat(start - low, widths)
            rows = np.column_stack([np.repeat(rows, widths, axis=0), values])
            origin = np.repeat(origin, widths)
        return rows, origin


# }}}
