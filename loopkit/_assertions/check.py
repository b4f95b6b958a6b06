"""Assertions and data: facts about constant tables, checks of arrays, and random example data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._arrays import ConstantTable
from loopkit._assertions.assertion_values import (
    Assertion,
    Disjoint,
    Facts,
    Increasing,
    Injective,
    Within,
    facts_of,
    in_order,
)
from loopkit._errors import AssumptionError, LaunchError
from loopkit._expression import evaluate, replace_accesses, to_text
from loopkit._guarded import conjuncts
from loopkit._hidden import hidden
from loopkit._nodes import Expression

Array = np.ndarray[Any, np.dtype[Any]]
Cell = tuple[str, tuple[int, ...], int]
Breach = tuple[str, tuple[Cell, ...]]
"""What is wrong, in words, and the cells that show it."""


def check_data(
    name: str,
    assertions: tuple[Assertion, ...],
    arrays: Mapping[str, Any],
    sizes: Mapping[str, Any],
) -> None:
    """Raise :class:`AssumptionError` for the first assertion that the data breaks.

    Parameters
    ----------
    name
        What makes the assertions, for the message: a kernel's name.
    arrays
        Index arrays by name, NumPy arrays.  Assertions about others are left out.
    sizes
        The sizes that bounds mention.
    """
    for assertion in assertions:
        if not all(array in arrays for array in assertion.arrays):
            continue
        found = violation(assertion, arrays, sizes)
        if found is not None:
            shown, cells = found
            raise AssumptionError(
                f"{name} assumes that {assertion.text}, but {shown}",
                assertion=assertion,
                cells=cells,
            )


def violation(
    assertion: Assertion, arrays: Mapping[str, Any], sizes: Mapping[str, Any]
) -> Breach | None:
    """What breaks an assertion, in words and as ``(array, index, value)``; None if nothing does."""
    own = [np.asarray(arrays[array]) for array in assertion.arrays]
    if isinstance(assertion, Injective):
        return _not_injective(assertion.array, own[0], _cells(assertion, arrays, sizes))
    if isinstance(assertion, Increasing):
        return _not_increasing(assertion, own[0])
    if isinstance(assertion, Within):
        return _not_within(assertion, own[0], sizes)
    return _not_disjoint(assertion, own[0], own[1])


def _first_of(wrong: Array, more: tuple[str, str], say: Callable[[int], Breach]) -> Breach | None:
    """What is said of the first of some wrong positions, and how ``more`` of them are counted."""
    if not wrong.size:
        return None
    shown, cells = say(int(wrong[0]))
    rest = wrong.size - 1
    counted = f" (and {rest} more {more[rest > 1]})" if rest else ""
    return shown + counted, cells


def _cells(assertion: Injective, arrays: Mapping[str, Any], sizes: Mapping[str, Any]) -> Array:
    """The positions of the cells of an array that an assertion is about, row by row."""
    shape = np.shape(arrays[assertion.array])
    holds = np.ones(shape, bool)
    if assertion.where is not None:
        names = {**sizes, **dict(zip(assertion.index, np.indices(shape, sparse=True), strict=True))}

        def read(name: str, indices: tuple[Expression, ...]) -> Expression | None:
            if not indices:
                return None
            place = hidden("read", len(names))
            names[place] = np.asarray(arrays[name])[tuple(evaluate(i, names) for i in indices)]
            return prim.Variable(place)

        for part in conjuncts(replace_accesses(assertion.where, read)):
            holds &= evaluate(part, names) != 0
    return np.flatnonzero(holds)


def _not_injective(name: str, values: Array, cells: Array) -> Breach | None:
    flat = values.ravel()
    order = cells[np.argsort(flat[cells], kind="stable")]
    # Equal values keep their order: each repeats the one before it.
    again = np.flatnonzero(flat[order[1:]] == flat[order[:-1]])
    again = again[np.argsort(order[again + 1])]

    def say(at: int) -> Breach:
        return _both(*(_cell(name, values, int(order[at + step])) for step in (0, 1)))

    return _first_of(again, ("value comes again", "values come again"), say)


def _not_increasing(assertion: Increasing, values: Array) -> Breach | None:
    before, after = values[:-1], values[1:]
    wrong = np.flatnonzero(before >= after if assertion.strictly else before > after)

    def say(at: int) -> Breach:
        cells = [_cell(assertion.array, values, at + step) for step in (0, 1)]
        return " is followed by ".join(f"{_place(c)} = {c[2]}" for c in cells), tuple(cells)

    return _first_of(wrong, ("such place", "such places"), say)


def _not_within(assertion: Within, values: Array, sizes: Mapping[str, Any]) -> Breach | None:
    flat = values.ravel()
    lower, upper = (_bound(end, sizes) for end in (assertion.lower, assertion.upper))
    high = flat >= upper

    def say(at: int) -> Breach:
        cell = _cell(assertion.array, values, at)
        limit = f"below {_named(assertion.lower, lower)}"
        if high[at]:
            limit = f"not below {_named(assertion.upper, upper)}"
        return f"{_place(cell)} = {cell[2]} is {limit}", (cell,)

    return _first_of(np.flatnonzero((flat < lower) | high), ("such value", "such values"), say)


def _not_disjoint(assertion: Disjoint, first: Array, second: Array) -> Breach | None:
    one, other = first.ravel(), second.ravel()

    def say(at: int) -> Breach:
        there = int(np.flatnonzero(other == int(one[at]))[0])
        return _both(_cell(assertion.first, first, at), _cell(assertion.second, second, there))

    here = np.flatnonzero(_among(one, other))
    return _first_of(here, ("value is in both", "values are in both"), say)


def _both(one: Cell, other: Cell) -> Breach:
    """Two cells of one value."""
    return f"{_place(one)} = {_place(other)} = {one[2]}", (one, other)


def _among(one: Array, other: Array) -> Array:
    """Which values of ``one`` are in ``other``; signed or not, as integers."""
    if one.dtype.kind == other.dtype.kind:
        return np.isin(one, other)
    # NumPy would compare int64 with uint64 as float64, where big neighbours are equal.
    natural = one >= 0
    inside = np.isin(
        np.where(natural, one, 0).astype(np.uint64), other[other >= 0].astype(np.uint64)
    )
    return natural & inside


def _bound(expr: Expression, sizes: Mapping[str, Any]) -> int:
    try:
        return int(evaluate(expr, sizes))
    except KeyError as error:
        (name,) = error.args
        raise LaunchError(
            f"the value of '{name}' is needed to check the bound {to_text(expr)}",
            instead=f"pass {name}=...",
        ) from None


def _named(expr: Expression, value: int) -> str:
    return str(value) if isinstance(expr, int) else f"{to_text(expr)} = {value}"


def _cell(name: str, values: Array, position: int) -> Cell:
    index = tuple(int(i) for i in np.unravel_index(position, values.shape))
    return name, index, int(values[index])


def _place(cell: Cell) -> str:
    return f"{cell[0]}[{', '.join(map(str, cell[1]))}]"


# Larger ranges are represented by a part of this many values.
_MOST = 1 << 20
# An array may take values that another one cannot do without.
_ATTEMPTS = 20


def obeying_data(
    assertions: tuple[Assertion, ...],
    arrays: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]],
    sizes: Mapping[str, int],
    rng: np.random.Generator,
) -> dict[str, Array]:
    """Values for those of ``arrays``, ``(shape, dtype)`` by name, that assertions are about.

    Raises :class:`AssumptionError` where none are found.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return _draw(assertions, arrays, sizes, rng)
        except AssumptionError:
            if attempt + 1 == _ATTEMPTS:
                raise
    raise AssertionError


