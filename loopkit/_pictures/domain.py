"""The points of a statement's domain, the order in which they run, and who runs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from loopkit._budget import in_turn
from loopkit._costs.sizes import check_sizes
from loopkit._errors import InvalidArgumentError, UnknownNameError
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._linear import NotAffineError, linear
from loopkit._pictures.grid import FILL, Arrow, Cell, Figure, Grid, Key, Outline, Place, ticks
from loopkit._pictures.instances import (
    CELLS,
    FOLD,
    At,
    Instances,
    at_texts,
    check_statement,
    fixing,
    instances_of,
)
from loopkit._pictures.picture import Picture
from loopkit._spelling import shown
from loopkit._target import CUDA
from loopkit.codegen.hardware import find_hardware

FRAMES = 96
"""Moments that a slider has; of longer times, each is several moments."""

COLOURS = ("order", "thread", "warp", "block")


@dataclass(frozen=True)
class DomainPoint:
    """A point of a picture: its place on the axes, when it runs, and on which block and thread.

    ``time`` counts the moments of a thread: points of one moment differ in parallel inames alone.
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
    ``moments`` says of each time what the loops' inames are, ``tiles`` what those of each tile are.
    """

    kernel: Kernel
    statement: str
    position: int
    sizes: tuple[tuple[str, int], ...]
    at: tuple[tuple[str, str], ...]
    axes: tuple[str, ...]
    points: tuple[DomainPoint, ...]
    moments: tuple[str, ...]
    tiles: tuple[str, ...]
    colours: tuple[str, ...]
    coloured_by: str
    tiled_by: tuple[str, ...]
    tile_role: str
    has_threads: bool
    by_data: bool = False

    def figure(self) -> Figure:
        """The grid of points, one for each slice."""
        return Figure(
            title=f"{self.kernel.name}: {self.statement}",
            subtitle=", ".join(f"{n} = {v}" for n, v in (*self.sizes, *self.at)),
            grids=tuple(self._grids()),
            legend=tuple(self._legend()),
            notes=tuple(self._notes()),
            frames=self._frames(),
            description=f"{sum(p.instances for p in self.points)} instances of {self.statement} "
            f"over {', '.join(self.axes) or 'no inames'}. " + " ".join(self._notes()),
        )

    @property
    def frame_length(self) -> int:
        """How many moments one step of the slider is."""
        return max(-(-len(self.moments) // FRAMES), 1)

    def _frames(self) -> tuple[str, ...]:
        if len(self.moments) < 2:
            return ()
        step, found = self.frame_length, []
        for first in range(0, len(self.moments), step):
            last = min(first + step, len(self.moments)) - 1
            count = sum(p.instances for p in self.points if first <= p.time <= last)
            times = f"{first}" if first == last else f"{first}-{last}"
            ends = dict.fromkeys((self.moments[first], self.moments[last]))
            found.append(f"{times}: {' to '.join(ends)} ({count} instance{'s' * (count != 1)})")
        return tuple(found)

    def _grids(self) -> Iterator[Grid]:
        slices: dict[int, list[DomainPoint]] = {}
        for point in self.points:
            slices.setdefault(point.place[2] if len(self.axes) > 2 else 0, []).append(point)
        for value in sorted(slices):
            title = f"{self.axes[2]} = {value}" if len(self.axes) > 2 else ""
            yield self._grid(title, slices[value])

    def _grid(self, title: str, points: Sequence[DomainPoint]) -> Grid:
        seats, names, gaps = self._seats(points)
        frames = len(self.moments) > 1
        cells = tuple(
            Cell(
                row=seats[p.place][0],
                column=seats[p.place][1],
                label=self._label(p),
                title=self._words(p),
                fill=self._fill(p),
                strength=self._strength(p),
                frame=p.time // self.frame_length if frames else None,
                statement=self.position,
            )
            for p in points
        )
        return Grid(
            title=title,
            rows=names[0],
            columns=names[1],
            row_name=self.axes[0] if len(self.axes) > 1 else "",
            column_name=self.axes[min(len(self.axes) - 1, 1)] if self.axes else "",
            cells=cells,
            outlines=tuple(self._outlines(points, seats)),
            arrows=tuple(self._arrows(seats)),
            row_gaps=gaps[0],
            column_gaps=gaps[1],
        )

    def _seats(
        self, points: Sequence[DomainPoint]
    ) -> tuple[
        Mapping[tuple[int, ...], Place],
        tuple[tuple[str, ...], tuple[str, ...]],
        tuple[frozenset[int], frozenset[int]],
    ]:
        """Row and column of each place, the names of rows and columns, and what is left out."""
        places = [p.place for p in points]
        seats: dict[tuple[int, ...], Place]
        if not self.axes:
            return {(): (0, 0)}, (("",), ("",)), (frozenset(), frozenset())
        if len(self.axes) == 1:
            values = [place[0] for place in places]
            if max(values) - min(values) < FOLD:
                columns, gaps = ticks(values)
                seats = {(v,): (0, columns.index(v)) for v in values}
                return seats, (("",), tuple(map(str, columns))), (frozenset(), gaps)
            rows, gaps = ticks(v // FOLD for v in values)
            seats = {(v,): (rows.index(v // FOLD), v % FOLD) for v in values}
            names = tuple(f"{row * FOLD} +" for row in rows), tuple(map(str, range(FOLD)))
            return seats, names, (gaps, frozenset())
        rows, row_gaps = ticks(place[0] for place in places)
        columns, column_gaps = ticks(place[1] for place in places)
        row_of = {value: at for at, value in enumerate(rows)}
        column_of = {value: at for at, value in enumerate(columns)}
        seats = {place: (row_of[place[0]], column_of[place[1]]) for place in places}
        return seats, (tuple(map(str, rows)), tuple(map(str, columns))), (row_gaps, column_gaps)

    def _label(self, point: DomainPoint) -> str:
        if point.instances > 1:
            return f"×{point.instances}"
        if len(self.moments) > 1:
            return str(point.time)
        return self.colours[point.colour].rpartition(" ")[2] if self.colours else ""

    def _words(self, point: DomainPoint) -> str:
        values = ", ".join(f"{n} = {v}" for n, v in zip(self.axes, point.place, strict=True))
        parts = [f"{self.statement}: {values}" if values else self.statement]
        if point.instances > 1:
            parts.append(f"{point.instances} instances, the first of them:")
        if len(self.moments) > 1:
            parts.append(f"moment {point.time} of its thread: {self.moments[point.time]}")
        if self.has_threads:
            parts.append(f"block {point.block}, thread {point.thread}")
        return "\n".join(parts)

    def _fill(self, point: DomainPoint) -> str:
        return "series-0" if self.coloured_by == "order" else f"series-{point.colour % 8}"

    def _strength(self, point: DomainPoint) -> float:
        if self.coloured_by == "order":
            return round(0.08 + (FILL - 0.08) * point.time / max(len(self.moments) - 1, 1), 3)
        # Colours come again after eight, and are paler then.
        return (FILL, 0.28, 0.18, 0.35)[point.colour // 8 % 4]

    def _outlines(
        self, points: Sequence[DomainPoint], seats: Mapping[tuple[int, ...], Place]
    ) -> Iterator[Outline]:
        if len(self.tiles) < 2:
            return
        for tile, members in groupby(sorted(points, key=lambda p: p.tile), lambda p: p.tile):
            cells = frozenset(seats[p.place] for p in members)
            yield Outline(cells=cells, stroke=self.tile_role, title=self.tiles[tile])

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

    def _arrows(self, seats: Mapping[tuple[int, ...], Place]) -> Iterator[Arrow]:
        for path in self._followed:
            steps = [(a, b) for a, b in pairwise(path) if a.place in seats and b.place in seats]
            for line in _straight(steps, seats):
                near = _is_near(seats[line[0].place], seats[line[1].place])
                if not near and len(self.axes) == 1:
                    continue  # the next row, or further along the only one
                # With a slider each step comes at its moment; the last has the head of the arrow.
                parts = list(pairwise(line)) if len(path) <= FRAMES else [(line[0], line[-1])]
                for a, b in parts:
                    yield Arrow(
                        through=(seats[a.place], seats[b.place]),
                        stroke="loop" if near else "comment",
                        thick=1.3 if near else 1.0,
                        dash="" if near else "3 3",
                        head=b is line[-1],
                        title=f"one thread, from moment {a.time} to {b.time}",
                        frame=b.time // self.frame_length,
                    )

    def _legend(self) -> Iterator[Key]:
        if self.coloured_by == "order":
            if len(self.moments) > 1:
                yield Key(meaning="runs first", fill="series-0", strength=0.08, label="0")
                last = str(len(self.moments) - 1)
                yield Key(meaning="runs last", fill="series-0", strength=FILL, label=last)
        else:
            for number, name in enumerate(self.colours[:16]):
                point = DomainPoint((), 0, (0, 0, 0), (0, 0, 0), 0, number)
                yield Key(
                    meaning=name,
                    fill=self._fill(point),
                    strength=self._strength(point),
                    label=name.rpartition(" ")[2] if len(self.moments) == 1 else "",
                )
            if len(self.colours) > 16:
                yield Key(meaning=f"... {self.colours[-1]}: colours come again")
        if len(self.tiles) > 1:
            yield Key(meaning=f"a tile: one {', '.join(self.tiled_by)}", stroke=self.tile_role)
        if followed := self._followed:
            some = " on thread 0 of block 0" if len(followed) == 1 and self.has_threads else ""
            yield Key(meaning=f"order{some}", stroke="loop", arrow=True)

    def _notes(self) -> Iterator[str]:
        count = sum(p.instances for p in self.points)
        if not count:
            yield f"'{self.statement}' has no instances here."
            return
        said = f"{count:,} instance{'s' * (count != 1)}"
        if (most := max(p.instances for p in self.points)) > 1:
            said += (
                f" on {len(self.points):,} places, up to {most} on each: other inames are summed"
            )
        said += f", {len(self.moments):,} moment{'s' * (len(self.moments) != 1)}"
        said += " of each thread." if self.has_threads else "."
        if self.has_threads:
            said += (
                " Instances on different threads are ordered by barriers alone, those in different "
                "blocks by nothing."
            )
        if len(self.moments) > 1 and self.frame_length == 1:
            said += " Numbers are moments."
        yield said
        if self.by_data:
            yield "Data decide which of them run: they are drawn as if conditions on data held."


def _is_near(a: Place, b: Place) -> bool:
    return max(abs(a[0] - b[0]), abs(a[1] - b[1])) <= 1


def _straight(
    steps: Sequence[tuple[DomainPoint, DomainPoint]], seats: Mapping[tuple[int, ...], Place]
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


@in_turn
def domain_picture(
    kernel: Kernel,
    statement: str | None,
    inames: Sequence[str] | None,
    at: At | None,
    colour: str | None,
    tiles: Sequence[str] | None,
    sizes: Mapping[str, int],
) -> DomainPicture:
    """See ``knl.plot_domain``."""
    check_sizes(kernel, sizes, "plot_domain")
    name = check_statement(kernel, statement)
    at = {} if at is None else at
    found = instances_of(kernel, name, sizes, at)
    axes = _axes(found, inames, at)
    tiled_by = _known(found, tiles, "tiles") if tiles is not None else _tile_names(found)
    colour = _colour(found, colour)
    points = _points(found, axes, tiled_by, colour)
    blocks = set(found.coordinates("g"))
    return DomainPicture(
        kernel=kernel,
        statement=name,
        position=[s.id for s in kernel.statements].index(name),
        sizes=tuple(sorted(sizes.items())),
        at=at_texts(at),
        axes=axes,
        points=points,
        moments=_texts(found, found.loops, found.time, "the only one"),
        tiles=_texts(found, tiled_by, _numbered(found, tiled_by), ""),
        colours=_colour_names(found, colour),
        coloured_by=colour,
        tiled_by=tiled_by,
        tile_role="block" if set(tiled_by) <= blocks and tiled_by else "loop",
        has_threads=bool(found.coordinates("l") or blocks),
        by_data=found.model.depends_on_data(found.model.statement[name]),
    )


def _points(
    found: Instances, axes: tuple[str, ...], tiled_by: tuple[str, ...], colour: str
) -> tuple[DomainPoint, ...]:
    columns = [found.column(name).tolist() for name in axes]
    places = list(zip(*columns, strict=True)) if columns else [()] * len(found)
    counted: dict[tuple[int, ...], int] = {}
    for place in places:
        counted[place] = counted.get(place, 0) + 1
    if len(counted) > CELLS:
        raise InvalidArgumentError(
            f"'{found.statement}' has {len(counted):,} points over {', '.join(axes)}, and a "
            f"picture shows {CELLS:,} at most",
            instead=f"smaller sizes, or {fixing(axes[::-1])}",
        )
    times, blocks, threads = (
        found.time.tolist(),
        found.index("g").tolist(),
        found.index("l").tolist(),
    )
    tiles, colours = _numbered(found, tiled_by).tolist(), _colour_numbers(found, colour).tolist()
    made: dict[tuple[int, ...], DomainPoint] = {}
    for row, place in enumerate(places):
        if place not in made:
            made[place] = DomainPoint(
                place, times[row], tuple(blocks[row]), tuple(threads[row]), tiles[row],
                colours[row], counted[place],
            )  # fmt: skip
    return tuple(made.values())


def _axes(found: Instances, inames: Sequence[str] | None, at: At) -> tuple[str, ...]:
    """The inames on the axes: those asked for, or all of the text that ``at`` leaves open."""
    if inames is not None:
        axes = _known(found, inames, "inames")
        if not 1 <= len(axes) <= 3:
            raise InvalidArgumentError(
                f"a picture has rows, columns and slices: one to three inames, not {len(axes)}"
            )
        return axes
    axes = found.text or found.names
    fixed = {n for n in axes if n in at and not isinstance(at[n], range)}
    axes = tuple(n for n in axes if n not in fixed)
    if len(axes) > 3:
        raise InvalidArgumentError(
            f"'{found.statement}' has {len(axes)} inames: {', '.join(axes)}",
            instead=f"inames=('{axes[-2]}', '{axes[-1]}') sums the others; "
            f"at={{{', '.join(f'{n!r}: 0' for n in axes[:-2])}}} fixes them",
        )
    return axes


def _known(found: Instances, names: Sequence[str], what: str) -> tuple[str, ...]:
    """Names of inames; raises for others."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InvalidArgumentError(f"{what} are a sequence of inames, not {shown(names)}")
    for name in names:
        if name not in found.values:
            raise UnknownNameError("iname", name, found.values)
    if len(set(names)) < len(names):
        raise InvalidArgumentError(f"{what} names one iname twice: {', '.join(names)}")
    return tuple(names)


