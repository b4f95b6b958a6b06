"""Scans across blocks in one launch: each block looks back at those before it.

A block takes a ticket, which is the number of its tile: so all tiles before it are of blocks that
run, or have run, and waiting for them ends.  It makes the scan of its tile, and publishes what
that adds up to.  Then the lanes of its last warp look at the tiles before, as many at a time: each
waits until a tile has published anything, its own sum or the whole up to it.  From the last tile
on of which the whole is known, they add up; and the block publishes the whole up to itself
(Merrill and Garland, Single-pass parallel prefix scan with decoupled look-back, 2016).

A value of at most 32 bits is published together with its flag, in one word: who sees the flag has
the value, and nobody waits for one store or load before the next.  Others are stored first, and
then their flag is raised.

Along other axes of blocks each row is scanned for itself: it has tiles and tickets of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
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
from loopkit.codegen.combine import Combining, Group, binary, integer, lanes_of, thread_number
from loopkit.codegen.hardware import Hardware
from loopkit.codegen.scan_ways import climbed, steps_of

AGGREGATE, PREFIX = 1, 2
"""What a tile has published: what it adds up to itself, or all up to it; 0 is nothing."""


@dataclass(frozen=True)
class TileState:
    """The arrays in global memory of one scan: for each tile a flag, its own, and all up to it.

    They are one array where flags and values are words.
    """

    flags: str
    aggregates: str
    prefixes: str

    @property
    def is_of_words(self) -> bool:
        return self.flags == self.prefixes


@dataclass(frozen=True)
class Tiles:
    """The tiles of a launch: a block takes one from the counter ``tickets`` of its row.

    ``drawn`` is where a thread leaves it for the others of its block, ``tile`` its name.  There
    are ``grid[axis]`` of them along block axis ``axis``, in each row along ``across``; ``row``
    names the place of its first one.  ``states`` are those of accumulators.
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
        """CUDA's word for what the ticket takes the place of."""
        return CUDA.index("g", self.axis)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that are made up."""
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
        """One thread takes a ticket for its block, and leaves it for the others."""
        row = self.row_number()
        drawn, counter = c.Name(self.drawn), c.Element(self.tickets, (row,))
        ticket = c.Call("atomicAdd", (c.Unary("&", counter), c.Number(1, "uint")))
        number = thread_number(block)
        return (
            c.Declaration("shared", "unsigned int", self.drawn, ()),
            *only(number, 0, (c.Assign(drawn, "=", ticket, None),)),
            c.Wait("block", "all threads of the block have its ticket"),
            c.Let("unsigned int", self.tile, drawn),
            *self.first_of(row),
        )

    def row_number(self) -> c.CExpression:
        """The number of a block's row: its index along the other axes."""
        if not self.across:
            return integer(0)
        *inner, last = self.across
        found: c.CExpression = c.Name(CUDA.index("g", last))
        for axis in reversed(inner):
            own = c.Name(CUDA.index("g", axis))
            found = c.Binary("+", own, c.Binary("*", _along(axis), found))
        return found

    def first_of(self, row: c.CExpression) -> tuple[c.Let, ...]:
        """The place of the first tile of a row, where there are several."""
        first = c.Let("long long", self.row, c.Binary("*", _along(self.axis), row))
        return (first,) if self.across else ()

    def cell(self, array: str, tile: c.CExpression) -> c.Element:
        """What a tile of this row has in an array."""
        return c.Element(array, (c.Binary("+", c.Name(self.row), tile) if self.across else tile,))

    def looked_back(
        self, combining: Combining, accumulator: str, number: c.CExpression
    ) -> list[c.Node]:
        """Behind the scan of a tile: each thread takes in what all tiles before have."""
        state = self.states[accumulator]
        threads = prod(combining.block)
        last, warp = threads - 1, (threads - 1) % CUDA.warp + 1
        before = c.Declaration("private", combining.ctype, combining.fresh("earlier"), ())
        earlier = replace(combining, target=c.Name(before.name))
        published = self._published(combining, state, state.aggregates, AGGREGATE)
        ahead = combining.scratch("ahead", 1)
        first = c.Element(ahead.name, (integer(0),))
        ended = (
            combining.stores(earlier.target, first),
            earlier.takes(combining.target),
            *self._published(earlier, state, state.prefixes, PREFIX),
        )
        window = c.Declaration("private", combining.ctype, combining.fresh("window"), ())
        near = replace(combining, target=c.Name(window.name))
        looked = self._windows(near, earlier, state, number, warp)
        looking = (combining.stores(combining.neutral, earlier.target), *looked)
        looking = (*looking, *only(number, last, ended))
        if threads > warp:
            looking = (c.If(binary(">=", number, threads - warp), looking),)
        return [
            before,
            window,
            ahead,
            *only(number, last, published),
            *looking,
            c.Wait("block"),
            combining.takes_before(first),
        ]

    def _published(
        self, combining: Combining, state: TileState, array: str, flag: int
    ) -> tuple[c.Node, ...]:
        """A thread leaves what it has for other blocks, and says what it is."""
        tile, level = c.Name(self.tile), c.Number(flag, "uint")
        place, raised = self.cell(array, tile), self.cell(state.flags, tile)
        if state.is_of_words:
            word = c.Call("lk_flagged", (level, combining.target))
            return (c.Assign(place, "=", word, None, PUBLISH_WORD),)
        stored = combining.stores(combining.target, place)
        return stored, c.Assign(raised, "=", level, None, PUBLISH)

    def _windows(
        self,
        near: Combining,
        earlier: Combining,
        state: TileState,
        number: c.CExpression,
        warp: int,
    ) -> list[c.Node]:
        """The lanes of a warp look at tiles before, until the whole up to one of them is known."""
        lanes = lanes_of(Group(1, warp, warp), number)
        own = binary("%", number, CUDA.warp) if prod(near.block) > CUDA.warp else number
        words = ("place", "behind", "at", "flag", "ready")
        lane, behind, at, flag, ready = (c.Name(near.fresh(word)) for word in words)
        start = binary("-", c.Cast("int", c.Name(self.tile)), warp)
        place = c.Binary("+", c.Binary("-", start, behind), lane)
        is_ready = c.Binary("==", flag, c.Number(PREFIX, "uint"))
        awaited, read = self._awaited(near, state, at, flag, is_ready)
        later = c.Binary(">", c.Binary(">>", ready, lane), c.Number(1, "uint"))
        skipped = c.Binary("||", binary("<", at, 0), later)
        body = (
            c.Let("int", at.name, place),
            *awaited,
            c.Let("unsigned int", ready.name, c.Call("__ballot_sync", (lanes, is_ready))),
            near.stores(c.Choice(skipped, near.neutral, read)),
            *climbed(near, lanes, [(step, step) for step in steps_of(warp)], lane),
            earlier.takes_before(near.target),
            c.If(c.Binary("!=", ready, c.Number(0, "uint")), (c.Break(None, None),)),
        )
        upper = c.Cast("int", c.Name(self.tile))
        slot = c.Let("int", lane.name, own)
        return [slot, c.For("int", behind.name, integer(0), upper, False, warp, body)]

    def _awaited(
        self,
        near: Combining,
        state: TileState,
        at: c.Name,
        flag: c.Name,
        is_ready: c.CExpression,
    ) -> tuple[tuple[c.Let, ...], c.CExpression]:
        """A lane waits for a tile, where there is one: its flag; and what it has published."""
        address = c.Unary("&", self.cell(state.flags, at))
        is_tile, known = binary(">=", at, 0), c.Number(PREFIX, "uint")
        if state.is_of_words:
            word = c.Name(near.fresh("word"))
            nothing = c.Call("lk_flagged", (known, integer(0)))
            found = c.Choice(is_tile, c.Call("lk_await_word", (address,)), nothing)
            half = c.Cast("unsigned int", c.Binary(">>", word, integer(32)))
            lets = (
                c.Let("unsigned long long", word.name, found),
                c.Let("unsigned int", flag.name, half),
            )
            return lets, c.Call(f"lk_value<{near.ctype}>", (word,))
        found = c.Choice(is_tile, c.Call("lk_await", (address,)), known)
        prefix, aggregate = (self.cell(a, at) for a in (state.prefixes, state.aggregates))
        read = c.Choice(is_ready, prefix, aggregate)
        return (c.Let("unsigned int", flag.name, found),), read


def only(number: c.CExpression, which: int, body: tuple[c.Node, ...]) -> tuple[c.Node, ...]:
    """What one thread does, of those with a number; all of it where there is but one thread."""
    return body if isinstance(number, c.Number) else (c.If(binary("==", number, which), body),)


def _along(axis: int) -> c.CExpression:
    """How many blocks there are along an axis."""
    return c.Cast("long long", c.Name(CUDA.grid_size[axis]))


def tiles_of(kernel: Kernel, hardware: Hardware) -> Tiles | None:
    """The tiles of a launch; None where no blocks look back."""
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
    """The arrays of a scan: one of words where a value leaves room for its flag."""
    dtype = kernel.temporary_by_name[accumulator].dtype
    if dtype is not None and has_room_for_flag(dtype):
        return TileState(*[fresh(f"{accumulator}_tiles")] * 3)
    words = ("flags", "aggregates", "prefixes")
    return TileState(*(fresh(f"{accumulator}_{word}") for word in words))
