"""Which threads touch which elements of global memory in one request, and which sectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from loopkit import _sets
from loopkit._arrays import strides_of
from loopkit._costs.requests import Request, Touch
from loopkit._costs.warps import SECTOR
from loopkit._errors import InvalidArgumentError, counted
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._pictures.grid import FILL, Cell, Figure, Grid, Key, Outline, runs, ticks
from loopkit._pictures.picture import Picture
from loopkit._target import CUDA

ROW = 128
"""Bytes of memory in one row: four sectors."""


@dataclass(frozen=True)
class AccessPicture(Picture):
    """One request to global memory, as it lies there; see ``knl.plot_access``."""

    kernel: Kernel
    request: Request
    strides: tuple[int, ...]

    @property
    def sectors(self) -> tuple[tuple[int, frozenset[int]], ...]:
        """For each warp, the sectors that it touches, counted from the array's first element."""
        found: dict[int, set[int]] = {}
        for touch in self.request.touches:
            found.setdefault(touch.thread // CUDA.warp, set()).add(touch.address // SECTOR)
        return tuple((warp, frozenset(them)) for warp, them in sorted(found.items()))

    @property
    def elements(self) -> int:
        """How many different elements each warp touches, summed over warps."""
        return len({(t.thread // CUDA.warp, t.address) for t in self.request.touches})

    def figure(self) -> Figure:
        """Rows of memory, with the sectors that are moved."""
        return self._figure(
            self.request.title, (*self.request.sizes, *self.request.when), (self._grid(),)
        )

    def _by_address(self) -> Mapping[int, list[Touch]]:
        found: dict[int, list[Touch]] = {}
        for touch in self.request.touches:
            found.setdefault(touch.address, []).append(touch)
        return found

    def _grid(self) -> Grid:
        size = self.request.itemsize
        by_address = self._by_address()
        sectors = sorted({address // SECTOR for address in by_address})
        rows, gaps = ticks((s * SECTOR // ROW for s in sectors), most=0)
        row_of = {line: at for at, line in enumerate(rows)}
        cells, outlines = [], []
        for sector in sectors:
            row, first = row_of[sector * SECTOR // ROW], sector * SECTOR % ROW // size
            columns = range(first, first + SECTOR // size)
            around = frozenset((row, column) for column in columns)
            outlines.append(Outline(around, "global", self._sector_words(sector)))
            for column in columns:
                address = rows[row] * ROW + column * size
                cells.append(self._cell(row, column, address, by_address.get(address, [])))
        return Grid(
            rows=tuple(self._element(line * ROW) for line in rows),
            columns=tuple(str(column) for column in range(ROW // size)),
            row_name="from",
            column_name=f"elements of {size} bytes, {ROW} bytes a row",
            cells=tuple(cells),
            outlines=tuple(outlines),
            row_gaps=gaps,
        )

    def _cell(self, row: int, column: int, address: int, touches: list[Touch]) -> Cell:
        if not touches:
            words = f"{self._element(address)}: moved, but not used"
            return Cell(row, column, title=words)
        lanes = [t.thread % CUDA.warp for t in touches]
        warps = sorted({t.thread // CUDA.warp for t in touches})
        one = len(set(lanes)) == 1
        shade = round(0.1 + (FILL - 0.1) * lanes[0] / CUDA.warp, 3) if self._is_alone else FILL
        return Cell(
            row,
            column,
            str(lanes[0]) if one else f"×{len(touches)}",
            f"{self._element(address)}: warp {runs(warps)}, lane {runs(lanes)}",
            f"series-{warps[0] % 8}",
            shade,
            statement=self.request.position,
        )

    @property
    def _is_alone(self) -> bool:
        return len(self.sectors) < 2

    def _element(self, address: int) -> str:
        """The element at an address, as a subscript; its place in bytes where it is none."""
        rest, index = address // self.request.itemsize, [0] * len(self.strides)
        for axis in sorted(range(len(index)), key=lambda axis: -self.strides[axis]):
            if self.strides[axis] > 0:
                index[axis], rest = divmod(rest, self.strides[axis])
        inside = all(i < extent for i, extent in zip(index, self.request.shape, strict=True))
        if rest or not inside:
            return f"{self.request.array} + {address} B"
        return f"{self.request.array}[{', '.join(map(str, index))}]"

    def _sector_words(self, sector: int) -> str:
        used = {a for a in self._by_address() if a // SECTOR == sector}
        return f"sector {sector}: {len(used) * self.request.itemsize} of {SECTOR} bytes are used"

    def _legend(self, figure: Figure) -> Iterator[Key]:
        if self._is_alone:
            yield Key("touched by lane 0", "series-0", 0.1, label="0")
            yield Key("by lane 31", "series-0", FILL, label="31")
        else:
            for warp, _ in self.sectors[:8]:
                yield Key(f"warp {warp}", f"series-{warp % 8}", FILL)
        if any(len(touches) > 1 for touches in self._by_address().values()):
            yield Key("touched by so many threads", label="×n")
        yield Key(f"a sector of {SECTOR} bytes that is moved", stroke="global")
        if self.elements * self.request.itemsize < SECTOR * sum(len(s) for _, s in self.sectors):
            yield Key("moved, not used", label="·")

    def _notes(self) -> Iterator[str]:
        moved = sum(len(them) for _, them in self.sectors)
        used = self.elements * self.request.itemsize
        least = sum(
            -(-len({t.address for t in self.request.touches if t.thread // CUDA.warp == warp})
              * self.request.itemsize // SECTOR)
            for warp, _ in self.sectors
        )  # fmt: skip
        threads = len(self.request.touches)
        yield (
            f"{threads} thread{'s touch' if threads != 1 else ' touches'} "
            f"{counted(used, 'byte')} in "
            f"{counted(moved, 'sector')}: {100 * used / (moved * SECTOR):.4g} % of what is moved "
            f"is used; at best {least} would do. The array is taken to begin at a multiple of "
            f"{ROW} bytes."
        )
        yield from self.request.notes()


def access_picture(kernel: Kernel, request: Request) -> AccessPicture:
    """A request to global memory, with the layout of its array."""
    if request.space != "global":
        raise InvalidArgumentError(
            f"'{request.array}' lies in {request.space} memory, which is not moved in sectors",
            instead=f"plot_banks('{request.array}')" if request.space == "shared" else "",
        )
    strides = strides_of(kernel.array(request.array))
    return AccessPicture(
        kernel, request, tuple(_sets.value_at(stride, dict(request.sizes)) for stride in strides)
    )
