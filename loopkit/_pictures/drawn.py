"""Drawing of scenes: as SVG and HTML in the page's light or dark colours, or with matplotlib.

The slider for time needs no scripts: it is a row of radio buttons, and CSS rules show or hide the
marks by the button that is checked.  The keyboard operates such a group like a slider (arrow keys,
Home and End), and it works where notebooks remove scripts from outputs.  A form around each keeps
the sliders of a page independent.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, tostring

from loopkit._display.markup import element, svg_text
from loopkit._display.style import GROUND, ROLES, SERIES
from loopkit._errors import MissingDependencyError
from loopkit._pictures.scene import Box, Label, Mark, Point, Scene, Stroke, arrow_head, square
from loopkit._relations import grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SLIDER = Path(__file__).with_name("slider.css").read_text(encoding="utf-8").replace("\n", "")

LEAST = 0.75
"""How small a picture becomes, of its own size, before it scrolls."""

Colour = Callable[[str], str]
Attributes = tuple[tuple[str, str], ...]

FONT = "ui-monospace,SF Mono,Menlo,Consolas,DejaVu Sans Mono,monospace"


def colour_of(name: str, dark: bool = False) -> str:
    """The hex number of a colour that marks name."""
    if name.startswith("series-"):
        return SERIES[int(name[7:]) % len(SERIES)][dark]
    return (GROUND.get(name) or ROLES[name]).colour(dark)


def as_svg(scene: Scene, theme: str = "auto") -> str:
    """A file of its own; ``theme`` is ``light``, ``dark``, or what whoever looks at it prefers."""
    dark, is_auto = theme == "dark", theme == "auto"
    colour = _variable if is_auto else lambda name: colour_of(name, dark)
    made = _picture(scene, colour, frames=False)
    made.set("width", _number(scene.width))
    made.set("height", _number(scene.height))
    if is_auto:
        made.set("style", "border:0;padding:0;margin:0")
        return svg_text(made)
    behind = element("rect", width="100%", height="100%", fill=colour("ground"))
    made.insert(len(made.findall("title") + made.findall("desc")), behind)
    made.set("xmlns", "http://www.w3.org/2000/svg")
    return tostring(made, encoding="unicode")


def as_part(scene: Scene) -> Element:
    """An element of a page that has the sheet of all outputs: the picture, and its slider."""
    drawn = _picture(scene, _variable, frames=True)
    # Where there is less room it shrinks as far as its words can be read, then it scrolls.
    least = _number(round(LEAST * scene.width))
    width = f"width:{_number(scene.width)}px;min-width:{least}px;max-width:100%"
    drawn.set("style", f"{width};height:auto;display:block")
    if len(scene.frames) < 2:
        return drawn
    last = len(scene.frames) - 1
    ticks = [
        element("input", type="radio", name="t", title=said, aria_label=said, checked=at == last)
        for at, said in enumerate(scene.frames)
    ]
    sheet = Element("style")
    sheet.text = _slider_sheet(len(scene.frames))
    slider = element("div", ticks, class_="lk-ticks", role="radiogroup", aria_label="time")
    captions = element("div", [element("span", s) for s in scene.frames], class_="lk-now-is")
    return element("form", sheet, slider, captions, drawn, class_="lk-time")


def _slider_sheet(count: int) -> str:
    """What a chosen step of time hides and shows; the same rules for all pictures with a time."""
    rules = [_SLIDER.partition("*/")[2]]
    for at in range(1, count + 1):
        chosen = f".lk-time:has(.lk-ticks :nth-child({at}):checked) "
        rules.append(f"{chosen}.lk-frame:nth-child(n+{at + 1}){{display:none}}")
        rules.append(
            f"{chosen}.lk-now-is :nth-child({at}),{chosen}.lk-frame:nth-child({at}) .lk-now"
            "{display:inline}"
        )
    return "".join(rules)


def _picture(scene: Scene, colour: Colour, *, frames: bool) -> Element:
    made = element(
        "svg",
        element("title", scene.title),
        element("desc", scene.description) if scene.description else None,
        role="img",
        viewBox=f"0 0 {_number(scene.width)} {_number(scene.height)}",
        font_family=FONT,
        aria_label=scene.title,
    )
    marks = (mark for mark in scene.marks if frames or not mark.now)
    for is_timed, group in groupby(marks, lambda mark: mark.frame is not None):
        if is_timed and frames and scene.frames:
            timed = grouped((mark.frame, mark) for mark in group)
            shown = (_groups(timed.get(at, ()), colour) for at in range(len(scene.frames)))
            made.append(element("g", [element("g", one, class_="lk-frame") for one in shown]))
        else:
            made.extend(_groups(group, colour))
    return made


def _groups(marks: Iterable[Mark], colour: Colour) -> Iterator[Element]:
    """Marks as elements; what neighbours have in common is said once."""
    for (tag, shared), members in groupby(
        (_drawn(mark, colour) for mark in marks), lambda drawn: drawn[:2]
    ):
        elements = [made for _, _, made in members]
        alone = len(elements) == 1 and tag != "text"
        made = elements[0] if alone else element("g", elements)
        made.attrib.update(shared)
        yield made


def _drawn(mark: Mark, colour: Colour) -> tuple[str, Attributes, Element]:
    """What a mark is, what it may share with its neighbours, and an element with the rest."""
    shared: dict[str, object] = {"data-lk-s": mark.statement}
    if mark.now:
        shared["class"] = "lk-now"
    if isinstance(mark, Box):
        tag, rest = "rect", {"x": mark.x, "y": mark.y, "width": mark.width, "height": mark.height}
        shared["style"] = _style(mark, colour)
        made = element(tag, **{name: _number(value) for name, value in rest.items()})
        if mark.rounded:
            made.set("rx", _number(mark.rounded))
    elif isinstance(mark, Label):
        tag = "text"
        made = element(tag, mark.text, x=_number(mark.x), y=_number(mark.y))
        shared |= {
            "dominant-baseline": "central",
            "text-anchor": mark.anchor,
            "font-size": _number(mark.size),
            "font-weight": "650" if mark.bold else None,
            "style": f"fill:{colour(mark.colour)};white-space:pre;pointer-events:none",
        }
    else:
        assert isinstance(mark, Stroke)
        tag, made = "path", _lines(mark, colour)
        shared["style"] = _style(mark, colour)
    if mark.title:
        made.insert(0, element("title", mark.title))
    return tag, tuple((n, str(v)) for n, v in shared.items() if v is not None), made


def _lines(mark: Stroke, colour: Colour) -> Element:
    closed = "Z" if mark.fill else ""
    path = element("path", d=" ".join(_path(p) + closed for p in mark.pieces))
    if not mark.arrow:
        return path
    head = _path(arrow_head(mark)) + "Z"
    return element(
        "g", path, element("path", d=head, style=f"fill:{colour(mark.stroke)};stroke:none")
    )


def _style(mark: Box | Stroke, colour: Colour) -> str:
    parts = [f"fill:{colour(mark.fill) if mark.fill else 'none'}"]
    if mark.fill and mark.strength != 1:
        parts.append(f"fill-opacity:{_number(mark.strength)}")
    if mark.stroke:
        parts += [f"stroke:{colour(mark.stroke)}", f"stroke-width:{_number(mark.thick)}"]
    if mark.dash:
        parts.append(f"stroke-dasharray:{mark.dash}")
    return ";".join(parts)


def _path(points: tuple[Point, ...]) -> str:
    return "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in points)


def _variable(name: str) -> str:
    return f"var(--lk-{name})"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


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
