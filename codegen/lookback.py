"""Scans across the blocks of one launch, by decoupled look-back.

Each block takes a ticket from an atomic counter; the ticket is the number of its tile. All tiles
with lower numbers therefore belong to blocks that have already started, so waiting for them cannot
deadlock. The block scans its tile and publishes the tile's total. Then the lanes of its last warp
inspect the preceding tiles, one tile per lane: each waits until its tile has published either its
own total or its inclusive prefix. The lanes add up from the last tile with a known prefix on, and
the block publishes its own inclusive prefix (Merrill and Garland, Single-pass parallel prefix scan
with decoupled look-back, 2016).

A value of at most 32 bits is stored together with its flag in one word, so that one load returns
both. Larger values are stored first, and their flag is set afterwards.

Along other block axes each row of blocks is scanned separately, with tiles and tickets of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from loopkit._collectives import scanned_blocks
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._program import ArrayParam
from loopkit._promotion import UINT32, UINT64
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.atomics import PUBLISH, PUBLISH_WORD
from loopkit.codegen.c.calls import has_room_for_flag
from loopkit.codegen.combine import lanes_of
from loopkit.codegen.combining import Combining, statements, thread_number
from loopkit.codegen.hardware import Hardware
from loopkit.codegen.scan_ways import climbed

AGGREGATE, PREFIX = 1, 2
"""What a tile has published: what it adds up to itself, or all up to it; 0 is nothing."""


@dataclass(frozen=True)
class TileState:
    """The global arrays of one scan: for each tile a flag, its own total and its inclusive prefix.

    They are a single array of words if a value and its flag fit into one word.
    """

    flags: str
    aggregates: str
    prefixes: str

    @property
    def is_of_words(self) -> bool:
        return self.flags == self.prefixes


@dataclass(frozen=True)
class Tiles:
    """The tiles of a launch: each block takes one from the counter ``tickets`` of its row.

    ``drawn`` is the shared variable for the ticket, ``tile`` the name of its value. There are
    ``grid[axis]`` tiles along block axis ``axis``, in each row along ``across``; ``row`` names the
    position of the row's first tile. ``states`` maps accumulators to their arrays.
    """

    axis: int
    across: tuple[int, ...]
    grid: tuple[Expression, Expression, Expression]
    tickets: str
    drawn: str
    tile: str
    row: str
    states: Mapping[str, TileState]

    @property
    def word(self) -> str:
        """CUDA's name of the block index that the ticket replaces."""
        return CUDA.index("g", self.axis)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that were generated."""
        arrays = (n for s in self.states.values() for n in (s.flags, s.aggregates, s.prefixes))
        return (self.tickets, self.drawn, self.tile, self.row, *dict.fromkeys(arrays))

    def parameters(self, kernel: Kernel) -> tuple[ArrayParam, ...]:
        """The arrays that a launch takes; counter and flags must be zero."""

        def array(
            name: str, dtype: np.dtype[np.generic], count: Expression, role: str
        ) -> ArrayParam:
            return ArrayParam(name, dtype, (count,), (1,), False, True, role)

        rows = prod(self.grid[axis] for axis in self.across)
        count = prod(self.grid[axis] for axis in (self.axis, *self.across))
        found = [array(self.tickets, UINT32, rows, "cleared")]
        for accumulator, state in self.states.items():
            dtype = kernel.temporary_by_name[accumulator].dtype
            assert dtype is not None
            if state.is_of_words:
                found.append(array(state.flags, UINT64, count, "cleared"))
                continue
            found.append(array(state.flags, UINT32, count, "cleared"))
            found.append(array(state.aggregates, dtype, count, "state"))
            found.append(array(state.prefixes, dtype, count, "state"))
        return tuple(found)

    def taking(self, block: tuple[int, int, int]) -> tuple[c.Node, ...]:
        """Code: one thread takes a ticket for its block and shares it with the other threads."""
        row = self.row_number()
        drawn = f"{self.drawn} = atomicAdd(&{self.tickets}[{row}], 1u);"
        text = f"""__shared__ unsigned int {self.drawn};
            {only(prod(block), 0, drawn)}
            __syncthreads();  // all threads of the block have its ticket
            unsigned int const {self.tile} = {self.drawn};
            {self.first_of(row)}"""
        return statements(text, {"NUMBER": thread_number(block)})

    def row_number(self) -> str:
        """The number of a block's row: its index along the other axes."""
        if not self.across:
            return "0"
        *inner, last = self.across
        found = CUDA.index("g", last)
        for axis in reversed(inner):
            found = f"{CUDA.index('g', axis)} + {_along(axis)} * ({found})"
        return found

    def first_of(self, row: str) -> str:
        """The position of the first tile of a row, if there are several rows."""
        return f"long long const {self.row} = {_along(self.axis)} * ({row});" * bool(self.across)

    def cell(self, array: str, tile: str) -> str:
        """The element of an array that belongs to a tile of this row."""
        return f"{array}[{self.row} + {tile}]" if self.across else f"{array}[{tile}]"

    def looked_back(
        self, combining: Combining, accumulator: str, number: c.CExpression
    ) -> tuple[c.Node, ...]:
        """Code after the scan of a tile: each thread combines the prefix of all preceding tiles."""
        state, ctype = self.states[accumulator], combining.ctype
        threads = prod(combining.block)
        last, warp = threads - 1, (threads - 1) % CUDA.warp + 1
        ended = f"""ahead[0] = earlier;
            earlier = JOIN(earlier, TARGET);
            {self._published("earlier", state, state.prefixes, PREFIX)}"""
        looking = f"""earlier = NEUTRAL;
            {self._windows(ctype, state, threads, warp)}
            {only(threads, last, ended)}"""
        if threads > warp:
            looking = f"if (NUMBER >= {threads - warp}) {{ {looking} }}"
        aggregate = self._published("TARGET", state, state.aggregates, AGGREGATE)
        text = f"""{ctype} earlier; {ctype} window; __shared__ {ctype} ahead[1];
            {only(threads, last, aggregate)}
            {looking}
            __syncthreads();
            TARGET = JOIN(ahead[0], TARGET);"""
        return combining.nodes(text, {"NUMBER": number}, keeps_short=True)

    def _published(self, value: str, state: TileState, array: str, flag: int) -> str:
        """Code: a thread publishes a value for other blocks, with a flag that says which one."""
        place, raised = self.cell(array, self.tile), self.cell(state.flags, self.tile)
        if state.is_of_words:
            return f"{PUBLISH_WORD}(&{place}, lk_flagged({flag}u, {value}));"
        return f"{place} = {value}; {PUBLISH}(&{raised}, {flag}u);"

    def _windows(self, ctype: str, state: TileState, threads: int, warp: int) -> str:
        """Code: lanes of a warp inspect windows of preceding tiles until a prefix is known."""
        lanes = lanes_of(warp)
        own = f"NUMBER % {CUDA.warp}" if threads > CUDA.warp else "NUMBER"
        awaited, read = self._awaited(ctype, state)
        return f"""int const place = {own};
            for (int behind = 0; behind < (int){self.tile}; behind += {warp}) {{
                int const at = (int){self.tile} - {warp} - behind + place;
                {awaited}
                unsigned int const ready = __ballot_sync({lanes}, flag == {PREFIX}u);
                window = at < 0 || ready >> place > 1u ? NEUTRAL : {read};
                {climbed(lanes, warp, "place", target="window")}
                earlier = JOIN(window, earlier);
                if (ready != 0u) break;
            }}"""

    def _awaited(self, ctype: str, state: TileState) -> tuple[str, str]:
        """Code: a lane waits for the flag of its tile, if there is one, and reads its value."""
        flag, prefix, aggregate = (
            self.cell(array, "at") for array in (state.flags, state.prefixes, state.aggregates)
        )
        if state.is_of_words:
            found = f"at >= 0 ? lk_await_word(&{flag}) : lk_flagged({PREFIX}u, 0)"
            half = "unsigned int const flag = (unsigned int)(word >> 32);"
            return f"unsigned long long const word = {found}; {half}", f"lk_value<{ctype}>(word)"
        found = f"unsigned int const flag = at >= 0 ? lk_await(&{flag}) : {PREFIX}u;"
        return found, f"flag == {PREFIX}u ? {prefix} : {aggregate}"


