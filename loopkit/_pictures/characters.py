"""Pictures made of cells as text: the same cells, outlines and legend, in characters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from loopkit._display.markup import visible
from loopkit._pictures.grid import Figure, Grid, Place, boundary

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
