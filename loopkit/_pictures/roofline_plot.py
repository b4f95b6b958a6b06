"""The roofline plot of a launch: its attainable speed by arithmetic intensity.

The plane is that of Williams, Waterman and Patterson, Roofline: an insightful visual performance
model, 2009: operations a second over operations a byte, on logarithmic axes.  A term of the
roofline that takes ``t`` seconds for all ``n`` operations of the launch limits its speed to
``n / t``; for the memory term this is proportional to the operations a byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from loopkit._costs.roofline import SequenceRoofline
from loopkit._costs.texts import rate_text, seconds_text
from loopkit._display.markup import visible
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._pictures.grid import Figure
from loopkit._pictures.layout import MARGIN, scene_of
from loopkit._pictures.picture import Picture
from loopkit._pictures.scene import WIDE, Box, Label, Mark, Point, Scene, Stroke

if TYPE_CHECKING:
    from loopkit._costs.roofline import Roofline

LINE = 20.0
WIDTH, HEIGHT = 380.0, 240.0
BAR = 240.0
_PREFIXES = ("", " k", " M", " G", " T", " P")


@dataclass(frozen=True)
class RooflinePicture(Picture):
    """A launch under its roofline, or several one after the other; see ``knl.plot_roofline``."""

    kernel: Kernel
    sizes: tuple[tuple[str, int], ...]
    roofline: Roofline

    @property
    def title(self) -> str:
        """What is shown, in one line."""
        return f"{self.kernel.name}: the roofline on {self.roofline.device.name}"

    @property
    def roofs(self) -> tuple[tuple[str, float], ...]:
        """Terms that bound the speed, but memory, each with operations a second at most.

        None of several launches, which have a roof each.
        """
        if isinstance(self.roofline, SequenceRoofline):
            return ()
        known = [t for t in self.roofline.terms if t.is_floor and t.name != "memory"]
        return tuple((t.name, self.roofline.operations / t.seconds) for t in known if t.seconds)

    @property
    def speed(self) -> float:
        """Operations a second under the roof."""
        return self.roofline.operations / self.roofline.seconds

    def _colours(self) -> Mapping[str, str]:
        return {term.name: f"series-{n}" for n, term in enumerate(self.roofline.ordered)}

    def _notes(self) -> Iterator[str]:
        roofline = self.roofline
        yield f"At least {seconds_text(roofline.seconds)}, set by {roofline.set_by}."
        if roofline.measured is not None:
            share = f"{roofline.share:.1%} of the roofline"
            yield f"Measured: {seconds_text(roofline.measured)}, {share}."
        yield from (f"{remark}." for remark in roofline.remarks)

    def __str__(self) -> str:
        terms = self.roofline.ordered
        longest = max(term.seconds for term in terms) or 1.0
        wide = max(len(term.label) for term in terms)
        lines = [self.title, *filter(None, [self._subtitle()]), ""]
        for term in terms:
            length = term.seconds / longest * 40
            bar = "█" * int(length) + ("▌" if length % 1 >= 0.5 else "")
            said = f"{seconds_text(term.seconds):>10}  {term.work}"
            lines.append(f"{term.label:<{wide}} {bar:<40} {said}")
        if self.roofline.intensity is not None:
            lines += ["", f"{self.roofline.intensity:.4g} operations a byte"]
        return visible("\n".join([*lines, *self._notes()]))

    def _subtitle(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in self.sizes)

    def scene(self) -> Scene:
        """The plane with its roofs and the launch, and the terms as bars."""
        notes = [*self._notes()]
        if self._has_plane and len({speed for _, speed in self.roofs}) > 1:
            dashed = "Dashed: what one limit alone would allow, in the colour of its bar."
            notes.append(dashed)
        words = " ".join((*notes, *(f"{t.label}: {t.work}." for t in self.roofline.ordered)))
        figure = Figure(title=self.title, subtitle=self._subtitle(), grids=(), notes=tuple(notes))
        return scene_of(replace(figure, description=words), self._marks)

    @property
    def _has_plane(self) -> bool:
        return bool(self.roofline.intensity and self.roofs)

    def _marks(self, y: float) -> tuple[Sequence[Mark], float]:
        """The plane and the bars below each other from ``y`` on, and where they end."""
        plane = [*self._plane(MARGIN + 62, y + 14)] if self._has_plane else []
        y += HEIGHT + 70 if plane else 0
        return [*plane, *self._bars(y)], y + LINE * len(self.roofline.terms)

    def _bars(self, y: float) -> Iterator[Mark]:
        terms = self.roofline.ordered
        longest = max(term.seconds for term in terms) or 1.0
        left = MARGIN + max(len(term.label) for term in terms) * 12 * WIDE + 10
        colours = self._colours()
        for number, term in enumerate(terms):
            middle = y + LINE * (number + 0.5)
            time, width = seconds_text(term.seconds), max(BAR * term.seconds / longest, 1.0)
            looks = colours[term.name], 0.85 if term.is_floor else 0.3
            said = f"{term.label}: {time}"
            yield Label(MARGIN, middle, term.label, bold=number == 0)
            yield Box(left, middle - 7, width, 14, *looks, rounded=1, title=said)
            yield Label(left + BAR + 74, middle, time, 11, "end")
            yield Label(left + BAR + 86, middle, term.work, 11)

    def _plane(self, left: float, top: float) -> Iterator[Mark]:
        roofline = self.roofline
        intensity, bandwidth = roofline.intensity or 1.0, roofline.device.bandwidth
        speeds = [speed for _, speed in self.roofs]
        points = [(intensity, self.speed)]
        if roofline.measured is not None:
            points.append((intensity, roofline.operations / roofline.measured))
        ridges = [speed / bandwidth for speed in speeds]
        x0 = floor(log10(min(intensity, *ridges)) - 0.3)
        x1 = ceil(log10(max(intensity, *ridges)) + 0.3)
        y0 = floor(log10(min(*(p[1] for p in points), *speeds)) - 0.3)
        y1 = ceil(log10(max(speeds)) + 0.2)

        def at(x: float, y: float) -> Point:
            across, up = (log10(x) - x0) / (x1 - x0), (log10(y) - y0) / (y1 - y0)
            return left + WIDTH * across, top + HEIGHT * (1 - min(max(up, 0.0), 1.0))

        yield from _ticks(left, top, (x0, x1), (y0, y1))
        colours = self._colours()
        low, lowest = max(10.0**x0, 10.0**y0 / bandwidth), min(speeds)
        begin, end = at(low, low * bandwidth), 10.0**x1
        slope = begin, at(max(ridges), max(speeds))
        limits = [(slope, "memory", rate_text(bandwidth, "bytes"))]
        limits += [
            ((at(speed / bandwidth, speed), at(end, speed)), name, _speed(speed))
            for name, speed in self.roofs
        ]
        for line, name, rate in limits:
            yield Stroke((line,), colours[name], 1.2, "4 3", title=f"{name}: {rate}")
        roof = begin, at(lowest / bandwidth, lowest), at(end, lowest)
        yield Stroke((roof,), "text", 2.5, title="the roof")
        x, title = at(intensity, lowest)[0], f"{intensity:.4g} operations a byte"
        yield Stroke((((x, top), (x, top + HEIGHT)),), "comment", dash="2 3", title=title)
        for number, point in enumerate(points):
            text = f"{'measured' if number else 'at most'} {_speed(point[1])}"
            beside = left + WIDTH + 18, top + 10 + LINE * number
            yield Label(beside[0] + 14, beside[1], text, 11)
            looks = "series-1" if number else "ground", 1.0, "series-1", 2
            for x, y in (beside, at(*point)):
                yield Box(x - 5, y - 5, 10, 10, *looks, rounded=5, title=text)


def _ticks(left: float, top: float, xs: tuple[int, int], ys: tuple[int, int]) -> Iterator[Mark]:
    """The frame, lines at powers of ten, and what they are."""
    yield Box(left, top, WIDTH, HEIGHT, stroke="line")
    for power in range(xs[0], xs[1] + 1):
        x = left + WIDTH * (power - xs[0]) / (xs[1] - xs[0])
        yield Stroke((((x, top), (x, top + HEIGHT)),), "line", 0.6)
        yield Label(x, top + HEIGHT + 12, f"{10.0**power:g}", 10, "middle", "comment")
    step = -(-(ys[1] - ys[0]) // 8)
    for power in range(ys[0], ys[1] + 1, step):
        y = top + HEIGHT * (1 - (power - ys[0]) / (ys[1] - ys[0]))
        yield Stroke((((left, y), (left + WIDTH, y)),), "line", 0.6)
        text = f"{10 ** (power % 3)}{_PREFIXES[power // 3]}" if 0 <= power < 18 else f"1e{power}"
        yield Label(left - 6, y, text, 10, "end", "comment")
    middle, words = left + WIDTH / 2, "operations a byte of memory"
    yield Label(middle, top + HEIGHT + 30, words, 11, "middle", "comment")
    yield Label(MARGIN, top - 14, "operations a second", 11, colour="comment")


def _speed(speed: float) -> str:
    return rate_text(speed, "operations")


def roofline_picture(
    kernel: Kernel,
    sizes: tuple[tuple[str, int], ...],
    roofline: Roofline,
    measured: float | None = None,
) -> RooflinePicture:
    """A launch under its roofline, with a time in seconds beside it where one was measured."""
    shown = roofline if measured is None else roofline.beside(measured)
    return RooflinePicture(kernel, sizes, shown)
