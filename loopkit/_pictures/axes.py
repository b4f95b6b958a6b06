"""Scenes on matplotlib's axes: for papers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from loopkit._errors import MissingDependencyError
from loopkit._pictures.scene import Box, Label, Scene, Stroke, arrow_head, square
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
        from matplotlib.collections import PathCollection
        from matplotlib.figure import Figure
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

    shapes: list[tuple[Any, ...]] = []
    for mark in (m for m in scene.marks if not m.now):
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
                zorder=2,
            )
            continue
        assert isinstance(mark, (Box, Stroke))
        line = colour_of(mark.stroke, dark) if mark.stroke else "none"
        fill = (colour_of(mark.fill, dark), mark.strength) if mark.fill else "none"
        dash = (0, [float(part) / mark.thick for part in mark.dash.split()])
        looks = (fill, line, mark.thick * scale, dash if mark.dash else "solid")
        if isinstance(mark, Box) and 2 * mark.rounded >= mark.width:
            centre = mark.x + mark.rounded, mark.y + mark.rounded
            shapes.append((Path.circle(centre, mark.rounded), *looks))
            continue
        pieces = (square(mark),) if isinstance(mark, Box) else mark.pieces
        shapes.append((Path.make_compound_path(*map(Path, pieces)), *looks))
        if isinstance(mark, Stroke) and mark.arrow:
            head = Path.make_compound_path(Path(arrow_head(mark)))
            shapes.append((head, line, "none", 0.0, "solid"))
    if shapes:
        paths, *drawn = map(list, zip(*shapes, strict=True))
        names = ("facecolors", "edgecolors", "linewidths", "linestyles")
        ax.add_collection(PathCollection(paths, **dict(zip(names, drawn, strict=True)), zorder=1))
    return ax


def _figure(make: Any, scene: Scene) -> Any:
    """A figure that a running notebook shows, and a plain one elsewhere."""
    size = (scene.width / 96, scene.height / 96)
    pyplot = sys.modules.get("matplotlib.pyplot")
    return pyplot.figure(figsize=size) if pyplot is not None else make(figsize=size)
