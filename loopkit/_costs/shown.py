"""How costs show themselves, be they those of one launch or of several."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from loopkit._cached import cached_property
from loopkit._costs.devices import Device, chosen

if TYPE_CHECKING:
    from loopkit._costs.roofline import Roofline
    from loopkit._costs.sequence_roofline import SequenceRoofline
    from loopkit._costs.text_table import Table
    from loopkit._kernel import Kernel
    from loopkit._pictures.roofline_plot import RooflinePicture


class ShownCosts:
    """What all costs show: their :meth:`parts` as text and HTML, their roofline as a picture.

    ``source`` is the kernel, ``asked`` the device that was asked for, or None.
    """

    if TYPE_CHECKING:
        kernel: str
        sizes: tuple[tuple[str, int], ...]
        source: Kernel
        asked: Device | None

        @property
        def roofline(self) -> Roofline | SequenceRoofline:
            """The time that all takes at least, and what sets it."""

        def parts(self) -> Iterator[Table | str]:
            """The tables, and the remarks between them."""

    @cached_property
    def device(self) -> Device:
        """The device asked for; else the GPU here; else an H100, and its ``note`` says so."""
        return chosen(self.asked)

    def plot_roofline(self, *, measured: float | None = None) -> RooflinePicture:
        """The roofline as a picture, with a time in seconds beside it where one was measured."""
        from loopkit._pictures.roofline_plot import roofline_picture

        return roofline_picture(self.source, self.sizes, self.roofline, measured)

    def __str__(self) -> str:
        from loopkit._costs.text_table import as_text

        return as_text(self.parts())

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        from loopkit._display.costs import costs_html
        from loopkit._display.markup import bundle

        return bundle(lambda: costs_html(self), lambda: str(self), include, exclude)
