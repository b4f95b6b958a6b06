"""Pictures of iteration domains: points, their execution order, and their threads and blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

from loopkit._errors import counted
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._launches import is_one_launch
from loopkit._pictures.grid import (
    FILL,
    Arrow,
    Figure,
    Grid,
    Key,
    Outline,
    Place,
    Seats,
    seated_at,
)
from loopkit._pictures.picture import Picture

FRAMES = 96
"""Turns that a slider has; of longer times, each is several turns."""

CROWDED = 1024
"""Points of which not every step is shown by an arrow."""

JUMPS = 32
"""Arrows between points that are no neighbours."""


@dataclass(frozen=True)
class DomainPoint:
    """A point of a picture: its place on the axes, when it runs, and on which block and thread.

    ``time`` is a turn: the rank of the point's time in its loops, among the points that are shown.
    Points of one turn differ in parallel inames alone.
    ``block`` and ``thread`` are indices on x, y and z.  ``tile`` is the number of its tile.
    Where several instances fall on a place, ``instances`` says how many, and the others of
    the first one.
    """

    place: tuple[int, ...]
    time: int
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    tile: int
    colour: int
    instances: int = 1

    @property
    def actor(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """The block and the thread."""
        return self.block, self.thread


@dataclass(frozen=True)
class DomainPicture(Picture):
    """Points of a statement's domain, those that run first first; see ``knl.plot_domain``.

    ``axes`` are the inames that the places of points are values of: rows, columns, slices.
    ``turns`` says of each turn what the loops' inames are, ``tiles`` what those of each tile are.
    """

    kernel: Kernel
    statement: str
    position: int
    sizes: tuple[tuple[str, int], ...]
    at: tuple[tuple[str, str], ...]
    axes: tuple[str, ...]
    points: tuple[DomainPoint, ...]
    turns: tuple[str, ...]
    tiles: tuple[str, ...]
    colours: tuple[str, ...]
    coloured_by: str
    tiled_by: tuple[str, ...]
    tile_role: str
    has_threads: bool
    by_data: bool = False

    def figure(self) -> Figure:
        """The grid of points, one for each slice."""
        title = f"{self.kernel.name}: {self.statement}"
        over = f"'{self.statement}' over {', '.join(self.axes) or 'no inames'}."
        said = " ".join([over, *self._notes()])
        facts = (*self.sizes, *self.at)
        return self._figure(title, facts, self._grids(), frames=self._frames(), description=said)

    @property
    def frame_length(self) -> int:
        """How many turns one step of the slider is."""
        return max(-(-len(self.turns) // FRAMES), 1)

    def _frames(self) -> tuple[str, ...]:
        if len(self.turns) < 2:
            return ()
        step, found = self.frame_length, []
        for first in range(0, len(self.turns), step):
            last = min(first + step, len(self.turns)) - 1
            count = sum(p.instances for p in self.points if first <= p.time <= last)
            times = f"{first}" if first == last else f"{first}-{last}"
            ends = dict.fromkeys((self.turns[first], self.turns[last]))
            found.append(f"{times}: {' to '.join(ends)} ({counted(count, 'instance')})")
        return tuple(found)

    def _grids(self) -> Iterator[Grid]:
        slices: dict[int, list[DomainPoint]] = {}
        for point in self.points:
            slices.setdefault(point.place[2] if len(self.axes) > 2 else 0, []).append(point)
        for value in sorted(slices):
            title = f"{self.axes[2]} = {value}" if len(self.axes) > 2 else ""
            yield self._grid(title, slices[value])

    def _grid(self, title: str, points: Sequence[DomainPoint]) -> Grid:
        seated = seated_at({p.place: p.place[:2] for p in points}, fold_all=True)
        seats, frames = seated.seats, len(self.turns) > 1
        cells = tuple(
            self._key(p).cell(
                *seats[p.place],
                label=self._label(p),
                title=self._words(p),
                frame=p.time // self.frame_length if frames else None,
                statement=self.position,
            )
            for p in points
        )
        return seated.grid(
            title=title,
            row_name=self.axes[0] if len(self.axes) > 1 else "",
            column_name=self.axes[min(len(self.axes) - 1, 1)] if self.axes else "",
            cells=cells,
            outlines=tuple(self._outlines(points, seats)),
            arrows=tuple(self._arrows(seats)),
        )

    def _label(self, point: DomainPoint) -> str:
        if point.instances > 1:
            return f"×{point.instances}"
        if len(self.turns) > 1:
            return str(point.time)
        return self._key_of(point.colour).label if self.colours else ""

    def _words(self, point: DomainPoint) -> str:
        values = ", ".join(f"{n} = {v}" for n, v in zip(self.axes, point.place, strict=True))
        parts = [f"{self.statement}: {values}" if values else self.statement]
        if point.instances > 1:
            parts.append(f"{point.instances} instances, the first of them:")
        if len(self.turns) > 1:
            loops = f": {self.turns[point.time]}" if len(self.points) <= CROWDED else ""
            parts.append(f"turn {point.time} of its thread{loops}")
        if self.has_threads:
            parts.append(f"block {point.block}, thread {point.thread}")
        return "\n".join(parts)

    def _key(self, point: DomainPoint) -> Key:
        if self.coloured_by == "order":
            share = point.time / max(len(self.turns) - 1, 1)
            return Key("", "series-0", round(0.08 + (FILL - 0.08) * share, 3))
        return self._key_of(point.colour)

    def _key_of(self, colour: int) -> Key:
        """The sample of a colour; they come again after eight, and are paler then."""
        name = self.colours[colour]
        label = name.rpartition(" ")[2] if len(self.turns) == 1 else ""
        shade = (FILL, 0.28, 0.18, 0.35)[colour // 8 % 4]
        return Key(name, f"series-{colour % 8}", shade, label=label)

    def _outlines(self, points: Sequence[DomainPoint], seats: Seats) -> Iterator[Outline]:
        if len(self.tiles) < 2:
            return
        for tile, members in groupby(sorted(points, key=lambda p: p.tile), lambda p: p.tile):
            cells = frozenset(seats[p.place] for p in members)
            yield Outline(cells, self.tile_role, self.tiles[tile])

    @property
    def _followed(self) -> list[list[DomainPoint]]:
        """The points of the threads whose order is shown by arrows."""
        if any(p.instances > 1 for p in self.points):
            return []
        by_actor: dict[Any, list[DomainPoint]] = {}
        for point in self.points:
            by_actor.setdefault(point.actor, []).append(point)
        moving = [points for points in by_actor.values() if len(points) > 1]
        return moving if len(moving) <= 16 else moving[:1]

    @property
    def _first_of_tiles(self) -> list[DomainPoint] | None:
        """The first point of each tile, where one thread runs one tile after the other."""
        tiles: dict[int, list[DomainPoint]] = {}
        for point in self._followed[0] if len(self._followed) == 1 else []:
            tiles.setdefault(point.tile, []).append(point)
        ordered = list(tiles.values())
        apart = all(a[-1].time < b[0].time for a, b in pairwise(ordered))
        return [points[0] for points in ordered] if len(ordered) > 1 and apart else None

    def _arrows(self, seats: Seats) -> Iterator[Arrow]:
        if len(self.points) > CROWDED:
            # Too many to follow; the order of tiles may be seen.
            for a, b in pairwise(self._first_of_tiles or []):
                if a.place in seats and b.place in seats:
                    yield self._arrow(a, b, seats)
            return
        jumps = []
        for path in self._followed:
            steps = [(a, b) for a, b in pairwise(path) if a.place in seats and b.place in seats]
            for line in _straight(steps, seats):
                if not _is_near(seats[line[0].place], seats[line[1].place]):
                    jumps.append(line)
                    continue
                # With a slider each step comes at its turn; the last has the head of the arrow.
                parts = list(pairwise(line)) if len(path) <= FRAMES else [(line[0], line[-1])]
                for a, b in parts:
                    yield self._arrow(a, b, seats, head=b is line[-1])
        # In a folded row, or where there are too many, jumps hide more than they show.
        if len(self.axes) > 1 and len(jumps) <= JUMPS:
            for a, b in jumps:
                yield self._arrow(a, b, seats, jump=True)

    def _arrow(
        self, a: DomainPoint, b: DomainPoint, seats: Seats, *, head: bool = True, jump: bool = False
    ) -> Arrow:
        return Arrow(
            (seats[a.place], seats[b.place]),
            "comment" if jump else "loop",
            f"one thread, from turn {a.time} to {b.time}",
            "3 3" if jump else "",
            1.0 if jump else 1.3,
            head,
            b.time // self.frame_length,
        )

    def _legend(self, figure: Figure) -> Iterator[Key]:
        if self.coloured_by == "order":
            if len(self.turns) > 1:
                yield Key("runs first", "series-0", 0.08, label="0")
                yield Key("runs last", "series-0", FILL, label=str(len(self.turns) - 1))
        else:
            yield from map(self._key_of, range(min(len(self.colours), 16)))
            if len(self.colours) > 16:
                yield Key(f"... {self.colours[-1]}: colours come again")
        if len(self.tiles) > 1:
            yield Key(f"a tile: one {', '.join(self.tiled_by)}", stroke=self.tile_role)
        if any(grid.arrows for grid in figure.grids):
            what = "order of tiles" if len(self.points) > CROWDED else "order"
            one = len(self._followed) == 1 and self.has_threads
            yield Key(what + one * " on the first thread", stroke="loop", arrow=True)

    def _notes(self) -> Iterator[str]:
        count = sum(p.instances for p in self.points)
        if not count:
            yield f"'{self.statement}' has no instances here."
            return
        said = f"{counted(count, 'instance')} in {counted(len(self.turns), 'turn')}"
        if (most := max(p.instances for p in self.points)) > 1:
            said += (
                f", on {counted(len(self.points), 'place')}, up to {most} on each: other inames "
                "are summed"
            )
        said += "."
        if self.has_threads:
            said += (
                " Instances on different threads are ordered by barriers alone, those in different "
                f"blocks by {'nothing' if is_one_launch(self.kernel) else 'launches alone'}."
            )
        if len(self.turns) > 1 and self.frame_length == 1:
            said += " Numbers are turns."
        yield said
        if self.by_data:
            yield "Data decide which of them run: they are drawn as if conditions on data held."


def _is_near(a: Place, b: Place) -> bool:
    return max(abs(a[0] - b[0]), abs(a[1] - b[1])) <= 1


def _straight(
    steps: Sequence[tuple[DomainPoint, DomainPoint]], seats: Seats
) -> list[list[DomainPoint]]:
    """Steps from neighbour to neighbour in one direction as one line each."""
    lines: list[list[DomainPoint]] = []
    before = (0, 0)
    for a, b in steps:
        one, two = seats[a.place], seats[b.place]
        step = two[0] - one[0], two[1] - one[1]
        if lines and lines[-1][-1] is a and step == before and _is_near(one, two):
            lines[-1].append(b)
        else:
            lines.append([a, b])
        before = step
    return lines
