"""How often a launch touches cells again, and by whom: the same thread, warp, block, or others."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._costs.accesses import AddressMap, Indices
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._poly.projection import distinct

WARP = hidden("warp")


@dataclass(frozen=True)
class Reuse:
    """How many cells an access touches: each once for each thread, warp, block, or at all.

    ``times`` is how often threads make the access, so that of these ``times``, ``times - threads``
    touch a cell that the same thread had touched, ``threads - warps`` one that only others of the
    warp had, ``warps - blocks`` one that only other warps of the block had, and ``blocks - cells``
    one that only other blocks had.
    """

    times: int
    threads: int
    warps: int
    blocks: int
    cells: int

    @property
    def again(self) -> Mapping[str, int]:
        """How often a cell is touched again, by who touched it before: the nearest counts."""
        return {
            "same thread": self.times - self.threads,
            "same warp": self.threads - self.warps,
            "same block": self.warps - self.blocks,
            "other blocks": self.blocks - self.cells,
        }


def reuse(
    access: AddressMap, times: int, block: tuple[int, int, int], warp: int, sizes: Mapping[str, int]
) -> Reuse:
    """Counts of the cells of an access that threads make so many ``times``.

    Raises :class:`TooManyPointsError` where that would take too long.
    """
    cells, whole = cells_of(access)
    blocks = access.block_names
    by_warp = with_warp(whole, access.lanes, block, warp)
    return Reuse(
        times,
        distinct(whole, (*blocks, *access.lane_names, *cells), sizes),
        distinct(by_warp, (*blocks, WARP, *cells), sizes),
        distinct(whole, (*blocks, *cells), sizes),
        distinct(whole, cells, sizes),
    )


def cells_of(access: AddressMap) -> tuple[tuple[str, ...], isl.Set]:
    """Names of the subscripts of the touched cell, and the domain of an access with these, too."""
    domain, cells = access.domain, tuple(hidden("cell", n) for n in range(len(access.cell)))
    for name, form in zip(cells, access.cell, strict=True):
        domain = domain & _sets.equality(name, form.expression)
    return cells, domain


def with_warp(domain: isl.Set, lanes: Indices, block: tuple[int, int, int], warp: int) -> isl.Set:
    """A domain with the number of the warp in its block, of a thread that ``lanes`` give."""
    strides = [(*lane, prod(block[:axis])) for axis, lane in enumerate(lanes) if lane]
    thread = prim.Sum(tuple(stride * (prim.Variable(n) - low) for n, low, stride in strides))
    return domain & _sets.equality(WARP, prim.FloorDiv(thread, warp))
