"""Scenes on matplotlib's axes: for papers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from math import cos, pi, sin
from typing import TYPE_CHECKING, Any

from loopkit._errors import MissingDependencyError
from loopkit._pictures.scene import Box, Label, Point, Scene, Stroke, arrow_head
from loopkit._pictures.svg import colour_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(scene: Scene, ax: Axes | None = None, *, dark: bool = False) -> Axes:
    """Draw a scene on axes, or on those of a new figure of its size (96 pixels an inch).

    Text is scaled to the size that the axes have now, so that nothing overlaps in small figures:
    lay a figure out first.
    Raises :class:`~loopkit.MissingDependencyError` where matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path
    except ImportError:
        raise MissingDependencyError(
            "matplotlib is not installed", instead="pip install 'loopkit[notebook]'"
        ) from None
    if ax is None:
        figure = _figure(Figure, scene)
        ax = figure.add_axes((0, 0, 1, 1))
        figure.set_facecolor(colour_of("ground", dark))
    ax.set_xlim(0, scene.width)
    ax.set_ylim(scene.height, 0)
    ax.set_aspect("equal", adjustable="box")
    ax.axis("off")
    ax.apply_aspect()
    whole: Any = ax.get_figure(root=True)
    # Points of text and lines for a pixel of the scene.
    scale = ax.get_window_extent().width / scene.width * 72 / whole.dpi

    def looks(mark: Box | Stroke) -> dict[str, Any]:
        found: dict[str, Any] = {"facecolor": "none", "edgecolor": "none", "linewidth": 0}
        if mark.fill:
            found["facecolor"] = (colour_of(mark.fill, dark), mark.strength)
        if mark.stroke:
            found |= {"edgecolor": colour_of(mark.stroke, dark), "linewidth": mark.thick * scale}
        if mark.dash:
            ink = [float(part) / mark.thick for part in mark.dash.split()]
            found["linestyle"] = (0, ink)
        return found

    move, line = int(Path.MOVETO), int(Path.LINETO)
    front = [mark for mark in scene.marks if not mark.now]
    shapes = [mark for mark in front if isinstance(mark, (Box, Stroke))]
    at = 0
    for style, members in groupby(shapes, lambda mark: looks(mark)):
        corners: list[Point] = []
        codes: list[int] = []
        heads: list[Point] = []
        for piece in (p for mark in members for p in _pieces(mark, heads)):
            corners += piece
            codes += [move, *[line] * (len(piece) - 1)]
        at += 1
        ax.add_patch(PathPatch(Path(corners, codes), zorder=at, **style))
        if heads:
            codes = [move, line, line] * (len(heads) // 3)
            ax.add_patch(
                PathPatch(Path(heads, codes), zorder=at, lw=0, facecolor=style["edgecolor"])
            )
    for mark in front:
        if isinstance(mark, Label):
            ax.text(
                mark.x,
                mark.y,
                mark.text,
                fontsize=mark.size * scale,
                family="monospace",
                weight="bold" if mark.bold else "normal",
                ha={"start": "left", "middle": "center", "end": "right"}[mark.anchor],
                va="center",
                color=colour_of(mark.colour, dark),
                parse_math=False,
                zorder=at + 1,
            )
    return ax


def _pieces(mark: Box | Stroke, heads: list[Point]) -> Iterator[tuple[Point, ...]]:
    """The lines of a mark; the corners of the head of an arrow go to ``heads``."""
    if isinstance(mark, Stroke):
        yield from mark.pieces
        if mark.arrow:
            heads += arrow_head(mark.pieces[-1], 4 + 2 * mark.thick)
        return
    if 2 * mark.rounded >= mark.width:
        turns = [2 * pi * n / 24 for n in range(25)]
        x, y = mark.x + mark.rounded, mark.y + mark.rounded
        yield tuple((x + mark.rounded * cos(t), y + mark.rounded * sin(t)) for t in turns)
        return
    right, bottom = mark.x + mark.width, mark.y + mark.height
    corner = mark.x, mark.y
    yield corner, (right, mark.y), (right, bottom), (mark.x, bottom), corner


def _figure(make: Any, scene: Scene) -> Any:
    """A figure that a running notebook shows, and a plain one elsewhere."""
    size = (scene.width / 96, scene.height / 96)
    pyplot = sys.modules.get("matplotlib.pyplot")
    return pyplot.figure(figsize=size) if pyplot is not None else make(figsize=size)
