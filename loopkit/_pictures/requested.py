"""Pictures of one memory request: threads and the sectors or the banks that they access."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from loopkit import _sets
from loopkit._arrays import strides_of
from loopkit._costs.requests import Request
from loopkit._costs.warps import BANKS, SECTOR, WORD
from loopkit._errors import InvalidArgumentError, counted
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._pictures.grid import FILL, Cell, Figure, Grid, Key, Outline, Place, runs, ticks
from loopkit._pictures.picture import Picture
from loopkit._relations import grouped
from loopkit._target import CUDA

ROW = 128
"""Bytes of memory in one row: four sectors."""


@dataclass(frozen=True)
class RequestPicture(Picture):
    """One request to memory, as it lies there."""

    kernel: Kernel
    request: Request

    def figure(self) -> Figure:
        """What is touched, by its places in memory."""
        request = self.request
        return self._figure(request.title, (*request.sizes, *request.when), self._grids())

    def _grids(self) -> Iterable[Grid]:
        raise NotImplementedError

    def _touched(
        self, seat: Place, threads: Sequence[int], title: str, series: int, shade: float
    ) -> Cell:
        """A place that threads touch: the lane, or how many they are."""
        lanes = {thread % CUDA.warp for thread in threads}
        label = str(*lanes) if len(lanes) == 1 else f"×{len(threads)}"
        position = self.request.position
        return Cell(*seat, label, title, f"series-{series % 8}", shade, statement=position)


@dataclass(frozen=True)
class AccessPicture(RequestPicture):
    """One request to global memory: see ``knl.plot_access``."""

    strides: tuple[int, ...]

    @property
    def sectors(self) -> tuple[tuple[int, frozenset[int]], ...]:
        """For each warp, the sectors that it touches, counted from the array's first element."""
        each = self._addresses.items()
        return tuple((warp, frozenset(a // SECTOR for a in them)) for warp, them in each)

    @property
    def elements(self) -> int:
        """How many different elements each warp touches, summed over warps."""
        return sum(map(len, self._addresses.values()))

    @property
    def _addresses(self) -> Mapping[int, frozenset[int]]:
        """Where the elements lie that each warp touches."""
        by_warp = grouped((t.thread // CUDA.warp, t.address) for t in self.request.touches)
        return {warp: frozenset(them) for warp, them in by_warp.items()}

    def _by_address(self) -> Mapping[int, tuple[int, ...]]:
        """The threads that touch each address."""
        return grouped((t.address, t.thread) for t in self.request.touches)

    def _grids(self) -> Iterator[Grid]:
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
                cells.append(self._cell(row, column, address, by_address.get(address, ())))
        yield Grid(
            rows=tuple(self._element(line * ROW) for line in rows),
            columns=tuple(str(column) for column in range(ROW // size)),
            row_name="from",
            column_name=f"elements of {size} bytes, {ROW} bytes a row",
            cells=tuple(cells),
            outlines=tuple(outlines),
            row_gaps=gaps,
        )

    def _cell(self, row: int, column: int, address: int, threads: Sequence[int]) -> Cell:
        if not threads:
            words = f"{self._element(address)}: moved, but not used"
            return Cell(row, column, title=words)
        lanes = [thread % CUDA.warp for thread in threads]
        warps = sorted({thread // CUDA.warp for thread in threads})
        shade = round(0.1 + (FILL - 0.1) * lanes[0] / CUDA.warp, 3) if self._is_alone else FILL
        title = f"{self._element(address)}: warp {runs(warps)}, lane {runs(lanes)}"
        return self._touched((row, column), threads, title, warps[0], shade)

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
        if any(len(threads) > 1 for threads in self._by_address().values()):
            yield Key("touched by so many threads", label="×n")
        yield Key(f"a sector of {SECTOR} bytes that is moved", stroke="global")
        if self.elements * self.request.itemsize < SECTOR * sum(len(s) for _, s in self.sectors):
            yield Key("moved, not used", label="·")

    def _notes(self) -> Iterator[str]:
        moved = sum(len(them) for _, them in self.sectors)
        size = self.request.itemsize
        used = self.elements * size
        least = sum(-(-len(them) * size // SECTOR) for them in self._addresses.values())
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


@dataclass(frozen=True)
class BankWord:
    """A word of shared memory that threads access: its bank, and its pass.

    Words of one bank take one pass each, here in the order of their addresses.
    """

    word: int
    turn: int
    threads: tuple[int, ...]
    wavefront: int

    @property
    def bank(self) -> int:
        """The bank that the word lies in."""
        return self.word % BANKS


@dataclass(frozen=True)
class BankPicture(RequestPicture):
    """One warp's request to shared memory, by banks; see ``knl.plot_banks``.

    Of elements wider than a word, a half or a quarter of the warp is served in turn.
    """

    words: tuple[BankWord, ...]

    @property
    def turns(self) -> int:
        """The number of parts in which the warp is served, without bank conflicts."""
        return self.request.turns

    def wavefronts_of(self, turn: int) -> int:
        """How many passes a part of the warp takes."""
        return max((w.wavefront + 1 for w in self.words if w.turn == turn), default=0)

    @property
    def wavefronts(self) -> int:
        """The passes that the request takes."""
        return sum(map(self.wavefronts_of, range(self.turns)))

    @property
    def least(self) -> int:
        """The passes that it would take without conflicts."""
        counts = [sum(w.turn == turn for w in self.words) for turn in range(self.turns)]
        return sum(-(-count // BANKS) for count in counts)

    def _grids(self) -> Iterator[Grid]:
        """A grid for each part of the warp."""
        used = [turn for turn in range(self.turns) if self.wavefronts_of(turn)]
        return (self._grid(turn, len(used) > 1) for turn in used)

    def _grid(self, turn: int, is_part: bool) -> Grid:
        words = [w for w in self.words if w.turn == turn]
        rows, gaps = ticks((w.word // BANKS for w in words), most=0)
        row_of = {row: at for at, row in enumerate(rows)}
        counts = [sum(w.bank == bank for w in words) for bank in range(BANKS)]
        worst = [bank for bank, count in enumerate(counts) if count == max(counts) > 1]
        lanes = sorted({t % CUDA.warp for w in words for t in w.threads})
        cells = [self._cell(w, row_of[w.word // BANKS]) for w in words]
        empty = {(row, bank) for row in range(len(rows)) for bank in range(BANKS)}
        empty -= {(c.row, c.column) for c in cells}
        outlines = []
        for bank in worst:
            around = frozenset((row, bank) for row in range(len(rows)))
            title = f"bank {bank}: {counted(counts[bank], 'word')}, one after the other"
            outlines.append(Outline(around, "refused", title, thick=1.5))
        return Grid(
            title=f"lanes {runs(lanes)}" if is_part else "",
            rows=tuple(f"{row * BANKS * WORD} B" for row in rows),
            columns=tuple(map(str, range(BANKS))),
            row_name="from",
            column_name=f"banks, a word of {WORD} bytes each",
            cells=(*cells, *(Cell(r, b) for r, b in sorted(empty))),
            outlines=tuple(outlines) if len(worst) <= BANKS // 2 else (),
            row_gaps=gaps,
            column_feet=tuple(str(count or "") for count in counts),
        )

    def _cell(self, word: BankWord, row: int) -> Cell:
        lanes = [t % CUDA.warp for t in word.threads]
        place = f"byte {word.word * WORD}, bank {word.bank}"
        title = f"{place}: lane {runs(lanes)}, wavefront {word.wavefront}"
        shade = FILL if word.wavefront < 8 else 0.25
        return self._touched((row, word.bank), word.threads, title, word.wavefront, shade)

    def _legend(self, figure: Figure) -> Iterator[Key]:
        most = max(map(self.wavefronts_of, range(self.turns)), default=0)
        for wavefront in range(min(most, 8)):
            again = "" if most <= 8 or wavefront else ", 8, ..."
            yield Key(f"wavefront {wavefront}{again}", f"series-{wavefront}", FILL)
        if any(len(w.threads) > 1 for w in self.words):
            yield Key("one word for so many lanes, at once", label="×n")
        if any(grid.outlines for grid in figure.grids):
            yield Key("the banks with most words", stroke="refused")

    def _notes(self) -> Iterator[str]:
        count = self.wavefronts
        threads = len(self.request.touches)
        said = f"{counted(count, 'wavefront')} for {counted(threads, 'thread')}"
        if count == self.least:
            said += ": no conflicts."
        else:
            said += f", {self.least} would do without conflicts."
        yield said + " Below each bank stands how many of its words are touched."
        if self.turns > 1:
            part = CUDA.warp // self.turns
            yield (f"Elements of {self.request.itemsize} bytes: {part} lanes are served at a time.")
        yield from self.request.notes()


def bank_picture(kernel: Kernel, request: Request) -> BankPicture:
    """The words that a request touches, by banks; raises where it is not one of shared memory."""
    if request.space != "shared":
        raise InvalidArgumentError(
            f"'{request.array}' lies in {request.space} memory, which has no banks",
            instead=f"plot_access('{request.array}')" if request.space == "global" else "",
        )
    return BankPicture(kernel, request, tuple(_words(request)))


def _words(request: Request) -> Iterator[BankWord]:
    for turn, words in enumerate(request.words):
        passes = [0] * BANKS
        for word, threads in words.items():
            yield BankWord(word, turn, threads, passes[word % BANKS])
            passes[word % BANKS] += 1
