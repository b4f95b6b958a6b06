"""The drawing primitives of all pictures: marks on a plane, in pixels, y downwards.

A mark's colours are names of :mod:`loopkit._display.style`: a role, a ground, or ``series-3``.
"""

from __future__ import annotations

from loopkit._frozen import dataclass

Point = tuple[float, float]

WIDE = 0.602
"""The width of a letter of a font whose letters are all as wide, in units of its size."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What all marks have.

    ``title`` says in words what the mark shows.  A mark with a ``frame`` is there from that
    step of the picture's time on, one that is for ``now`` at that step alone; others always.
    ``statement`` is the position of the statement that it belongs to.
    """

    title: str = ""
    frame: int | None = None
    now: bool = False
    statement: int | None = None


@dataclass(frozen=True)
class Box(Mark):
    """A rectangle with rounded corners; its ground shows through by what ``strength`` leaves."""

    x: float
    y: float
    width: float
    height: float
    fill: str = ""
    strength: float = 1.0
    stroke: str = ""
    thick: float = 1.0
    dash: str = ""
    rounded: float = 0.0


@dataclass(frozen=True)
class Stroke(Mark):
    """Separate lines through points, one per ``piece``; the last one may be an arrow.

    With ``fill`` the pieces are polygons.
    """

    pieces: tuple[tuple[Point, ...], ...]
    stroke: str = ""
    thick: float = 1.0
    dash: str = ""
    arrow: bool = False
    fill: str = ""
    strength: float = 1.0


@dataclass(frozen=True)
class Label(Mark):
    """One line of text, in the middle of its height at ``y``; all letters are as wide."""

    x: float
    y: float
    text: str
    size: float = 12.0
    anchor: str = "start"
    colour: str = "text"
    bold: bool = False

    @property
    def box(self) -> tuple[float, float, float, float]:
        """The least and the largest x and y of its letters."""
        width = len(self.text) * self.size * WIDE
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return left, self.y - self.size / 2, left + width, self.y + self.size / 2


@dataclass(frozen=True)
class Scene:
    """Marks, those in front last, and what they show in words.

    ``frames`` says for each step of the picture's time what happens then.
    """

    width: float
    height: float
    marks: tuple[Mark, ...]
    title: str
    description: str = ""
    frames: tuple[str, ...] = ()


def square(box: Box) -> tuple[Point, ...]:
    """The corners of a box, from the first to the first."""
    x, y, right, bottom = box.x, box.y, box.x + box.width, box.y + box.height
    return (x, y), (right, y), (right, bottom), (x, bottom), (x, y)


def arrow_head(line: Stroke) -> tuple[Point, ...]:
    """The triangle at the end of a line."""
    (ax, ay), (bx, by) = line.pieces[-1][-2:]
    size = 4 + 2 * line.thick
    length = max(((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5, 1e-9)
    ux, uy = (bx - ax) / length, (by - ay) / length
    back = bx - ux * size, by - uy * size
    side = -uy * size * 0.45, ux * size * 0.45
    return (bx, by), (back[0] + side[0], back[1] + side[1]), (back[0] - side[0], back[1] - side[1])