def _tile_names(found: Instances) -> tuple[str, ...]:
    """Inames that have one value in each tile: of those that make up one of the text, the outer."""
    outer: dict[str, None] = {}
    for name in found.text:
        try:
            terms = linear(found.values[name]).terms
        except NotAffineError:
            continue
        parts = {str(atom): abs(factor) for atom, factor in terms.items()}
        if len(parts) > 1 and len(set(parts.values())) > 1 and parts.keys() <= set(found.names):
            outer[max(parts, key=lambda name: parts[name])] = None
    blocks = found.coordinates("g")
    several = [n for n in found.names if len(np.unique(found.column(n))) > 1]
    return tuple(n for n in several if n in outer or n in blocks)


def _numbered(found: Instances, names: Sequence[str]) -> Any:
    """The number of each row among those that differ in ``names``, in the order of these."""
    rows = (
        np.stack([found.column(n) for n in names], axis=1) if names else np.zeros((len(found), 1))
    )
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _texts(found: Instances, names: Sequence[str], number: Any, none: str) -> tuple[str, ...]:
    """What the inames are where a number is 0, 1, ..."""
    first = np.unique(number, return_index=True)[1]
    columns = [found.column(name)[first].tolist() for name in names]
    if not columns:
        return (none,) * len(first)
    return tuple(
        ", ".join(f"{n} = {v}" for n, v in zip(names, values, strict=True))
        for values in zip(*columns, strict=True)
    )


