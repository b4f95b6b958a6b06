"""Comparing assertions with data in host memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._assertions.values import Assertion, Disjoint, Increasing, Injective, Within
from loopkit._errors import AssumptionError, LaunchError
from loopkit._expression import evaluate, replace_accesses, to_text
from loopkit._guarded import conjuncts
from loopkit._hidden import hidden
from loopkit._nodes import Expression

Array = np.ndarray[Any, np.dtype[Any]]
Cell = tuple[str, tuple[int, ...], int]


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
) -> tuple[str, tuple[Cell, ...]] | None:
    """What breaks an assertion, in words and as ``(array, index, value)``; None if nothing does."""
    own = [np.asarray(arrays[array]) for array in assertion.arrays]
    if isinstance(assertion, Injective):
        return _not_injective(assertion.array, own[0], _cells(assertion, arrays, sizes))
    if isinstance(assertion, Increasing):
        return _not_increasing(assertion, own[0])
    if isinstance(assertion, Within):
        return _not_within(assertion, own[0], sizes)
    return _not_disjoint(assertion, own[0], own[1])


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


def _not_injective(name: str, values: Array, cells: Array) -> tuple[str, tuple[Cell, ...]] | None:
    flat = values.ravel()
    order = cells[np.argsort(flat[cells], kind="stable")]
    ordered = flat[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if not again.size:
        return None
    # Equal values keep their order: each repeats the one before it.
    first_repeat = again[np.argmin(order[again + 1])]
    both = [_cell(name, values, int(order[first_repeat + step])) for step in (0, 1)]
    shown = f"{_place(both[0])} = {_place(both[1])} = {both[0][2]}"
    return shown + _more(again.size, "value comes again", "values come again"), tuple(both)


def _not_increasing(assertion: Increasing, values: Array) -> tuple[str, tuple[Cell, ...]] | None:
    before, after = values[:-1], values[1:]
    wrong = np.flatnonzero(before >= after if assertion.strictly else before > after)
    if not wrong.size:
        return None
    at = int(wrong[0])
    cells = [_cell(assertion.array, values, at + step) for step in (0, 1)]
    shown = " is followed by ".join(f"{_place(cell)} = {cell[2]}" for cell in cells)
    return shown + _more(wrong.size, "such place", "such places"), tuple(cells)


def _not_within(
    assertion: Within, values: Array, sizes: Mapping[str, Any]
) -> tuple[str, tuple[Cell, ...]] | None:
    flat = values.ravel()
    lower = _bound(assertion.lower, sizes)
    upper = _bound(assertion.upper, sizes)
    low, high = flat < lower, flat >= upper
    wrong = np.flatnonzero(low | high)
    if not wrong.size:
        return None
    at = int(wrong[0])
    cell = _cell(assertion.array, values, at)
    limit = f"below {_named(assertion.lower, lower)}"
    if high[at]:
        limit = f"not below {_named(assertion.upper, upper)}"
    shown = f"{_place(cell)} = {cell[2]} is {limit}"
    return shown + _more(wrong.size, "such value", "such values"), (cell,)


def _not_disjoint(
    assertion: Disjoint, first: Array, second: Array
) -> tuple[str, tuple[Cell, ...]] | None:
    one, other = first.ravel(), second.ravel()
    here = np.flatnonzero(_among(one, other))
    if not here.size:
        return None
    at = int(here[0])
    there = int(np.flatnonzero(_equal(other, one[at]))[0])
    cells = (_cell(assertion.first, first, at), _cell(assertion.second, second, there))
    shown = f"{_place(cells[0])} = {_place(cells[1])} = {cells[0][2]}"
    return shown + _more(here.size, "value is in both", "values are in both"), cells


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


def _equal(values: Array, value: Any) -> Array:
    found: Array = values == int(value)
    return found


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


def _more(count: int, one: str, several: str) -> str:
    """How many more places there are, in brackets, after the first was shown."""
    rest = int(count) - 1
    if rest == 0:
        return ""
    return f" (and 1 more {one})" if rest == 1 else f" (and {rest} more {several})"
