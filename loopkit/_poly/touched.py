"""Which threads touch which cells, in numbers, where they are few.

What two accesses of a block have in common, sizes and loops around both, often says nothing of
which cells a thread touches.  Then threads and cells make a table, and whether two accesses
meet is a look at two tables, in microseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._expression import evaluate, nodes_of, variable_names
from loopkit._frozen import dataclass
from loopkit._linear import linear_sum
from loopkit._nodes import Expression
from loopkit._poly.integer_points import (
    EndlessError,
    Rows,
    System,
    TooManyPointsError,
    enumerated,
    points_of,
    system_of,
    tidied,
)

Column = np.ndarray[Any, np.dtype[np.int64]]

MOST = 1 << 18
"""As many instances are listed."""

MOST_CELLS = 1 << 20
"""Of arrays with as many cells."""


@dataclass(frozen=True, eq=False)
class Instances:
    """The ``values`` that names have in instances, and the threads that run each of these.

    There are some between ``first`` and ``last`` for each, these two among them.  Of the other
    names, ``{ others : ... }``, nothing runs outside of ``around``, and all runs in ``whole``.
    """

    values: Mapping[str, Any]
    first: Column
    last: Column
    around: isl.Set
    whole: isl.Set


@dataclass(frozen=True, eq=False)
class Touched:
    """The cells that an access touches, each once, and the first and last thread that does.

    ``names`` have all of their values there.  Of the others, ``{ others : ... }``, it touches
    nothing outside of ``around``, and all of the cells, by these threads, in ``whole``.
    """

    cells: Column
    first: Column
    last: Column
    names: frozenset[str]
    around: isl.Set
    whole: isl.Set


def instances_of(
    domain: isl.Set, own: Collection[str], used: Iterable[str], words: Mapping[str, int]
) -> Instances | None:
    """The values of ``used`` names in ``{ own and other names : ... }``, all of them its own.

    With them come own names that equalities tie to them.  ``words`` are the indices of threads,
    own names, too, each with what it counts for in a thread's number.  None where others are
    tied to them, or where there are too many.
    """
    used = frozenset(used)
    names = _sets.names_of(domain)
    basics = domain.compute_divs().get_basic_sets()
    needed = frozenset(words).union(used)
    if len(basics) != 1 or not needed <= {*own} & {*names}:
        return None
    system = system_of(basics[0], names)
    mine = _tied(system, needed, own)
    if mine is None:
        return None
    others = [column for column in range(len(system.names)) if column not in mine]
    rows = system.inequalities
    has_mine, has_others = ((rows[:, some] != 0).any(axis=1) for some in (mine, others))
    inner = System(
        tuple(system.names[column] for column in mine),
        system.equalities[(system.equalities[:, mine] != 0).any(axis=1)][:, [*mine, -1]],
        rows[has_mine & ~has_others][:, [*mine, -1]],
        basics[0].to_set(),
    )
    links = rows[has_mine & has_others]
    if links[:, [column for column in others if not system.names[column]]].any():
        return None
    try:
        found = tidied(inner)
        if found is None:
            return None
        listed, ends = _listed(found, used, words, links[:, mine])
    except (TooManyPointsError, EndlessError):
        return None
    whole = around = _without(inner.domain, inner.names)
    for row, (least, most) in zip(links.tolist(), ends.tolist(), strict=True):
        terms = [(row[c], prim.Variable(system.names[c])) for c in others if row[c]]
        whole, around = (
            where & _sets.condition_set(prim.Comparison(linear_sum(terms, row[-1] + end), ">=", 0))
            for where, end in ((whole, least), (around, most))
        )
    *columns, first, last = listed.T
    values = {name: column for name, column in zip(inner.names, columns, strict=True) if name}
    return Instances(values, first, last, around, whole)


def _tied(system: System, needed: Collection[str], own: Collection[str]) -> list[int] | None:
    """The columns of needed names, and of what equalities and quotients tie to these.

    None where that is more than own names and their quotients.
    """
    quotients = [column for column, name in enumerate(system.names) if not name]
    # The last inequalities define quotients, two each.
    defining = system.inequalities[len(system.inequalities) - 2 * len(quotients) :: 2]
    rows = [{*np.flatnonzero(row[:-1]).tolist()} for row in (*system.equalities, *defining)]
    mine = {column for column, name in enumerate(system.names) if name in needed}
    size = 0
    while size < len(mine):
        size = len(mine)
        for row in rows:
            if not mine.isdisjoint(row):
                mine |= row
    allowed = {"", *own}
    return sorted(mine) if all(system.names[column] in allowed for column in mine) else None


def _without(domain: isl.Set, names: Iterable[str]) -> isl.Set:
    """A superset of ``domain``: what holds of the other names."""
    for name in filter(None, names):
        position = domain.find_dim_by_name(isl.dim_type.param, name)
        domain = domain.drop_constraints_involving_dims(isl.dim_type.param, position, 1)
    return domain.drop_unused_params()


def _listed(
    system: System, used: frozenset[str], words: Mapping[str, int], links: Rows
) -> tuple[Rows, Rows]:
    """The points of a system, a row each, with the first and the last thread that run it.

    What no constraint links to ``used`` names, mostly axes of threads, is not multiplied out:
    one of its points is enough, and its least and its greatest number.  With them the least and
    the greatest value of each of some ``links``.
    """
    assert system.box is not None
    found: list[tuple[list[int], Rows, Rows]] = []
    ends = np.zeros((len(links), 2), np.int64)
    by = np.array([words.get(name, 0) for name in system.names], np.int64)
    for columns in system.groups:
        if len(columns) == 1:
            low, high = (box[columns[0]] for box in system.box)
            if high - low >= MOST:
                raise TooManyPointsError
            rows = np.arange(low, high + 1)[:, None]
        else:
            part = system.within(columns)
            if points_of(part) > MOST:
                raise TooManyPointsError
            rows = enumerated(part)
        if not len(rows):
            return np.zeros((0, len(system.names) + 2), np.int64), ends
        if len(links):
            linked = rows @ links[:, columns].T
            ends += np.column_stack([linked.min(axis=0), linked.max(axis=0)])
        thread = rows @ by[columns]
        if used.isdisjoint(system.names[column] for column in columns):
            found.append((columns, rows[:1], np.array([[thread.min(), thread.max()]])))
        else:
            found.append((columns, rows, thread[:, None]))
    length = prod(len(rows) for _, rows, _ in found)
    if length > MOST:
        raise TooManyPointsError
    listed = np.zeros((length, len(system.names) + 2), np.int64)
    place, inner = np.arange(length), length
    for columns, rows, threads in found:
        inner //= len(rows)
        at = place // inner % len(rows)
        listed[:, columns] = rows[at]
        listed[:, -2:] += threads[at]
    return listed, ends


def touched_by(
    domain: isl.Set,
    own: Collection[str],
    cells: Sequence[Sequence[Expression]],
    words: Mapping[str, int],
    extents: Sequence[int],
) -> Touched | None:
    """What an access touches, whose instances are ``{ own and other names : ... }``.

    ``cells`` are indices over its own names, within ``extents``; ``words`` are the indices of
    threads among these, each with what it counts for in a thread's number.  None where that cannot
    be listed, where an index leaves its extent, and for arrays larger than shared memory is.
    """
    indices = [index for cell in cells for index in cell]
    if any(isinstance(node, _BY_CASES) for index in indices for node in nodes_of(index)):
        return None
    used = frozenset().union(*map(variable_names, indices))
    instances = instances_of(domain, own, sorted(used), words)
    if instances is None or prod(extents) > MOST_CELLS:
        return None
    first = np.full(prod(extents), np.iinfo(np.int64).max)
    last = np.full(prod(extents), -1, np.int64)
    for cell in cells:
        number: Column = np.zeros(len(instances.first), np.int64)
        for index, extent in zip(cell, extents, strict=True):
            value = evaluate(index, instances.values)
            column = np.broadcast_to(np.asarray(value, np.int64), number.shape)
            if len(column) and not 0 <= column.min() <= column.max() < extent:
                return None
            number = number * extent + column
        np.minimum.at(first, number, instances.first)
        np.maximum.at(last, number, instances.last)
    found = np.flatnonzero(last >= 0)
    names = frozenset(instances.values)
    return Touched(found, first[found], last[found], names, instances.around, instances.whole)


_BY_CASES = (prim.Min, prim.Max, prim.If)


def farthest(one: Touched, two: Touched, warp: int) -> int:
    """0 where no two threads meet in a cell, 1 where some of a warp do, 2 where others do."""
    here: Any
    there: Any
    if np.array_equal(one.cells, two.cells):
        here = there = slice(None)
    else:
        _, here, there = np.intersect1d(one.cells, two.cells, True, return_indices=True)
    low = np.minimum(one.first[here], two.first[there])
    high = np.maximum(one.last[here], two.last[there])
    if (low // warp != high // warp).any():
        return 2
    return int((low != high).any())
