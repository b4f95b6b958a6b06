"""The layout of pictures made of cells: from figures to scenes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain, pairwise

from loopkit._frozen import dataclass
from loopkit._pictures.grid import Arrow, Cell, Figure, Grid, Key, Outline, Place, boundary
from loopkit._pictures.scene import WIDE, Box, Label, Mark, Point, Scene, Stroke, square
from loopkit._relations import grouped

PAGE = 940.0
"""The width that pictures keep to where they can."""

WORDS = 460.0
"""The width that words keep to, whatever the grids have: drawn smaller, it fits a telephone."""

SMALL, TEXT, HEAD = 10.0, 12.0, 14.0
GAP = 18.0
ROW_GAP = 12.0
MARGIN = 12.0
LINE = 17.0
_HEIGHTS = ((24, 26.0), (40, 21.0), (64, 14.0), (128, 9.0))


@dataclass(frozen=True)
class Panel:
    """A grid with the sizes of its cells and the places of its rows and columns.

    ``x`` and ``y`` are those of the whole picture once the panel is :meth:`placed_at` a corner.
    """

    grid: Grid
    wide: float
    high: float
    left: float
    top: float
    x: tuple[float, ...]
    y: tuple[float, ...]
    font: float
    aside: float

    @property
    def width(self) -> float:
        """The width with the names of rows and all of the title."""
        title = len(self.grid.title) * TEXT * WIDE
        above = self.left + (len(self.grid.column_name) + 2) * (SMALL + 1) * WIDE
        return max(self.left + self.x[-1], title, above) + 2 * MARGIN

    @property
    def height(self) -> float:
        """The height with names and feet."""
        feet = LINE if self.grid.column_feet else 0.0
        return self.top + self.y[-1] + feet + MARGIN

    def placed_at(self, left: float, top: float) -> Panel:
        """The panel at the place of its corner."""
        x, y = left + self.left, top + self.top
        return replace(self, x=tuple(x + at for at in self.x), y=tuple(y + at for at in self.y))


Draw = Callable[[float], tuple[Sequence[Mark], float]]
"""What is drawn from a height on, and where it ends."""


def scene_of(figure: Figure, draw: Draw = lambda y: ((), y)) -> Scene:
    """A figure as marks: its title, its grids in rows, what else is drawn, legend and notes."""
    panels = [_panel(grid) for grid in figure.grids]
    head = list(_head(figure)) if figure.has_words else []
    behind: list[Mark] = [*head]
    x, y, high = 0.0, head[-1].y + LINE if head else MARGIN, 0.0
    widest = max((label.box[2] for label in head), default=0.0) + MARGIN
    timed: list[Mark] = []
    front: list[Mark] = []
    for panel in panels:
        if x and x + panel.width > PAGE:
            x, y, high = 0.0, y + high + MARGIN / 2, 0.0
        for layer, mark in _drawn(panel.placed_at(x + MARGIN, y), bool(figure.frames)):
            (behind, timed, front)[layer].append(mark)
        x, high = x + panel.width, max(high, panel.height)
        widest = max(widest, x)
    y += high + (MARGIN / 2 if panels else 0)
    more, y = draw(y)
    front += more
    for mark in _legend(figure.legend, y):
        front.append(mark)
        y = max(y, mark.y + LINE / 2 if isinstance(mark, Label) else y)
    y += 4
    for note in figure.notes if figure.has_words else ():
        for number, line in enumerate(_wrapped(note, SMALL + 1, MARGIN)):
            y += LINE - 2
            x = MARGIN * (1 + (number > 0))
            front.append(Label(x, y, line, SMALL + 1, colour="comment"))
    widest = max([widest, *(m.box[2] + MARGIN for m in front if isinstance(m, Label))])
    widest = max([widest, *(m.x + m.width + MARGIN for m in more if isinstance(m, Box))])
    return Scene(
        round(widest, 2),
        round(y + MARGIN + LINE / 2, 2),
        (*behind, *timed, *front),
        figure.title,
        figure.description or " ".join(figure.notes),
        figure.frames,
    )


def _head(figure: Figure) -> Iterator[Label]:
    """The title, and what stands below it."""
    y = MARGIN + 8
    for line in _wrapped(figure.title, HEAD):
        yield Label(MARGIN, y, line, HEAD, bold=True)
        y += LINE + 2
    for line in _wrapped(figure.subtitle, TEXT) if figure.subtitle else ():
        yield Label(MARGIN, y - 2, line, colour="comment")
        y += LINE


def _wrapped(text: str, size: float, indent: float = 0.0) -> list[str]:
    """The lines of words of a size, in which ``n = 4`` stays whole; all but the first indented."""
    width = int((WORDS - 2 * MARGIN - indent) / (size * WIDE))
    lines = textwrap.wrap(text.replace(" = ", "\xa0=\xa0"), width)
    return [line.replace("\xa0=\xa0", " = ") for line in lines] or [""]


def _panel(grid: Grid) -> Panel:
    count = max(len(grid.columns), 1)
    high = next((size for most, size in _HEIGHTS if max(count, len(grid.rows)) <= most), 6.0)
    letters = max((len(c.label) / c.span for c in grid.cells), default=0)
    if grid.arrows and high > 12:
        high = max(min(high + 6, 30.0), grid.size)
    font = min(SMALL, high * 0.4) if grid.arrows else min(SMALL + 1, high * 0.6)
    wide = max(high, letters * font * WIDE + 6)
    if font < 6 or wide * count > PAGE - 60:
        wide = high
        if font < 6 or letters * font * WIDE > wide - 2:
            font = 0.0
    named = max((len(name) for name in grid.rows), default=0)
    beside = max(named * SMALL, (len(grid.row_name) + 2) * (SMALL + 1) if grid.row_name else 0)
    left = beside * WIDE + 8
    heads = LINE if any(grid.columns) else 4.0
    top = (LINE if grid.title else 0) + (LINE if grid.column_name else 0) + heads
    x = _places(len(grid.columns), wide, GAP, grid.column_gaps)
    y = _places(len(grid.rows), high, ROW_GAP, grid.row_gaps)
    return Panel(grid, wide, high, left, top, x, y, font, _aside(grid) if font else 0.0)


def _places(count: int, size: float, gap: float, gaps: frozenset[int]) -> tuple[float, ...]:
    """Where each row or column begins, and where the last one ends."""
    steps = [size + (gap if n + 1 in gaps else 0.0) for n in range(count)]
    return tuple(accumulate(steps, initial=0.0))


def _drawn(panel: Panel, moves: bool) -> Iterator[tuple[int, Mark]]:
    """The marks of a panel with their layers: 1 is that of time."""
    grid = panel.grid
    for mark in _names(panel):
        yield 0, mark
    for cell in grid.cells:
        yield 1, _box(panel, cell)
    for arrow in grid.arrows:
        yield 1, _arrow(panel, arrow)
    for cell in grid.cells:
        fits = len(cell.label) * panel.font * WIDE <= panel.wide * cell.span
        if cell.label and panel.font and fits:
            yield 1, _label(panel, cell)
    timed = ((cell.frame, square(_box(panel, cell))) for cell in grid.cells if moves)
    steps = grouped((frame, square) for frame, square in timed if frame is not None)
    if steps:
        # Grey frames for later cells, and coloured ones for new cells.
        yield 0, Stroke(tuple(chain.from_iterable(steps.values())), "line")
    for frame, squares in steps.items():
        yield 1, Stroke(tuple(squares), "series-1", 2, frame=frame, now=True)
    for outline in grid.outlines:
        yield 2, _outline(panel, outline)


def _box(panel: Panel, cell: Cell) -> Box:
    last = min(cell.column + cell.span, len(panel.x) - 1)
    width = panel.x[last] - panel.x[cell.column] - (GAP if last in panel.grid.column_gaps else 0)
    tight = 0.5 if panel.high < 12 else 1.0
    return Box(
        panel.x[cell.column] + tight,
        panel.y[cell.row] + tight,
        width - 2 * tight,
        panel.y[cell.row + cell.down - 1] - panel.y[cell.row] + panel.high - 2 * tight,
        cell.fill,
        cell.strength,
        cell.stroke or ("line" if not cell.fill else ""),
        rounded=0 if panel.high < 12 else 2,
        title=cell.title,
        frame=cell.frame,
        statement=cell.statement,
    )


def _label(panel: Panel, cell: Cell) -> Label:
    x, y = panel.x[cell.column], panel.y[cell.row]
    if panel.grid.arrows:
        # Arrows go through the middle.
        x, y, anchor = x + 4, y + panel.font / 2 + 2, "start"
    else:
        x, y, anchor = x + panel.wide * cell.span / 2, y + panel.high * cell.down / 2, "middle"
    return Label(x, y, cell.label, panel.font, anchor, frame=cell.frame)


def _centre(panel: Panel, place: Place) -> Point:
    """Where arrows go through a cell: beside its label."""
    row, column = place
    aside = 0.5 + panel.aside
    return panel.x[column] + panel.wide * aside, panel.y[row] + panel.high * aside


def _aside(grid: Grid) -> float:
    """How far beside the middle of cells arrows go: away from labels, which stand at the left.

    On their way along a diagonal, arrows pass the corner of the label in the cell beside, and
    only in the middle they do not touch it.
    """
    steps = (step for arrow in grid.arrows for step in pairwise(arrow.through))
    return 0.05 if any(a[0] - b[0] == b[1] - a[1] != 0 for a, b in steps) else 0.2


def _arrow(panel: Panel, arrow: Arrow) -> Stroke:
    points = tuple(_centre(panel, place) for place in arrow.through)
    thick = arrow.thick * (0.6 if panel.high < 12 else 1)
    looks = arrow.stroke, thick, arrow.dash, arrow.head
    return Stroke((points,), *looks, title=arrow.title, frame=arrow.frame)


def _outline(panel: Panel, outline: Outline) -> Stroke:
    flat, upright = boundary(outline.cells)
    pieces = []
    for row, column in sorted(flat):
        begins = (row, column) in outline.cells
        edge = panel.y[row] - (ROW_GAP if row in panel.grid.row_gaps and not begins else 0)
        a = panel.x[column]
        pieces.append(((a, edge), (a + panel.wide, edge)))
    for column, row in sorted((column, row) for row, column in upright):
        begins = (row, column) in outline.cells
        edge = panel.x[column] - (GAP if column in panel.grid.column_gaps and not begins else 0)
        a = panel.y[row]
        pieces.append(((edge, a), (edge, a + panel.high)))
    thick = outline.thick * (0.6 if panel.high < 12 else 1)
    lines = tuple(_joined(pieces))
    return Stroke(lines, outline.stroke, thick, outline.dash, title=outline.title)


def _joined(pieces: list[tuple[Point, Point]]) -> Iterator[tuple[Point, Point]]:
    """Lines that continue each other as one."""
    begin, end = pieces[0] if pieces else ((0.0, 0.0), (0.0, 0.0))
    for a, b in pieces[1:]:
        straight = (begin[0] == end[0] == b[0]) or (begin[1] == end[1] == b[1])
        if a == end and straight:
            end = b
        else:
            yield begin, end
            begin, end = a, b
    if pieces:
        yield begin, end


def _names(panel: Panel) -> Iterator[Label]:
    """The title, the names of both axes and those of rows and columns, as many as there is room."""
    grid, left, top, bottom = panel.grid, panel.x[0], panel.y[0], panel.y[-1]
    if grid.title:
        yield Label(left - panel.left, top - panel.top + 6, grid.title)
    head = top - (LINE if any(grid.columns) else 4) / 2
    if grid.column_name:
        yield Label(left, head - LINE, f"{grid.column_name} →", SMALL + 1, colour="comment")
    if grid.row_name:
        yield Label(left - 6, head, f"{grid.row_name} ↓", SMALL + 1, "end", "comment")
    for names, y, margin, colour in (
        (grid.columns, head, 6, "comment"),
        (grid.column_feet, bottom + LINE / 2, 4, "text"),
    ):
        needed = max((len(name) for name in names), default=0) * SMALL * WIDE + margin
        for name, at in _spaced(names, panel.wide, needed, grid.column_gaps):
            yield Label(panel.x[at] + panel.wide / 2, y, name, SMALL, "middle", colour)
    for name, at in _spaced(grid.rows, panel.high, SMALL + 2, grid.row_gaps):
        yield Label(left - 6, panel.y[at] + panel.high / 2, name, SMALL, "end", "comment")
    for gap in sorted(grid.column_gaps):
        middle = top + (bottom - top) / 2
        yield Label(panel.x[gap] - GAP / 2, middle, "⋯", TEXT, "middle", "comment")
    for gap in sorted(grid.row_gaps):
        yield Label(left - 10, panel.y[gap] - ROW_GAP / 2, "⋮", TEXT, "end", "comment")


def _spaced(
    names: Sequence[str], size: float, needed: float, gaps: frozenset[int]
) -> Iterator[tuple[str, int]]:
    """As many names as there is room for, evenly spaced, with their places."""
    step = next((s for s in (1, 2, 4, 8, 16, 32, 64) if s * size >= needed), 128)
    if gaps and step > 1:
        begins = [0, *sorted(gaps), len(names)]
        for first, last in pairwise(begins):
            if (last - first) * size + GAP >= needed:
                yield names[first], first
        return
    for at in range(0, len(names), step):
        if names[at]:
            yield names[at], at


def _legend(keys: Sequence[Key], y: float) -> Iterator[Mark]:
    x, y = MARGIN, y + LINE / 2
    for key in keys:
        words = key.meaning
        width = 26 + len(words) * (SMALL + 1) * WIDE + 16
        if x > MARGIN and x + width > WORDS:
            x, y = MARGIN, y + LINE
        if key.arrow:
            yield Stroke((((x, y), (x + 18, y)),), key.stroke, 1.5, key.dash, key.head)
        else:
            looks = key.fill, key.strength, key.stroke or "line", 2 if key.stroke else 1, key.dash
            yield Box(x + 1, y - 6, 16, 12, *looks, rounded=2)
            if key.label:
                size = min(SMALL - 1, 15 / (len(key.label) * WIDE))
                yield Label(x + 9, y, key.label, size, "middle")
        yield Label(x + 24, y, words, SMALL + 1)
        x += width