def only(threads: int, which: int, body: str) -> str:
    """Code for one of the threads that have a ``NUMBER``; without a guard for a single thread."""
    return body if threads == 1 else f"if (NUMBER == {which}) {{ {body} }}"


def _along(axis: int) -> str:
    """The number of blocks along an axis, as C text."""
    return f"(long long){CUDA.grid_size[axis]}"


def tiles_of(kernel: Kernel, hardware: Hardware) -> Tiles | None:
    """The tiles of a launch; None if no scan crosses blocks."""
    scanned = [t.name for t in kernel.temporaries if scanned_blocks(kernel, t.name)]
    if not scanned:
        return None
    (axis,) = scanned_blocks(kernel, scanned[0])
    fresh = kernel.fresh_names()
    states = {name: _state_of(kernel, name, fresh) for name in scanned}
    names = (fresh("tickets"), fresh("ticket"), fresh("tile"), fresh("row"))
    across = tuple(other for other in hardware.used_axes("g") if other != axis)
    return Tiles(axis, across, hardware.grid, *names, states)


def _state_of(kernel: Kernel, accumulator: str, fresh: Callable[[str], str]) -> TileState:
    """The arrays of a scan: one array of words if a value leaves room for its flag."""
    dtype = kernel.temporary_by_name[accumulator].dtype
    if dtype is not None and has_room_for_flag(dtype):
        return TileState(*[fresh(f"{accumulator}_tiles")] * 3)
    words = ("flags", "aggregates", "prefixes")
    return TileState(*(fresh(f"{accumulator}_{word}") for word in words))
