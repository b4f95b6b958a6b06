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
from loopkit._nodes import Expression
from loopkit._poly.integer_points import (
    EndlessError,
    Rows,
    System,
    TooManyPointsError,
    enumerated,
    points_of,
    systems,
)

Column = np.ndarray[Any, np.dtype[np.int64]]

MOST = 1 << 18
"""As many instances are listed."""

MOST_CELLS = 1 << 20
"""Of arrays with as many cells."""


@dataclass(frozen=True, eq=False)
class Instances:
    """The ``values`` that names have in instances, and the threads that run each of these.

    There are some between ``first`` and ``last`` for each, these two among them; ``around`` holds
    what is not the instances' own.
    """

    values: Mapping[str, Any]
    first: Column
    last: Column
    around: isl.Set


@dataclass(frozen=True, eq=False)
class Touched:
    """The cells that an access touches, each once, and the first and last thread that does.

    ``around`` is ``{ what is not the instance's own : ... }``, where it happens at all.
    """

    cells: Column
    first: Column
    last: Column
    around: isl.Set


def instances_of(
    domain: isl.Set, own: Collection[str], used: Iterable[str], words: Mapping[str, int]
) -> Instances | None:
    """The values of ``used`` names in ``{ own and other names : ... }``, all of them its own.

    ``words`` are the indices of threads, own names, too, each with what it counts for in a
    thread's number.  None where values hang on other names, or are too many.
    """
    names = [*dict.fromkeys((*words, *used))]
    mine, kept = set(own), set(names)
    if not kept <= mine:
        return None
    domain = _sets.project_out(domain, [n for n in _sets.names_of(domain) if n in mine - kept])
    basics = domain.compute_divs().get_basic_sets()
    if len(basics) != 1:
        return None
    for constraint in basics[0].get_constraints():
        try:
            linked = _sets.form_of(constraint).names
        except _sets.NotAffineError:
            return None
        if linked & mine and linked - mine:
            return None
    others = [name for name in _sets.names_of(domain) if name not in mine]
    inner, around = _sets.project_out(domain, others), _sets.project_onto(domain, others)
    try:
        parts = [_listed(s, frozenset(used), words) for s in systems(inner, names, {})]
    except (TooManyPointsError, EndlessError, ValueError):
        return None
    nothing = np.zeros((0, len(names) + 2), np.int64)
    columns = np.concatenate([nothing, *parts]).T
    return Instances(dict(zip(names, columns, strict=False)), *columns[-2:], around)


def _listed(system: System, used: Collection[str], words: Mapping[str, int]) -> Rows:
    """The points of a system, a row each, and the first and the last thread that run it.

    What no constraint links to ``used`` names, mostly axes of threads, is not multiplied out:
    one of its points is enough, and its least and its greatest number.
    """
    names = [name for name in system.names if name]
    found: Rows = np.zeros((1, len(names) + 2), np.int64)
    for part in system.parts:
        if points_of(part) > MOST:
            raise TooManyPointsError
        rows = enumerated(part)
        thread = rows @ np.array([words.get(name, 0) for name in part.names], np.int64)
        ends = np.column_stack([thread, thread])
        if len(rows) and used.isdisjoint(part.names):
            rows, ends = rows[:1], np.array([[thread.min(), thread.max()]])
        if len(found) * len(rows) > MOST:
            raise TooManyPointsError
        here = np.tile(rows, (len(found), 1))
        found = np.repeat(found, len(rows), axis=0)
        for column, name in enumerate(part.names):
            if name:
                found[:, names.index(name)] = here[:, column]
        found[:, -2:] += np.tile(ends, (len(found) // max(len(rows), 1), 1))
    return found


def touched_by(
    domain: isl.Set,
    own: Collection[str],
    cells: Sequence[Sequence[Expression]],
    words: Mapping[str, int],
    extents: Sequence[int],
) -> Touched | None:
    """What an access touches, whose instances are ``{ own and other names : ... }``.

    ``cells`` are indices over its own names; ``words`` are the indices of threads among these,
    each with what it counts for in a thread's number.  None where that cannot be listed.
    """
    indices = [index for cell in cells for index in cell]
    if any(isinstance(node, _BY_CASES) for index in indices for node in nodes_of(index)):
        return None
    used = frozenset().union(*map(variable_names, indices))
    found = instances_of(domain, own, sorted(used), words)
    if found is None:
        return None
    columns = [[evaluate(index, found.values) for index in cell] for cell in cells]
    return touched(found, columns, extents)


_BY_CASES = (prim.Min, prim.Max, prim.If)


def touched(
    instances: Instances, cells: Sequence[Sequence[Any]], extents: Sequence[int]
) -> Touched | None:
    """What instances touch, whose ``cells`` are columns of indices within ``extents``.

    None where an index leaves its extent, and for arrays larger than shared memory is.
    """
    if prod(extents) > MOST_CELLS:
        return None
    first = np.full(prod(extents), np.iinfo(np.int64).max)
    last = np.full(prod(extents), -1, np.int64)
    for cell in cells:
        number: Column = np.zeros(len(instances.first), np.int64)
        for index, extent in zip(cell, extents, strict=True):
            column = np.broadcast_to(np.asarray(index, np.int64), number.shape)
            if len(column) and not 0 <= column.min() <= column.max() < extent:
                return None
            number = number * extent + column
        np.minimum.at(first, number, instances.first)
        np.maximum.at(last, number, instances.last)
    found = np.flatnonzero(last >= 0)
    return Touched(found, first[found], last[found], instances.around)


def farthest(one: Touched, two: Touched, warp: int) -> int:
    """0 where no two threads meet in a cell, 1 where some of a warp do, 2 where others do."""
    _, here, there = np.intersect1d(one.cells, two.cells, assume_unique=True, return_indices=True)
    low = np.minimum(one.first[here], two.first[there])
    high = np.maximum(one.last[here], two.last[there])
    if (low // warp != high // warp).any():
        return 2
    return int((low != high).any())
