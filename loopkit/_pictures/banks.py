"""Which threads touch which banks of shared memory in one request, and in how many passes."""

from __future__ import annotations

from collections.abc import Iterator

from loopkit._costs.requests import Request
from loopkit._costs.warps import BANKS, WORD
from loopkit._errors import InvalidArgumentError, counted
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._pictures.grid import FILL, Cell, Figure, Grid, Key, Outline, runs, ticks
from loopkit._pictures.picture import Picture
from loopkit._target import CUDA


@dataclass(frozen=True)
class BankWord:
    """A word of shared memory that threads touch: its bank, and the pass that serves it.

    Words of one bank take a pass each, in the order of their addresses here.
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
class BankPicture(Picture):
    """One warp's request to shared memory, by banks; see ``knl.plot_banks``.

    Of elements wider than a word, a half or a quarter of the warp is served in turn.
    """

    kernel: Kernel
    request: Request
    words: tuple[BankWord, ...]

    @property
    def turns(self) -> int:
        """In how many parts the warp is served, conflicts apart."""
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

    def figure(self) -> Figure:
        """Words of shared memory by banks, a grid for each part of the warp."""
        used = [turn for turn in range(self.turns) if self.wavefronts_of(turn)]
        grids = (self._grid(turn, len(used) > 1) for turn in used)
        return self._figure(self.request.title, (*self.request.sizes, *self.request.when), grids)

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
        return Cell(
            row,
            word.bank,
            str(lanes[0]) if len(lanes) == 1 else f"×{len(lanes)}",
            f"{place}: lane {runs(lanes)}, wavefront {word.wavefront}",
            f"series-{word.wavefront % 8}",
            FILL if word.wavefront < 8 else 0.25,
            statement=self.request.position,
        )

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
