"""Pictures made of cells: their contents before drawing, and their rendering as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any

from loopkit._display.markup import visible
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


PAGE = 100
_LINES = " ╵╶└╷│┌├╴┘─┴┐┤┬┼"
"""Lines that meet, by where they come from: 1 above, 2 right, 4 below, 8 left."""


def as_text(figure: Figure) -> str:
    """The picture for a terminal: grids below each other, then legend and notes."""
    lines = [figure.title, *filter(None, [figure.subtitle])] if figure.has_words else []
    for grid in figure.grids:
        lines += [*([""] if lines else []), *_grid(grid)]
    # Neither colours nor arrows are seen here.
    keys = [(key.label or "□" * bool(key.stroke), key) for key in figure.legend if not key.arrow]
    legend = [f"{sign:>4}  {key.meaning}" for sign, key in keys if sign]
    lines += ["", *legend] if legend else []
    for at, note in enumerate(figure.notes if figure.has_words else ()):
        lines += [*([] if at else [""]), *textwrap.wrap(note, PAGE)]
    return visible("\n".join(line.rstrip() for line in lines))


def _grid(grid: Grid) -> Iterator[str]:
    if grid.title:
        yield grid.title
    wide = max([len(c.label) for c in grid.cells if c.span == 1] + [1])
    wide = max(wide, *(-(-(len(c.label) + 1) // c.span) - 1 for c in grid.cells), 1)
    above: set[Place] = set()
    below: set[Place] = set()
    upright: set[Place] = set()
    for outline in grid.outlines:
        flat, standing = boundary(outline.cells)
        above |= flat & outline.cells
        below |= flat - outline.cells
        upright |= standing
    walls = {column for _, column in upright}
    named = max([len(name) for name in grid.rows] + [len(grid.row_name) + 2])
    yield from _heads(grid, wide, named, walls)
    for row in range(len(grid.rows) + 1):
        is_gap = row in grid.row_gaps
        if is_gap and any(r == row for r, _ in below):
            standing = {(r, c) for r, c in upright if r < row}
            yield " " * named + " " + _rule(grid, row, wide, walls, below, standing)
        if is_gap:
            yield f"{'⋮':>{named}}"
        flat = above if is_gap else above | below
        if any(r == row for r, _ in flat):
            standing = {(r, c) for r, c in upright if r >= row} if is_gap else upright
            yield " " * named + " " + _rule(grid, row, wide, walls, flat, standing)
        if row < len(grid.rows):
            yield f"{grid.rows[row]:>{named}} {_row(grid, row, wide, walls, upright)}"
    if any(grid.column_feet):
        feet = "".join(
            _before(grid, at, walls, " ") + f"{name:>{wide}} "
            for at, name in enumerate(grid.column_feet)
        )
        yield " " * named + " " + feet


def _before(grid: Grid, column: int, walls: set[int], wall: str) -> str:
    """What stands before a column: a sign for columns left out, a place for a line."""
    return ("⋯ " if column in grid.column_gaps else "") + (wall if column in walls else "")


def _heads(grid: Grid, wide: int, named: int, walls: set[int]) -> Iterator[str]:
    if grid.column_name:
        yield " " * named + f"  {grid.column_name} →"
    step = 1
    while any(len(n) > (wide + 1) * step - 1 for n in grid.columns) and step < len(grid.columns):
        step *= 2
    text = ""
    place = 0
    for at, name in enumerate(grid.columns):
        place += len(_before(grid, at, walls, " "))
        if at % step == 0:
            text = text.ljust(place) + f"{name:>{wide}}" + " "
        place += wide + 1
    if any(grid.columns) or grid.row_name:
        mark = f"{grid.row_name} ↓" if grid.row_name else ""
        yield f"{mark:>{named}} {text}"


def _row(grid: Grid, row: int, wide: int, walls: set[int], upright: set[Place]) -> str:
    cells = {c.column: c for c in grid.cells if c.row <= row < c.row + c.down}
    text, column, count = "", 0, len(grid.columns)
    while column < count:
        wall = "│" if (row, column) in upright else " "
        text += _before(grid, column, walls, wall)
        cell = cells.get(column)
        if cell is None:
            text += " " * (wide + 1)
            column += 1
            continue
        room = (wide + 1) * cell.span - 1
        room += sum(
            len(_before(grid, c, walls, " ")) for c in range(column + 1, column + cell.span)
        )
        shown = cell.label or ("·" if not cell.fill else "─" if cell.span > 1 else "■")
        text += (shown.center(room, "─") if cell.span > 1 else f"{shown:>{room}}") + " "
        column += cell.span
    return text + ("│" if (row, count) in upright else "")


def _rule(
    grid: Grid,
    row: int,
    wide: int,
    walls: set[int],
    flat: set[Place],
    upright: set[Place],
) -> str:
    """The line above a row, with corners and crossings."""
    text = ""
    for column in range(len(grid.columns) + 1):
        if column in walls:
            joint = ((row - 1, column) in upright) + 4 * ((row, column) in upright)
            joint += 2 * ((row, column) in flat) + 8 * ((row, column - 1) in flat)
            text += _before(grid, column, walls, _LINES[joint])
        if column < len(grid.columns):
            text += ("─" if (row, column) in flat else " ") * (wide + 1)
    return text
