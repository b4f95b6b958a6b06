"""What the elements of constant tables say of themselves."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np

from loopkit._arrays import ConstantTable
from loopkit._assertions.values import (
    Assertion,
    Disjoint,
    Increasing,
    Injective,
    Within,
    in_order,
)


def facts_of_tables(tables: Iterable[ConstantTable]) -> tuple[Assertion, ...]:
    """What holds of tables of integers that stand in subscripts; nobody need assert it."""
    found: list[Assertion] = []
    index = [t for t in tables if t.array.dtype.kind in "iu"]
    values = {t.name: t.array.ravel() for t in index}
    for table in index:
        found += _facts(table.name, values[table.name], has_order=table.array.ndim == 1)
    for (first, one), (second, two) in combinations(values.items(), 2):
        if not np.intersect1d(one, two).size:
            found.append(Disjoint(first, second))
    return in_order(tuple(found))


def _facts(name: str, values: Any, *, has_order: bool) -> list[Assertion]:
    found: list[Assertion] = [Within(name, int(values.min()), int(values.max()) + 1)]
    rises = has_order and bool(np.all(values[1:] > values[:-1]))
    if rises or (has_order and bool(np.all(values[1:] >= values[:-1]))):
        found.append(Increasing(name, strictly=rises))
    if not rises and len(np.unique(values)) == len(values):
        found.append(Injective(name))
    return found
