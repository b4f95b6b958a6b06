"""Pictures of footprints: the cells that a part of a launch accesses, how often, and its halo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._budget import in_turn
from loopkit._costs.accesses import Access, accesses_of, address_map, in_calls, itemsize_of
from loopkit._costs.launch_counts import Launched, launched
from loopkit._costs.sizes import check_sizes
from loopkit._errors import InvalidArgumentError, check_known, counted
from loopkit._expression import substitute
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._kernel import Kernel
from loopkit._launches import is_one_launch
from loopkit._linear import NotAffineError
from loopkit._nodes import Expression
from loopkit._pictures.chosen_access import in_block
from loopkit._pictures.grid import FILL, Cell, Figure, Grid, Key, Outline, Seats, seated_at
from loopkit._pictures.picture import Picture
from loopkit._pictures.shown_instances import (
    CELLS,
    POINTS,
    At,
    at_texts,
    count_to,
    evaluated,
    restricted,
    rows_of,
    text_inames,
)
from loopkit._poly.pairs import between


@dataclass(frozen=True)
class TouchedCell:
    """A cell, how often the part reads and writes it, and whether others touch it, too."""

    index: tuple[int, ...]
    reads: int
    writes: int
    is_shared: bool

    @property
    def kind(self) -> tuple[bool, bool]:
        """Whether it is read, and whether it is written."""
        return self.reads > 0, self.writes > 0


KEYS = {
    (True, False): Key("read, so often", "series-0", FILL, label="n"),
    (False, True): Key("written, so often", "series-1", FILL, label="n"),
    (True, True): Key("read and written, so often", "series-2", FILL, label="n"),
}
HALO = Key("the halo: touched by others, too", "series-0", 0.16)
ALONE = Key("touched by nothing else", stroke="block")


@dataclass(frozen=True)
class FootprintPicture(Picture):
    """The footprint of a block, or of iterations of loops; see ``knl.plot_footprint``.

    ``part`` says which part of the launch it is of; empty for all of it.
    """

    kernel: Kernel
    array: str
    part: str
    itemsize: int
    sizes: tuple[tuple[str, int], ...]
    cells: tuple[TouchedCell, ...]

    @property
    def halo(self) -> tuple[TouchedCell, ...]:
        """The cells that others touch, too."""
        return tuple(cell for cell in self.cells if cell.is_shared)

    @property
    def _whole(self) -> str:
        return "the launch" if is_one_launch(self.kernel) else "the call"

    def figure(self) -> Figure:
        """The cells by the last two axes, a grid for each value of the others."""
        parts: dict[tuple[int, ...], list[TouchedCell]] = {}
        for cell in self.cells:
            parts.setdefault(cell.index[:-2], []).append(cell)
        title = f"{self.kernel.name}: footprint of {self.part or self._whole} in {self.array}"
        grids = (self._grid(outer, parts[outer]) for outer in sorted(parts))
        return self._figure(title, self.sizes, grids)

    def _grid(self, outer: tuple[int, ...], cells: Sequence[TouchedCell]) -> Grid:
        names = "·, ·" if len(cells[0].index) > 1 else "·"
        seated = seated_at({cell.index: cell.index[-2:] for cell in cells})
        return seated.grid(
            column_name=f"{self.array}[{''.join(f'{i}, ' for i in outer)}{names}]",
            cells=tuple(self._cell(cell, *seated.seats[cell.index]) for cell in cells),
            outlines=tuple(self._outlines(cells, seated.seats)),
        )

    def _outlines(self, cells: Sequence[TouchedCell], seats: Seats) -> Iterator[Outline]:
        alone = frozenset(seats[cell.index] for cell in cells if not cell.is_shared)
        if alone and self.halo:
            yield Outline(alone, ALONE.stroke, ALONE.meaning)

    def _cell(self, cell: TouchedCell, row: int, column: int) -> Cell:
        index = ", ".join(map(str, cell.index))
        title = f"{self.array}[{index}]: {counted(cell.reads, 'read')}, "
        title += counted(cell.writes, "write") + ", and by others, too" * cell.is_shared
        key = HALO if cell.is_shared else KEYS[cell.kind]
        fill, times = KEYS[cell.kind].fill, str(cell.reads + cell.writes)
        return key.cell(row, column, fill=fill, label=times, title=title)

    def _legend(self, figure: Figure) -> Iterator[Key]:
        kinds = {cell.kind for cell in self.cells}
        yield from (key for kind, key in KEYS.items() if kind in kinds)
        if self.halo:
            yield HALO
        if 0 < len(self.halo) < len(self.cells):
            yield ALONE

    def _notes(self) -> Iterator[str]:
        if not self.cells:
            yield "No cell is touched."
            return
        reads, writes = (sum(getattr(c, kind) for c in self.cells) for kind in ("reads", "writes"))
        cells, halo = len(self.cells), len(self.halo)
        yield (
            f"{counted(cells, 'cell')}, {counted(cells * self.itemsize, 'byte')}: "
            f"{counted(reads, 'read')} and {counted(writes, 'write')}, "
            f"{(reads + writes) / cells:.4g} a cell."
        )
        if halo:
            share = "All of them" if halo == cells else f"{halo:,} of them"
            yield f"{share} other parts of {self._whole} touch, too."


@in_turn
def footprint_picture(
    kernel: Kernel,
    array: str,
    block: Sequence[int] | int | None,
    at: At | None,
    sizes: Mapping[str, int],
) -> FootprintPicture:
    """See ``knl.plot_footprint``."""
    sizes = check_sizes(kernel, sizes, "plot_footprint")
    kernel.array(array)
    mine = [
        (one, access)
        for one in launched(kernel)
        for access in accesses_of(one.model.kernel)
        if access.array == array
    ]
    if not mine:
        raise InvalidArgumentError(f"no statement accesses '{array}' by subscripts")
    values = {a.statement: _values(kernel, one, a.statement, sizes) for one, a in mine}
    known = {name for named in values.values() for name in named}
    check_known("iname", at or {}, known)
    reads: Counter[tuple[int, ...]] = Counter()
    writes: Counter[tuple[int, ...]] = Counter()
    elsewhere = None
    for one, access in mine:
        indices = [substitute(index, sizes) for index in access.indices]
        whole, names = _instances(one, access, sizes)
        part = whole - whole
        if not set(at or {}) - values[access.statement].keys():
            part = restricted(whole, values[access.statement], at or {})
            part = in_block(part, one.model, access.statement, block)
        (writes if access.is_write else reads).update(_touched(part, names, indices))
        others = cells_of(whole - part, indices)
        elsewhere = others if elsewhere is None else elsewhere | others
    cells = sorted(reads.keys() | writes.keys())
    if len(cells) > CELLS:
        raise InvalidArgumentError(
            f"{len(cells):,} cells of '{array}' are touched, and a picture shows {CELLS:,} at most",
            instead="of a block: block=(0, 0); of iterations: at={'k': 0}; or smaller sizes",
        )
    shared = _among(elsewhere, cells)
    return FootprintPicture(
        kernel=kernel,
        array=array,
        part=_part(block, at),
        itemsize=itemsize_of(mine[0][0].model.kernel, array),
        sizes=tuple(sorted(sizes.items())),
        cells=tuple(TouchedCell(c, reads[c], writes[c], c in shared) for c in cells),
    )


def _part(block: Sequence[int] | int | None, at: At | None) -> str:
    shown = "" if block is None else f"block {tuple([block] if isinstance(block, int) else block)}"
    values = ", ".join(f"{name} = {value}" for name, value in at_texts(at or {}))
    return f"{shown} at {values}" if shown and values else shown or values


def _values(
    kernel: Kernel, launch: Launched, statement: str, sizes: Mapping[str, int]
) -> dict[str, Expression]:
    """The inames by which a part may be named, those of the text among them."""
    inames = (*launch.model.statement[statement].inames, *launch.calls.loops)
    return text_inames(kernel, statement, sizes) | {n: prim.Variable(n) for n in sorted(inames)}


def _instances(
    launch: Launched, access: Access, sizes: Mapping[str, int]
) -> tuple[isl.Set, tuple[str, ...]]:
    """``{ names : an access is made }``, threads that all make it among them, and the names."""
    try:
        where = in_calls(address_map(launch.model, access, sizes), launch.calls)
    except NotAffineError:
        raise InvalidArgumentError(
            f"data decide which cells of '{access.array}' '{access.statement}' touches"
        ) from None
    lanes = [lane[0] for lane in where.lanes if lane is not None]
    names = tuple(dict.fromkeys((*where.requests, *lanes, *where.others)))
    return _sets.at_values(where.domain, sizes), names


def _touched(
    part: isl.Set, names: tuple[str, ...], indices: Sequence[Expression]
) -> Iterator[tuple[int, ...]]:
    """The cell of each access."""
    if count_to(POINTS, part, names, {}) > POINTS:
        raise InvalidArgumentError(
            f"more than {POINTS:,} accesses are made, which is more than a picture looks at",
            instead="of a block: block=(0, 0); of iterations: at={'k': 0}; or smaller sizes",
        )
    rows = rows_of(part, names, {})
    return zip(*(evaluated(i, names, rows, {}).tolist() for i in indices), strict=True)


def cells_of(where: isl.Set, indices: Sequence[Expression]) -> isl.Set:
    """``{ cell·0, cell·1, ... : some access in where touches the cell }``."""
    names = [hidden("cell", n) for n in range(len(indices))]
    for name, index in zip(names, indices, strict=True):
        where = where & _sets.equality(name, index)
    return _sets.project_onto(where, names)


def points_of(where: isl.Set, names: Sequence[str]) -> set[tuple[int, ...]]:
    """The points of a set over names."""
    return set(map(tuple, rows_of(where, names, {}).tolist()))


def _among(where: isl.Set | None, cells: Sequence[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Those of some cells that are in a set."""
    if where is None or not cells:
        return set()
    names = tuple(hidden("cell", n) for n in range(len(cells[0])))
    for name, column in zip(names, zip(*cells, strict=True), strict=True):
        where = where & between(name, min(column), max(column))
    return points_of(where.coalesce(), names) & set(cells)