def _draw(
    assertions: tuple[Assertion, ...],
    arrays: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]],
    sizes: Mapping[str, int],
    rng: np.random.Generator,
) -> dict[str, Array]:
    # What differs where a condition holds may differ everywhere.
    assertions = tuple(Injective(a.array) if isinstance(a, Injective) else a for a in assertions)
    facts = facts_of(assertions)
    about = {name for a in assertions for name in a.arrays} & arrays.keys()
    counts = {name: int(np.prod(arrays[name][0], dtype=object)) for name in about}
    # Those that need the most of what they may have choose first.
    order = sorted(about, key=lambda name: (name not in facts.injective, -counts[name], name))
    found: dict[str, Array] = {}
    for position, name in enumerate(order):
        shape, dtype = arrays[name]
        pool = _pool(name, facts, counts[name], dtype, sizes)
        for other in facts.apart.get(name, frozenset()) & found.keys():
            pool = pool[~np.isin(pool, found[other].ravel())]
        later = len(facts.apart.get(name, frozenset()) & set(order[position + 1 :]))
        values = _choose(name, facts, counts[name], pool, later, rng)
        if name in facts.increasing:
            values = np.sort(values)
        found[name] = values.reshape(shape).astype(dtype)
    return found


def _pool(
    name: str, facts: Facts, count: int, dtype: np.dtype[Any], sizes: Mapping[str, int]
) -> Array:
    """The values that an array may have."""
    limits = np.iinfo(dtype)
    bounds = facts.bounds.get(name, ())
    lower = max((int(evaluate(low, sizes)) for low, _ in bounds), default=0)
    upper = min((int(evaluate(up, sizes)) for _, up in bounds), default=max(lower, 0) + 2 * count)
    if not bounds:
        upper = max(upper, 100)
    lower, upper = max(lower, int(limits.min)), min(upper, int(limits.max) + 1)
    return np.arange(lower, min(upper, lower + max(_MOST, 4 * count)))


def _choose(
    name: str, facts: Facts, count: int, pool: Array, later: int, rng: np.random.Generator
) -> Array:
    if pool.size < (count if name in facts.injective else min(count, 1)):
        raise AssumptionError(f"no data for '{name}' obeys all that is assumed of it")
    if name in facts.injective:
        return rng.choice(pool, count, replace=False)
    if later:  # others must find values that this array does not have
        pool = rng.choice(pool, max(1, pool.size // (later + 1)), replace=False)
    return rng.choice(pool, count) if count else pool[:0]


def facts_of_tables(tables: Iterable[ConstantTable]) -> tuple[Assertion, ...]:
    """The assertions that hold for integer tables in subscripts, without the user's help."""
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
