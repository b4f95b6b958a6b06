"""The interface of all pictures: display, saving, and drawing with matplotlib."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

from loopkit._display.markup import html_text, output
from loopkit._errors import InvalidArgumentError
from loopkit._files import place_for
from loopkit._kernel import Kernel
from loopkit._pictures.drawn import as_part, as_svg
from loopkit._pictures.grid import Figure, Grid, Key, as_text
from loopkit._pictures.layout import scene_of
from loopkit._pictures.scene import Scene
from loopkit._printed import Printed
from loopkit._spelling import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THEMES = ("auto", "light", "dark")


class Picture(Printed):
    """A picture: its data are its fields, and these are ways to look at them.

    In a notebook it shows itself; ``print`` draws it in characters.
    """

    kernel: Kernel

    def figure(self) -> Figure:
        """What is drawn: grids of cells, a legend and remarks."""
        raise NotImplementedError

    def _figure(
        self, title: str, facts: Iterable[tuple[str, object]], grids: Iterable[Grid], **more: Any
    ) -> Figure:
        """A figure of grids, with the values of some names below its title."""
        said = ", ".join(f"{name} = {value}" for name, value in facts)
        made = Figure(title=title, subtitle=said, grids=tuple(grids), **more)
        return replace(made, legend=tuple(self._legend(made)), notes=tuple(self._notes()))

    def _legend(self, figure: Figure) -> Iterable[Key]:
        """What the looks of cells, outlines and arrows mean."""
        return ()

    def _notes(self) -> Iterable[str]:
        """Remarks below the picture."""
        return ()

    def scene(self) -> Scene:
        """The marks that are drawn."""
        return scene_of(self.figure())

    def __str__(self) -> str:
        return as_text(self.figure())

    def svg(self, theme: str = "auto") -> str:
        """A file of its own, of scalable graphics.

        *theme* is ``"light"``, ``"dark"``, or ``"auto"``: what the reader's system is set to.
        The first two hold plain colours, which every program reads.
        """
        if theme not in THEMES:
            raise InvalidArgumentError(
                f"there is no theme {theme!r}", instead=f"there are {', '.join(THEMES)}"
            )
        return as_svg(self.scene(), theme)

    def html(self) -> str:
        """An element for a page, with a slider where the picture has a time."""
        return html_text(self.output())

    def element(self) -> Element:
        """An element for a page that has a style sheet of loopkit's already."""
        return as_part(self.scene())

    def output(self) -> Element:
        """The element that a notebook shows: statements light up in all that shows the kernel."""
        return output(self.element(), kernel=self.kernel)

    def plot(self, ax: Axes | None = None, *, dark: bool = False) -> Axes:
        """Draw it with matplotlib, on *ax* or in a new figure; returns the axes.

        Raises :class:`~loopkit.MissingDependencyError` where matplotlib is not installed.
        """
        from loopkit._pictures.drawn import draw

        if ax is not None and not hasattr(ax, "set_xlim"):
            raise InvalidArgumentError(
                f"ax is matplotlib's, not {shown(ax)}", instead="matplotlib.pyplot.subplots()[1]"
            )
        return draw(self.scene(), ax, dark=dark)

    def save(self, path: str | Path, theme: str = "auto") -> None:
        """Write a file: ``.svg`` or ``.html``, or what matplotlib writes, ``.pdf`` and ``.png``."""
        path = place_for(path, "the picture")
        if path.suffix == ".svg":
            path.write_text(self.svg(theme), encoding="utf-8")
        elif path.suffix == ".html":
            page = f'<!doctype html><meta charset="utf-8"><title></title>{self.html()}'
            path.write_text(page, encoding="utf-8")
        else:
            axes = self.plot(dark=theme == "dark")
            figure: Any = axes.get_figure(root=True)
            kinds = figure.canvas.get_supported_filetypes()
            if path.suffix[1:] not in kinds:
                raise InvalidArgumentError(
                    f"matplotlib writes no file that ends in '{path.suffix}'",
                    instead=f"there are .html, {', '.join(f'.{kind}' for kind in sorted(kinds))}",
                )
            figure.savefig(path)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _html(self) -> Element:
        return self.output()
