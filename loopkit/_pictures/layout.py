"""Where everything of a picture made of cells stands: figures become scenes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from loopkit._frozen import dataclass
from loopkit._pictures.grid import Arrow, Cell, Figure, Grid, Key, Outline, Place, boundary
from loopkit._pictures.scene import WIDE, Box, Label, Mark, Point, Scene, Stroke

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
    """A grid with the sizes of its cells and the places of its rows and columns."""

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


def scene_of(figure: Figure) -> Scene:
    """A figure as marks: its title, its grids in rows, the legend and the notes."""
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
        for layer, mark in _drawn(panel, x + MARGIN, y, bool(figure.frames)):
            (behind, timed, front)[layer].append(mark)
        x, high = x + panel.width, max(high, panel.height)
        widest = max(widest, x)
    y += high + (MARGIN / 2 if panels else 0)
    for mark in _legend(figure.legend, y):
        front.append(mark)
        y = max(y, mark.y + LINE / 2 if isinstance(mark, Label) else y)
    y += 4
    for note in figure.notes if figure.has_words else ():
        for number, line in enumerate(_wrapped(note, SMALL + 1, MARGIN)):
            y += LINE - 2
            x = MARGIN * (1 + (number > 0))
            front.append(Label(x=x, y=y, text=line, size=SMALL + 1, colour="comment"))
    widest = max([widest, *(m.box[2] + MARGIN for m in front if isinstance(m, Label))])
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
        yield Label(x=MARGIN, y=y, text=line, size=HEAD, bold=True)
        y += LINE + 2
    for line in _wrapped(figure.subtitle, TEXT) if figure.subtitle else ():
        yield Label(x=MARGIN, y=y - 2, text=line, colour="comment")
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


def _drawn(panel: Panel, x: float, y: float, moves: bool) -> Iterator[tuple[int, Mark]]:
    """The marks of a panel whose corner is at ``x, y``, with their layers: 1 is that of time."""
    grid = panel.grid
    left, top = x + panel.left, y + panel.top
    for mark in _names(panel, left, top, x, y):
        yield 0, mark
    for cell in grid.cells:
        yield 1, _box(panel, cell, left, top)
    for arrow in grid.arrows:
        yield 1, _arrow(panel, arrow, left, top)
    for cell in grid.cells:
        fits = len(cell.label) * panel.font * WIDE <= panel.wide * cell.span
        if cell.label and panel.font and fits:
            yield 1, _label(panel, cell, left, top)
    steps: dict[int, list[Box]] = {}
    for cell in grid.cells if moves else ():
        if cell.frame is not None:
            steps.setdefault(cell.frame, []).append(_box(panel, cell, left, top))
    if steps:
        # Where something will be, and what is new.
        places = tuple(_square(box) for boxes in steps.values() for box in boxes)
        yield 0, Stroke(pieces=places, stroke="line")
    for frame, boxes in steps.items():
        squares = tuple(_square(box) for box in boxes)
        yield 1, Stroke(pieces=squares, stroke="series-1", thick=2, frame=frame, now=True)
    for outline in grid.outlines:
        yield 2, _outline(panel, outline, left, top)


def _box(panel: Panel, cell: Cell, left: float, top: float) -> Box:
    last = min(cell.column + cell.span, len(panel.x) - 1)
    width = panel.x[last] - panel.x[cell.column] - (GAP if last in panel.grid.column_gaps else 0)
    tight = 0.5 if panel.high < 12 else 1.0
    return Box(
        x=left + panel.x[cell.column] + tight,
        y=top + panel.y[cell.row] + tight,
        width=width - 2 * tight,
        height=panel.y[cell.row + cell.down - 1] - panel.y[cell.row] + panel.high - 2 * tight,
        fill=cell.fill,
        strength=cell.strength,
        stroke=cell.stroke or ("line" if not cell.fill else ""),
        rounded=0 if panel.high < 12 else 2,
        title=cell.title,
        frame=cell.frame,
        statement=cell.statement,
    )


def _square(box: Box) -> tuple[Point, ...]:
    x, y, right, bottom = box.x, box.y, box.x + box.width, box.y + box.height
    return (x, y), (right, y), (right, bottom), (x, bottom), (x, y)


def _label(panel: Panel, cell: Cell, left: float, top: float) -> Label:
    x, y = left + panel.x[cell.column], top + panel.y[cell.row]
    if panel.grid.arrows:
        # Arrows go through the middle.
        x, y, anchor = x + 4, y + panel.font / 2 + 2, "start"
    else:
        x, y, anchor = x + panel.wide * cell.span / 2, y + panel.high * cell.down / 2, "middle"
    return Label(
        x=x, y=y, text=cell.label, size=panel.font, anchor=anchor, frame=cell.frame,
    )  # fmt: skip


def _centre(panel: Panel, place: Place, left: float, top: float) -> Point:
    """Where arrows go through a cell: beside its label."""
    row, column = place
    return (
        left + panel.x[column] + panel.wide * (0.5 + panel.aside),
        top + panel.y[row] + panel.high * (0.5 + panel.aside),
    )


def _aside(grid: Grid) -> float:
    """How far beside the middle of cells arrows go: away from labels, which stand at the left.

    On their way along a diagonal, arrows pass the corner of the label in the cell beside, and
    only in the middle they do not touch it.
    """
    steps = (step for arrow in grid.arrows for step in pairwise(arrow.through))
    return 0.05 if any(a[0] - b[0] == b[1] - a[1] != 0 for a, b in steps) else 0.2


def _arrow(panel: Panel, arrow: Arrow, left: float, top: float) -> Stroke:
    points = tuple(_centre(panel, place, left, top) for place in arrow.through)
    thick = arrow.thick * (0.6 if panel.high < 12 else 1)
    return Stroke(
        pieces=(points,), stroke=arrow.stroke, thick=thick, dash=arrow.dash, arrow=arrow.head,
        title=arrow.title, frame=arrow.frame,
    )  # fmt: skip


def _outline(panel: Panel, outline: Outline, left: float, top: float) -> Stroke:
    flat, upright = boundary(outline.cells)
    pieces = []
    for row, column in sorted(flat):
        begins = (row, column) in outline.cells
        edge = panel.y[row] - (ROW_GAP if row in panel.grid.row_gaps and not begins else 0)
        a, b = left + panel.x[column], left + panel.x[column] + panel.wide
        pieces.append(((a, top + edge), (b, top + edge)))
    for column, row in sorted((column, row) for row, column in upright):
        begins = (row, column) in outline.cells
        edge = panel.x[column] - (GAP if column in panel.grid.column_gaps and not begins else 0)
        a, b = top + panel.y[row], top + panel.y[row] + panel.high
        pieces.append(((left + edge, a), (left + edge, b)))
    thick = outline.thick * (0.6 if panel.high < 12 else 1)
    return Stroke(
        pieces=tuple(_joined(pieces)), stroke=outline.stroke, thick=thick, dash=outline.dash,
        title=outline.title,
    )  # fmt: skip


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


def _names(panel: Panel, left: float, top: float, x: float, y: float) -> Iterator[Label]:
    """The title, the names of both axes and those of rows and columns, as many as there is room."""
    grid = panel.grid
    if grid.title:
        yield Label(x=x, y=y + 6, text=grid.title, size=TEXT, colour="text")
    head = top - (LINE if any(grid.columns) else 4) / 2
    if grid.column_name:
        yield Label(
            x=left, y=head - LINE, text=f"{grid.column_name} →", size=SMALL + 1, colour="comment"
        )
    if grid.row_name:
        yield Label(
            x=left - 6, y=head, text=f"{grid.row_name} ↓", size=SMALL + 1, anchor="end",
            colour="comment",
        )  # fmt: skip
    longest = max((len(name) for name in grid.columns), default=0) * SMALL * WIDE + 6
    for name, at in _spaced(grid.columns, panel.wide, longest, grid.column_gaps):
        middle = left + panel.x[at] + panel.wide / 2
        yield Label(x=middle, y=head, text=name, size=SMALL, anchor="middle", colour="comment")
    for name, at in _spaced(grid.rows, panel.high, SMALL + 2, grid.row_gaps):
        middle = top + panel.y[at] + panel.high / 2
        yield Label(x=left - 6, y=middle, text=name, size=SMALL, anchor="end", colour="comment")
    feet = max((len(name) for name in grid.column_feet), default=0) * SMALL * WIDE + 4
    for name, at in _spaced(grid.column_feet, panel.wide, feet, grid.column_gaps):
        middle = left + panel.x[at] + panel.wide / 2
        yield Label(
            x=middle, y=top + panel.y[-1] + LINE / 2, text=name, size=SMALL, anchor="middle",
        )  # fmt: skip
    for gap in sorted(grid.column_gaps):
        yield Label(
            x=left + panel.x[gap] - GAP / 2, y=top + panel.y[-1] / 2, text="⋯", size=TEXT,
            anchor="middle", colour="comment",
        )  # fmt: skip
    for gap in sorted(grid.row_gaps):
        yield Label(
            x=left - 10, y=top + panel.y[gap] - ROW_GAP / 2, text="⋮", size=TEXT,
            anchor="end", colour="comment",
        )  # fmt: skip


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
            yield Stroke(
                pieces=(((x, y), (x + 18, y)),),
                stroke=key.stroke,
                thick=1.5,
                dash=key.dash,
                arrow=key.head,
            )
        else:
            yield Box(
                x=x + 1, y=y - 6, width=16, height=12, fill=key.fill, strength=key.strength,
                stroke=key.stroke or "line", thick=2 if key.stroke else 1, dash=key.dash, rounded=2,
            )  # fmt: skip
            if key.label:
                size = min(SMALL - 1, 15 / (len(key.label) * WIDE))
                yield Label(x=x + 9, y=y, text=key.label, size=size, anchor="middle")
        yield Label(x=x + 24, y=y, text=words, size=SMALL + 1)
        x += width
