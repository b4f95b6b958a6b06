"""Reuse of cells, and the minimum of bytes that memory must deliver and store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import AddressSpace
from loopkit._cached import once
from loopkit._costs.accesses import (
    AddressMap,
    Indices,
    accesses_of,
    address_map,
    in_calls,
    itemsize_of,
    space_of,
)
from loopkit._costs.launch_counts import ONCE, Calls
from loopkit._costs.warps import LINE
from loopkit._errors import InvalidArgumentError
from loopkit._expression import substitute
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._linear import NotAffineError
from loopkit._poly.dataflow import dataflow_of
from loopkit._poly.integer_points import EndlessError, TooManyPointsError
from loopkit._poly.model import Model, model_of
from loopkit._poly.pairs import Instance
from loopkit._poly.projection import distinct, distinct_in, seen
from loopkit._target import CUDA

if TYPE_CHECKING:
    from loopkit._costs.costs import Costs


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


def bytes_to_move(costs: Costs) -> int:
    """The bytes of cells that are written, and of those whose value from before the launch is read.

    Each cell counts once, with data-dependent conditions taken as true.  A value that the launch
    writes before it reads it need not come from memory, and a temporary, which is not visible
    outside, may stay in a cache.
    """
    from loopkit.codegen.prepare import prepare

    total = 0
    for footprint in costs.footprints:
        if footprint.array not in costs.source.arg_by_name:
            continue
        read, written = footprint.read, footprint.written
        if not isinstance(read, int) or not isinstance(written, int):
            why = "data decide, or there are too many cases"
            if read is not None and written is not None:
                why = "sizes were left open"
            given = ", ".join(f"{name}=..." for name in costs.needs)
            raise InvalidArgumentError(
                f"the number of bytes of '{footprint.array}' that a launch moves is not known: "
                f"{why}",
                asked=f"the roofline of {costs.kernel}",
                instead=f"costs({given})" if given else "",
            )
        if read and written:
            model = model_of(prepare(costs.source))
            with suppress(NotAffineError):  # data decide what is read: as if nothing was written
                read = from_before(model, footprint.array, dict(costs.sizes), costs.calls)
        total += read + written
    return total


def from_before(model: Model, array: str, sizes: Mapping[str, int], calls: Calls = ONCE) -> int:
    """The bytes of an array's cells that are read before the kernel has written them.

    Each call of a launch counts separately, and data-dependent conditions are taken as true.
    Raises :class:`NotAffineError` where the cells depend on data.
    """
    flow = dataflow_of(model.kernel)
    names: tuple[str, ...] = ()
    found: list[isl.Set] = []
    for access in accesses_of(model.kernel):
        if access.array != array or (access.is_write and not access.is_atomic):
            continue
        at = Instance(access.statement, "")
        if model.cell(array, model.indices(at, access.indices), at).by_data:
            raise NotAffineError(f"data decide which cells of '{array}' are read")
        guards = tuple(g for g in access.guards if model.condition(g) is not None)
        where = flow.unwritten(access.statement, (array, access.indices), guards)
        if where is None:
            continue
        names = tuple(hidden("cell", n) for n in range(len(access.indices)))
        for name, index in zip(names, access.indices, strict=True):
            value = substitute(index, sizes)
            where = where & _sets.affine_equality(prim.Variable(name), value)
        names = (*calls.loops, *names)
        found.append(seen(calls.among(where), names, sizes))
    many = distinct_in(found, names) if found else 0
    return many * itemsize_of(model.kernel, array)


def wavefronts_at_least(costs: Costs) -> int | None:
    """Wavefronts of shared memory that carry each element to a warp once, without conflicts.

    Once between writes to the array: what a loop reads again that writes nothing there, a thread
    may keep in registers.  None where that is not known.
    """
    from loopkit.codegen.prepare import prepare

    model = model_of(prepare(costs.source))
    kernel, sizes = model.kernel, dict(costs.sizes)
    counted: dict[object, int] = {}
    found: dict[object, int] = {}
    try:
        for number, access in enumerate(accesses_of(kernel)):
            if space_of(kernel, access.array) is not AddressSpace.LOCAL:
                continue
            where = in_calls(address_map(model, access, sizes, as_if=True), costs.calls)
            changing = {i for writer in kernel.writers[access.array] for i in writer.inames}
            kept = {
                *where.blocks,
                *costs.calls.loops,
                *(where.requests if access.is_write else changing),
            }
            kept &= {*where.requests}
            form = tuple(frozenset(f.terms.items()) for f in where.cell)
            # Cells that lie elsewhere by a constant are as many.
            alike = where.key, form, frozenset(kept)
            elements = once(counted, alike, _elements, where, sizes, costs.block, kept)
            needed = -(-elements * itemsize_of(model.kernel, access.array) // LINE)
            # Reads of one cell in several places may be one.
            same = access.array, form, tuple(f.constant for f in where.cell)
            place = number if access.is_write else same
            found[place] = max(found.get(place, 0), needed)
    except (NotAffineError, TooManyPointsError, EndlessError):
        return None
    return sum(found.values())


def _elements(
    where: AddressMap,
    sizes: Mapping[str, int],
    block: tuple[int, int, int],
    kept: Collection[str],
) -> int:
    """Elements that warps touch, each once for a warp and the values of some loops."""
    cells, domain = cells_of(where)
    by_warp = with_warp(domain, where.lanes, block, CUDA.warp)
    return distinct(by_warp, (*kept, WARP, *cells), sizes)
