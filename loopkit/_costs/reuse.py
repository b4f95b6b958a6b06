"""How often a launch touches cells again, and by whom: the same thread, warp, block, or others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from loopkit._costs.accesses import AddressMap
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._linear import Linear
from loopkit._poly.integer_points import Box, Rows, System
from loopkit._poly.linear_rows import least
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
    access: AddressMap, found: Sequence[System], times: int, block: tuple[int, int, int], warp: int
) -> Reuse:
    """Counts of the cells of an access; ``found`` holds the points of its domain.

    Raises :class:`TooManyPointsError` where that would take too long.
    """
    cells, whole = cells_of(access, found)
    by_warp = [with_warp(system, access, block, warp) for system in whole]
    return Reuse(
        times,
        distinct(whole, (*access.block_names, *access.lane_names, *cells)),
        distinct(by_warp, (*access.block_names, WARP, *cells)),
        distinct(whole, (*access.block_names, *cells)),
        distinct(whole, cells),
    )


def cells_of(access: AddressMap, found: Sequence[System]) -> tuple[tuple[str, ...], list[System]]:
    """Names of the subscripts of the touched cell, and systems over these names, too."""
    cells = tuple(hidden("cell", n) for n in range(len(access.cell)))
    forms = dict(zip(cells, access.cell, strict=True))
    return cells, [_with_values(system, forms) for system in found]


def _with_values(system: System, forms: Mapping[str, Linear]) -> System:
    """A system with further names, for the values of linear forms."""
    place = {name: column for column, name in enumerate(system.names) if name}
    width, more = len(system.names), len(forms)
    rows = np.zeros((more, width + more + 1), np.int64)
    for number, form in enumerate(forms.values()):
        for variable, coefficient in form.terms.items():
            rows[number, place[variable.name]] = coefficient
        rows[number, width + number] = -1
        rows[number, -1] = form.constant
    return System(
        (*system.names, *forms),
        np.concatenate([_wider(system.equalities, more), rows]),
        _wider(system.inequalities, more),
        system.domain,
        _bounds(system, [[*row[:width], row[-1]] for row in rows.tolist()]),
    )


def _bounds(system: System, rows: Sequence[Sequence[int]]) -> Box | None:
    """The bounds of names, and of further ones that have the values of rows."""
    if system.box is None:
        return None
    low, high = system.box
    ends = [(least(row, low, high), -least([-c for c in row], low, high)) for row in rows]
    return [*low, *(a for a, _ in ends)], [*high, *(b for _, b in ends)]


def with_warp(system: System, access: AddressMap, block: tuple[int, int, int], warp: int) -> System:
    """A system with the number of the warp in its block."""
    row = np.zeros(len(system.names) + 2, np.int64)
    for axis, lane in enumerate(access.lanes):
        if lane is not None:
            stride = prod(block[:axis])
            row[system.names.index(lane[0])] += stride
            row[-1] -= stride * lane[1]
    row[-2] = -warp
    last = (prod(block) - 1) // warp
    other = -row
    other[-1] += warp - 1
    return System(
        (*system.names, WARP),
        _wider(system.equalities, 1),
        np.concatenate([_wider(system.inequalities, 1), [row, other]]),
        system.domain,
        None if system.box is None else ([*system.box[0], 0], [*system.box[1], last]),
    )


def _wider(rows: Rows, more: int) -> Rows:
    """Rows with so many further names, which they are not about."""
    return np.insert(rows, [rows.shape[1] - 1] * more, 0, axis=1)
