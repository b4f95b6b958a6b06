"""Pictures that are made of cells: what stands where, before anything is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any

from loopkit._frozen import dataclass

FILL = 0.42
"""The strongest fill on which plain text reads well, light and dark."""

Place = tuple[int, int]
"""A row and a column of a grid, counted from 0."""


@dataclass(frozen=True)
class Cell:
    """One cell: ``label`` is short, ``title`` says everything.

    ``fill`` is a colour's name and ``strength`` how much of it; ``span`` columns and ``down`` rows
    are one cell.
    ``frame`` is the step of time from which on it is there; before, its place is empty.
    """

    row: int
    column: int
    label: str = ""
    title: str = ""
    fill: str = ""
    strength: float = 0.3
    stroke: str = ""
    span: int = 1
    down: int = 1
    frame: int | None = None
    statement: int | None = None


@dataclass(frozen=True)
class Outline:
    """A line around cells that belong together."""

    cells: frozenset[Place]
    stroke: str
    title: str = ""
    thick: float = 2.0
    dash: str = ""


@dataclass(frozen=True)
class Arrow:
    """An arrow from cell to cell, by way of others in between."""

    through: tuple[Place, ...]
    stroke: str
    title: str = ""
    dash: str = ""
    thick: float = 1.5
    head: bool = True
    frame: int | None = None


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Rows and columns with their names; ``gaps`` are those before which others are left out.

    ``size`` is the least height of a row in pixels, where the picture may choose.
    """

    title: str = ""
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_name: str = ""
    column_name: str = ""
    cells: tuple[Cell, ...]
    outlines: tuple[Outline, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    row_gaps: frozenset[int] = frozenset()
    column_gaps: frozenset[int] = frozenset()
    column_feet: tuple[str, ...] = ()
    size: float = 0.0


@dataclass(frozen=True)
class Key:
    """A line of the legend: a sample of a cell, an outline or an arrow, and what it means."""

    meaning: str
    fill: str = ""
    strength: float = 0.3
    stroke: str = ""
    dash: str = ""
    arrow: bool = False
    head: bool = True
    label: str = ""

    def cell(self, row: int, column: int, **more: Any) -> Cell:
        """A cell with the looks of this sample, but for what else is said of it."""
        looks = {name: getattr(self, name) for name in ("label", "fill", "strength", "stroke")}
        return Cell(row, column, **{**looks, **more})


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Grids beside each other, with a legend, remarks, and what happens at each step of time.

    Without ``has_words``, title and remarks are left to what stands around the picture.
    """

    title: str
    grids: tuple[Grid, ...]
    subtitle: str = ""
    legend: tuple[Key, ...] = ()
    notes: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    description: str = ""
    has_words: bool = True


def ticks(values: Iterable[int], most: int = 3) -> tuple[list[int], frozenset[int]]:
    """The values of an axis, with holes of up to ``most`` filled; longer ones are left out.

    The second are places in the first before which they are.
    """
    shown: list[int] = []
    gaps = set()
    for value in sorted(set(values)):
        if shown and value - shown[-1] > most + 1:
            gaps.add(len(shown))
        elif shown:
            shown += range(shown[-1] + 1, value)
        shown.append(value)
    return shown, frozenset(gaps)


Seats = Mapping[tuple[int, ...], Place]
FOLD = 32
"""Cells of a picture with one axis that stand in one row."""


@dataclass(frozen=True)
class Seated:
    """Where places are in a grid, the names of its rows and columns, and what is left out."""

    seats: Seats
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_gaps: frozenset[int]
    column_gaps: frozenset[int]

    def grid(self, **more: Any) -> Grid:
        """The grid, with what else is said of it."""
        known = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "seats"}
        return Grid(**known, **more)


def seated_at(at: Mapping[tuple[int, ...], Sequence[int]], *, fold_all: bool = False) -> Seated:
    """A grid for places, whose row and column are given; for one number a row, or several.

    Where rows are folded, ``fold_all`` shows all columns.
    """
    values = [place[-1] for place in at.values() if place]
    flat, folded = len(next(iter(at.values()))) < 2, False
    if flat:
        folded = bool(values) and max(values) - min(values) >= FOLD
        at = {n: divmod(p[0], FOLD) if folded else (0, *p, 0)[:2] for n, p in at.items()}
    rows, row_gaps = ticks(place[0] for place in at.values())
    columns, column_gaps = ticks(place[1] for place in at.values())
    if folded and fold_all:
        columns, column_gaps = list(range(FOLD)), frozenset()
    places = ({v: n for n, v in enumerate(rows)}, {v: n for n, v in enumerate(columns)})
    heads = ("",) if flat else map(str, rows)
    return Seated(
        {n: (places[0][place[0]], places[1][place[1]]) for n, place in at.items()},
        tuple(f"{row * FOLD} +" for row in rows) if folded else tuple(heads),
        tuple(map(str, columns)) if values else ("",),
        row_gaps,
        column_gaps,
    )


def boundary(cells: Iterable[Place]) -> tuple[set[Place], set[Place]]:
    """The edges around a set of cells: ``(row, column)`` of the cell below or right of each.

    First those that lie flat, above a cell, then those that stand, left of one.
    """
    inside = set(cells)
    flat: set[Place] = set()
    upright: set[Place] = set()
    for row, column in inside:
        for edges, at, beside in (
            (flat, (row, column), (row - 1, column)),
            (flat, (row + 1, column), (row + 1, column)),
            (upright, (row, column), (row, column - 1)),
            (upright, (row, column + 1), (row, column + 1)),
        ):
            if beside not in inside:
                edges.add(at)
    return flat, upright


def runs(numbers: Sequence[int]) -> str:
    """Numbers as a person writes them: ``0-3, 8``; ``0, 2, ..., 14`` of even steps."""
    values = sorted(set(numbers))
    steps = {b - a for a, b in pairwise(values)}
    if len(values) > 3 and len(steps) == 1 and steps != {1}:
        return f"{values[0]}, {values[1]}, ..., {values[-1]}"
    parts: list[list[int]] = []
    for value in values:
        if parts and value == parts[-1][-1] + 1:
            parts[-1].append(value)
        else:
            parts.append([value])
    shown = [str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts]
    return ", ".join(shown if len(shown) <= 8 else [*shown[:6], "...", shown[-1]])
