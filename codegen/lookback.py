"""Scans across blocks in one launch: each block looks back at those before it.

A block takes a ticket, which is the number of its tile: so all tiles before it are of blocks that
run, or have run, and waiting for them ends.  It makes the scan of its tile, and publishes what
that adds up to.  Then the lanes of its last warp look at the tiles before, as many at a time: each
waits until a tile has published anything, its own sum or the whole up to it.  From the last tile
on of which the whole is known, they add up; and the block publishes the whole up to itself
(Merrill and Garland, Single-pass parallel prefix scan with decoupled look-back, 2016).

Along other axes of blocks each row is scanned for itself: it has tiles and tickets of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from loopkit._collectives import scanned_blocks
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._program import ArrayParam
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.combine import Combining, binary, integer, thread_number
from loopkit.codegen.hardware import Hardware
from loopkit.codegen.scan_ways import climbed, steps_of

UINT32 = np.dtype(np.uint32)
AGGREGATE, PREFIX = 1, 2
"""What a tile has published: what it adds up to itself, or all up to it; 0 is nothing."""


@dataclass(frozen=True)
class TileState:
    """The arrays in global memory of one scan: for each tile a flag, its own, and all up to it."""

    flags: str
    aggregates: str
    prefixes: str


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
        return (self.tickets, self.drawn, self.tile, self.row, *arrays)

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
        state, tile = self.states[accumulator], c.Name(self.tile)
        threads = prod(combining.block)
        last, warp = threads - 1, (threads - 1) % CUDA.warp + 1
        flag, prefix = (self.cell(name, tile) for name in (state.flags, state.prefixes))
        before = c.Declaration("private", combining.ctype, combining.fresh("earlier"), ())
        earlier = replace(combining, target=c.Name(before.name))
        published = (
            combining.stores(combining.target, self.cell(state.aggregates, tile)),
            _raised(flag, AGGREGATE),
        )
        ahead = combining.scratch("ahead", 1)
        first = c.Element(ahead.name, (integer(0),))
        ended = (
            combining.stores(earlier.target, first),
            earlier.takes(combining.target),
            combining.stores(earlier.target, prefix),
            _raised(flag, PREFIX),
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

    def _windows(
        self,
        near: Combining,
        earlier: Combining,
        state: TileState,
        number: c.CExpression,
        warp: int,
    ) -> list[c.Node]:
        """The lanes of a warp look at tiles before, until the whole up to one of them is known."""
        lanes: c.CExpression = c.Number((1 << warp) - 1, "uint")
        if warp == CUDA.warp:
            lanes = c.Unary("~", c.Number(0, "uint"))
        own = binary("%", number, CUDA.warp) if prod(near.block) > CUDA.warp else number
        words = ("place", "behind", "at", "flag", "ready")
        lane, behind, at, flag, ready = (c.Name(near.fresh(word)) for word in words)
        start = binary("-", c.Cast("int", c.Name(self.tile)), warp)
        place = c.Binary("+", c.Binary("-", start, behind), lane)
        awaited = c.Call("lk_await", (c.Unary("&", self.cell(state.flags, at)),))
        prefix, aggregate = (self.cell(a, at) for a in (state.prefixes, state.aggregates))
        is_tile, is_ready = binary(">=", at, 0), c.Binary("==", flag, c.Number(PREFIX, "uint"))
        later = c.Binary(">", c.Binary(">>", ready, lane), c.Number(1, "uint"))
        skipped = c.Binary("||", binary("<", at, 0), later)
        read = c.Choice(is_ready, prefix, aggregate)
        body = (
            c.Let("int", at.name, place),
            c.Let("unsigned int", flag.name, c.Choice(is_tile, awaited, c.Number(PREFIX, "uint"))),
            c.Let("unsigned int", ready.name, c.Call("__ballot_sync", (lanes, is_ready))),
            near.stores(c.Choice(skipped, near.neutral, read)),
            *climbed(near, lanes, [(step, step) for step in steps_of(warp)], lane),
            earlier.takes_before(near.target),
            c.If(c.Binary("!=", ready, c.Number(0, "uint")), (c.Break(None, None),)),
        )
        upper = c.Cast("int", c.Name(self.tile))
        slot = c.Let("int", lane.name, own)
        return [slot, c.For("int", behind.name, integer(0), upper, False, warp, body)]


def only(number: c.CExpression, which: int, body: tuple[c.Node, ...]) -> tuple[c.Node, ...]:
    """What one thread does, of those with a number; all of it where there is but one thread."""
    return body if isinstance(number, c.Number) else (c.If(binary("==", number, which), body),)


def _along(axis: int) -> c.CExpression:
    """How many blocks there are along an axis."""
    return c.Cast("long long", c.Name(CUDA.grid_size[axis]))


def _raised(flag: c.Element, value: int) -> c.Assign:
    """A flag is set: who sees it sees what was written before."""
    return c.Assign(flag, "=", c.Number(value, "uint"), None, "lk_publish")


def tiles_of(kernel: Kernel, hardware: Hardware) -> Tiles | None:
    """The tiles of a launch; None where no blocks look back."""
    scanned = [t.name for t in kernel.temporaries if scanned_blocks(kernel, t.name)]
    if not scanned:
        return None
    (axis,) = scanned_blocks(kernel, scanned[0])
    taken: list[str] = []

    def fresh(base: str) -> str:
        taken.append(kernel.fresh_name(base, taken))
        return taken[-1]

    states = {
        name: TileState(*(fresh(f"{name}_{word}") for word in ("flags", "aggregates", "prefixes")))
        for name in scanned
    }
    names = (fresh("tickets"), fresh("ticket"), fresh("tile"), fresh("row"))
    across = tuple(other for other in hardware.used_axes("g") if other != axis)
    return Tiles(axis, across, hardware.grid, *names, states)
