"""Counts of a kernel's accesses at given sizes, with shared results for similar accesses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import islpy as isl

from loopkit._arrays import ArrayArg, TemporaryVariable
from loopkit._cached import once
from loopkit._costs.accesses import (
    Access,
    AddressMap,
    address_map,
    in_calls,
    itemsize_of,
    space_of,
    text_of,
)
from loopkit._costs.by_data import ByData, cells_touched
from loopkit._costs.cost_values import SPACES, AccessCosts, Footprint
from loopkit._costs.data_values import NO_DATA, Data
from loopkit._costs.launch_counts import ONCE, Calls
from loopkit._costs.traffic import Reuse, cells_of, reuse
from loopkit._costs.warps import (
    Lanes,
    Memory,
    Requests,
    WarpCosts,
    lanes_of,
    memory_of,
    moves,
    requests_of,
    warp_costs,
)
from loopkit._frozen import dataclass
from loopkit._linear import Linear, NotAffineError, total
from loopkit._poly.integer_points import (
    EndlessError,
    Rows,
    System,
    TooManyPointsError,
    systems,
)
from loopkit._poly.model import Model
from loopkit._poly.projection import distinct_in, seen
from loopkit._target import CUDA

UNCOUNTED = (NotAffineError, TooManyPointsError, EndlessError)


@dataclass(frozen=True, eq=False)
class CellRequests:
    """Requests, and the index along each axis of the cell that each thread touches."""

    cells: tuple[Rows, ...]
    requests: Requests
    memory: Memory
    itemsize: int

    def pieces(self, elements: Rows) -> int:
        """What all take if cells lay so many elements from the first one."""
        addresses, found = elements * self.itemsize, self.requests
        return found.total(self.memory.pieces(addresses, found.runs, self.itemsize)[0])


class Counting:
    """Counts accesses of a kernel at sizes, in blocks of these extents, in all of its calls.

    What data decide is counted with those at hand, of what is called once.
    """

    def __init__(
        self,
        model: Model,
        sizes: Mapping[str, int],
        block: tuple[int, int, int],
        calls: Calls = ONCE,
        data: Data = NO_DATA,
    ) -> None:
        self.model = model
        self.by_data = ByData(model, sizes, block, NO_DATA if calls.loops else data)
        self.sizes = sizes
        self.block = block
        self.calls = calls
        self._systems: dict[object, list[System]] = {}
        self._lanes: dict[object, Lanes] = {}
        self._warps: dict[object, WarpCosts] = {}
        self._reuse: dict[object, Reuse] = {}

    def space(self, access: Access) -> str:
        """The name of the memory of an access; empty for registers."""
        return SPACES.get(space_of(self.model.kernel, access.array), "")

    def itemsize(self, access: Access) -> int:
        """The bytes of an element."""
        return itemsize_of(self.model.kernel, access.array)

    def address(
        self, access: Access, array: ArrayArg | TemporaryVariable | None = None
    ) -> AddressMap:
        """The address map of an access, with all data-dependent conditions taken as true.

        Calls of the launch are distinguished, also in the subscripts of the cells.
        """
        where = address_map(self.model, access, self.sizes, array, as_if=True)
        calls = (Linear({form: 1}) for form in self.calls.forms)
        return replace(in_calls(where, self.calls), cell=(*where.cell, *calls))

    def systems(self, where: AddressMap) -> list[System]:
        """The points of the domain of an access."""
        return once(self._systems, where.key, systems, where.domain, where.names, self.sizes)

    def costs(self, access: Access) -> AccessCosts:
        """What an access costs."""
        return self.with_reuse(access, self.without_reuse(access))

    def with_reuse(self, access: Access, found: AccessCosts) -> AccessCosts:
        """What it costs, with who touches its cells again."""
        if found.counts is None or found.reuse is not None or found.space != "global":
            return found
        where = self.by_sets(access)
        if where is None:
            return found
        with suppress(TooManyPointsError):
            return replace(found, reuse=self.reuse(where, found.counts.threads))
        return found

    def without_reuse(self, access: Access) -> AccessCosts:
        """What an access costs; who touches its cells again only where data say it."""
        space, itemsize = self.space(access), self.itemsize(access)
        counts, touched, why, at_most = None, None, "", False
        try:
            where = self.by_sets(access)
            if where is None:
                counts, touched = self.by_data.costs(access, itemsize, space)
            else:
                at_most = where.at_most
                counts = self.requests(where, itemsize, space, is_write=access.is_write)
        except NotAffineError:
            why = "data decide"
        except (TooManyPointsError, EndlessError):
            why = "too many cases"
        return AccessCosts(
            access.statement,
            text_of(access),
            access.array,
            space,
            access.is_write,
            itemsize,
            counts,
            why,
            touched,
            at_most,
            access.is_atomic,
            self.by_data.missing(access) if at_most or counts is None else (),
        )

    def by_sets(self, access: Access) -> AddressMap | None:
        """Like :meth:`address`; None where data at hand say it.

        Raises :class:`NotAffineError` where data decide that are not at hand.
        """
        known = self.by_data.knows(self.by_data.wanted_by(access))
        try:
            where = self.address(access)
        except NotAffineError:
            if known:
                return None
            raise
        return None if where.at_most and known else where

    def requests(
        self, where: AddressMap, itemsize: int, space: str, *, is_write: bool
    ) -> WarpCosts:
        """The requests of an access; shared by accesses whose addresses differ by whole periods."""
        memory = memory_of(space, is_write=is_write)
        start = where.address.constant * itemsize % memory.period
        moved = moves(where, itemsize)
        period = memory.period
        key = where.key, frozenset(n for n in moved.items() if n[1]), start, itemsize, memory
        if key not in self._warps:
            kind = where.key, period, tuple(moved.get(n, 0) % period for n in where.requests)
            of = where, self.systems(where), self.block, CUDA.warp, moved, period
            lanes = once(self._lanes, kind, lanes_of, *of)
            self._warps[key] = warp_costs(lanes, moved, start, itemsize, CUDA.warp, memory)
        return self._warps[key]

    def cells(self, access: Access, array: TemporaryVariable, shape: Sequence[int]) -> CellRequests:
        """The requests of an access, with the cells of an array of that shape that they touch.

        Raises what :data:`UNCOUNTED` lists.
        """
        where = self.address(access, replace(array, swizzles=()))
        # An address that identifies the cell: each index has bits of its own.
        steps = [1]
        for extent in reversed(shape):
            steps.insert(0, steps[0] << (extent - 1).bit_length())
        period, *strides = steps
        parts = [form * stride for form, stride in zip(where.cell, strides, strict=False)]
        where = replace(where, address=total(parts))
        moved = moves(where, 1)
        lanes = lanes_of(where, self.systems(where), self.block, CUDA.warp, moved, period)
        found = requests_of(lanes, moved, where.address.constant, CUDA.warp)
        cells = (found.addresses % above // step for above, step in pairwise(steps))
        memory = memory_of("shared", is_write=access.is_write)
        return CellRequests(tuple(cells), found, memory, self.itemsize(access))

    def reuse(self, where: AddressMap, times: int) -> Reuse:
        """The reuse of cells; shared by accesses whose subscripts differ by constants."""
        key = where.key, tuple(map(_key, where.cell))
        return once(self._reuse, key, reuse, where, times, self.block, CUDA.warp, self.sizes)


Touch = tuple[Counting, Access]
"""An access, and what counts it."""


def footprints_of(touches: Iterable[Touch], *, apart: bool = True) -> Iterator[Footprint]:
    """The number of bytes of each array in global memory that accesses use.

    Each element counts once per call of a launch (``apart``), or once in all calls.
    """
    by_array: dict[str, tuple[list[Touch], list[Touch]]] = {}
    for touch in touches:
        counter, access = touch
        if counter.space(access) == "global":
            both = by_array.setdefault(access.array, ([], []))
            both[access.is_write].append(touch)
            if access.is_atomic:
                both[False].append(touch)
    for name, both in by_array.items():
        (read, once), (written, too) = (bytes_of(some, apart=apart) for some in both)
        yield Footprint(name, read, written, once or too)


def bytes_of(touches: Sequence[Touch], *, apart: bool) -> tuple[int | None, bool]:
    """The bytes of an array that accesses use, None if unknown; and if that is an upper bound.

    Each element counts once per call of a launch (``apart``), or once in all calls.
    """
    if not touches:
        return 0, False
    found: list[isl.Set] = []
    surely: list[isl.Set] = []
    names: tuple[str, ...] = ()
    try:
        maps = [counter.by_sets(access) for counter, access in touches]
        counter, access = touches[0]
        if None in maps:
            return cells_touched((c.by_data, a) for c, a in touches) * counter.itemsize(
                access
            ), False
        for (counter, access), where in zip(touches, maps, strict=True):
            assert where is not None
            names, domain = cells_of(where)
            names = names if apart else names[: len(access.indices)]
            touched = seen(domain, names, counter.sizes)
            found.append(touched)
            surely += [] if where.at_most else [touched]
        many = distinct_in(found, names)
        at_most = len(surely) < len(found) and many > (distinct_in(surely, names) if surely else 0)
        return many * counter.itemsize(access), at_most
    except UNCOUNTED:
        return None, False


def _key(form: Linear) -> object:
    return frozenset((atom.name, c) for atom, c in form.terms.items() if c)