def _colour(found: Instances, colour: str | None) -> str:
    """What colours tell apart: warps, threads, blocks, or the order where there are none."""
    if colour is None:
        if found.coordinates("l"):
            return "warp" if len(np.unique(_linear_thread(found) // CUDA.warp)) > 1 else "thread"
        return "block" if found.coordinates("g") else "order"
    if colour not in COLOURS and colour not in found.values:
        raise UnknownNameError("colour", str(colour), [*COLOURS, *found.values])
    return colour


def _linear_thread(found: Instances) -> Any:
    block = find_hardware(found.model.kernel).block
    x, y, z = found.index("l").T
    return x + block[0] * (y + block[1] * z)


def _linear_block(found: Instances) -> Any:
    blocks = found.index("g")
    return np.unique(blocks[:, ::-1], axis=0, return_inverse=True)[1].reshape(-1)


def _colour_numbers(found: Instances, colour: str) -> Any:
    if colour == "order":
        return np.zeros(len(found), np.int64)
    if colour == "block":
        return _linear_block(found)
    if colour in ("thread", "warp"):
        return _linear_thread(found) // (CUDA.warp if colour == "warp" else 1)
    return _numbered(found, (colour,))


def _colour_names(found: Instances, colour: str) -> tuple[str, ...]:
    if colour == "order" or not len(found):
        return ()
    numbers = _colour_numbers(found, colour)
    if colour in ("thread", "warp"):
        return tuple(f"{colour} {n}" for n in range(int(numbers.max()) + 1))
    if colour == "block":
        return _texts(found, found.coordinates("g")[::-1], numbers, "block")
    return _texts(found, (colour,), numbers, "")
