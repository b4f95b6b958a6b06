"""The cost of the accesses of warps: sectors of global memory, wavefronts of shared memory.

All counts are exact.  A *request* is one execution of an access by one warp, with the threads that
are active in it.  Its cost depends on the active threads and on their addresses modulo a period, so
that all requests of a class (:mod:`loopkit._costs.classes`) are counted at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from loopkit import _budget
from loopkit._costs.accesses import AddressMap
from loopkit._costs.classes import Classes, request_classes, request_columns
from loopkit._frozen import dataclass
from loopkit._poly.integer_points import Rows, System, TooManyPointsError, Walk

SECTOR = 32
"""Bytes of the pieces in which global memory is moved."""

LINE = 128
"""Bytes of a line of the first cache: alignment is told up to it."""

BANKS, WORD = 32, 4
"""Banks of shared memory, and the bytes of each; a move by whole words turns them in a circle."""

Extents = tuple[int, int, int]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class WarpCosts:
    """The requests of one access, all warps together.

    ``threads`` is how often a thread makes the access, ``elements`` how many different elements
    the requests touch.  ``pieces`` is what they take: sectors of global memory that they touch,
    wavefronts of shared memory; ``least_pieces`` is how many they would take if the elements of
    each request lay beside each other, ``most_pieces`` what the worst single request takes.
    ``alignment`` is the largest power of two that divides the lowest address of each request, in
    bytes, up to 128 in global and 4 in shared memory.
    """

    requests: int = 0
    threads: int = 0
    elements: int = 0
    pieces: int = 0
    least_pieces: int = 0
    most_pieces: int = 0
    alignment: int = LINE


@dataclass(frozen=True)
class Memory:
    """How requests are served: what they cost depends on addresses modulo ``period`` bytes.

    ``pieces`` gives, for each request, how many it takes, and how many at best: of the addresses of
    its threads, which of them take part, and the bytes of each.
    """

    period: int
    pieces: Callable[[Rows, Flags, int], tuple[Rows, Rows]]


@dataclass(frozen=True, eq=False)
class Lanes:
    """Classes of requests, and which threads of a block run in each of their cases.

    ``values`` are, for each part, the case, the thread, and values of ``names`` that are not of
    requests: what an address further depends on.
    """

    classes: Classes
    runs: Flags
    names: tuple[tuple[str, ...], ...]
    values: tuple[tuple[Rows, Rows, Rows], ...]


def moves(access: AddressMap, itemsize: int) -> dict[str, int]:
    """The number of bytes by which each name changes the address."""
    return {v.name: c * itemsize for v, c in access.address.terms.items()}


def lanes_of(
    access: AddressMap,
    found: Sequence[System],
    block: Extents,
    warp: int,
    moved: Mapping[str, int],
    period: int,
) -> Lanes:
    """The threads of an access in blocks of these extents; ``found`` holds its domain's points.

    Of ``moved``, only what it is for request names matters, modulo ``period``.  Raises
    :class:`TooManyPointsError` where there are too many cases.
    """
    classes = request_classes(found, access.requests, moved, period)
    threads = -(-prod(block) // warp) * warp
    if max(len(classes.values), len(classes.case)) * threads > _budget.POINTS // 4:
        raise TooManyPointsError
    runs = np.zeros((len(classes.values), threads), bool)
    names, values = [], []
    for number, system in enumerate(found):
        cases = np.flatnonzero(classes.systems[:, number])
        inner = request_columns(system, access.requests)
        part = system.within(
            [c for c, name in enumerate(system.names) if name in access.requests or c not in inner]
        )
        first = [part.names.index(name) for name in access.requests]
        walk = Walk(part, first)
        if walk.box is None:
            continue
        rows, origin = walk.continued(walk.order, classes.values[cases])
        column = {part.names[c]: number for number, c in enumerate(walk.order) if part.names[c]}
        thread = np.zeros(len(rows), np.int64)
        for axis in (2, 1, 0):
            lane = access.lanes[axis]
            thread = thread * block[axis]
            if lane is not None:
                thread += rows[:, column[lane[0]]] - lane[1]
        rest = [name for name in column if name not in access.requests]
        runs[cases[origin], thread] = True
        names.append(tuple(rest))
        values.append((cases[origin], thread, rows[:, [column[name] for name in rest]]))
    # A thread makes the access once in each request.
    assert sum(len(case) for case, _, _ in values) == runs.sum()
    return Lanes(classes, runs, tuple(names), tuple(values))


@dataclass(frozen=True, eq=False)
class Requests:
    """Classes of equal requests, one per row: thread addresses, active threads, multiplicity."""

    addresses: Rows
    runs: Flags
    times: Any

    def total(self, pieces: Rows) -> int:
        """The sum of what each takes."""
        return _total(pieces, self.times)


def requests_of(lanes: Lanes, moved: Mapping[str, int], start: int, warp: int) -> Requests:
    """The requests of an access with the first address ``start`` and strides ``moved`` by name."""
    classes = lanes.classes
    apart = np.zeros(lanes.runs.shape, np.int64)
    for names, (case, thread, values) in zip(lanes.names, lanes.values, strict=True):
        apart[case, thread] = values @ np.array([moved.get(n, 0) for n in names], np.int64)
    runs = lanes.runs[classes.case]
    addresses = apart[classes.case] + (classes.moved + start)[:, None]
    times = np.repeat(classes.times, runs.shape[1] // warp)
    runs, addresses = runs.reshape(-1, warp), addresses.reshape(-1, warp)
    active = runs.any(axis=1)
    return Requests(addresses[active], runs[active], times[active])


def warp_costs(
    lanes: Lanes, moved: Mapping[str, int], start: int, itemsize: int, warp: int, memory: Memory
) -> WarpCosts:
    """The cost of an access with the first address ``start`` and strides ``moved``, in bytes.

    Raises :class:`TooManyPointsError` where counting would take too long.
    """
    if not len(lanes.classes.case):
        return WarpCosts(alignment=memory.period)
    return costs_of(requests_of(lanes, moved, start, warp), itemsize, memory)


def costs_of(found: Requests, itemsize: int, memory: Memory) -> WarpCosts:
    """The total cost of requests."""
    addresses, runs, times = found.addresses, found.runs, found.times
    pieces, least = memory.pieces(addresses, runs, itemsize)
    lowest = np.where(runs, addresses, np.iinfo(np.int64).max).min(axis=1)
    together = int(np.bitwise_or.reduce(lowest, initial=memory.period))
    return WarpCosts(
        requests=sum(times.tolist()),
        threads=_total(runs.sum(axis=1), times),
        elements=_total(_different(addresses, runs), times),
        pieces=_total(pieces, times),
        least_pieces=_total(least, times),
        most_pieces=int(pieces.max(initial=0)),
        alignment=together & -together,
    )


def turns_of(addresses: Rows, used: Flags, itemsize: int, *, is_write: bool) -> Rows:
    """In how many turns shared memory serves each request: of wide elements a part of the warp.

    Half of the warp for elements of 8 bytes, a quarter for those of 16. Loads take half as many
    turns where the threads of all pairs that are one apart, or of all that are two apart, have the
    same address: what they return is packed then (NVIDIA's developer forum, "Unexpected shared
    memory bank conflict", 77228; confirmed by the counters in ``benchmarks/results``).
    """
    turns = np.full(len(addresses), max(-(-itemsize // WORD), 1))
    if itemsize > WORD and not is_write:
        lanes = np.arange(addresses.shape[1])
        alike = np.zeros(len(addresses), bool)
        for apart in (1, 2):
            other = lanes ^ apart
            same = (addresses == addresses[:, other]) | ~used | ~used[:, other]
            alike |= same.all(axis=1)
        turns[alike] //= 2
    return turns


def _total(each: Rows, times: Any) -> int:
    return sum(n * t for n, t in zip(each.tolist(), times.tolist(), strict=True))


def _sorted(values: Rows, used: Flags) -> tuple[Rows, Flags]:
    """Each row sorted, and which of its values are used and differ from the one before."""
    last = np.iinfo(np.int64).max
    ordered = np.sort(np.where(used, values, last), axis=1)
    new = np.ones(ordered.shape, bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return ordered, new & (ordered != last)


def _different(values: Rows, used: Flags) -> Rows:
    """How many different values each row has."""
    found: Rows = _sorted(values, used)[1].sum(axis=1)
    return found


def _sectors(addresses: Rows, used: Flags, itemsize: int) -> tuple[Rows, Rows]:
    """Sectors that each request touches; and the least that hold as many elements."""
    elements = _different(addresses, used)
    return _different(addresses // SECTOR, used), -(-elements * itemsize // SECTOR)


def _wavefronts(
    addresses: Rows, used: Flags, itemsize: int, *, is_write: bool
) -> tuple[Rows, Rows]:
    """Passes that each request takes: the most different words in a bank; and at best."""
    turns = turns_of(addresses, used, itemsize, is_write=is_write)
    found = np.zeros((2, len(addresses)), np.int64)
    for several in np.unique(turns).tolist():
        mine, lanes = turns == several, addresses.shape[1]
        # The lanes of each turn: where they do not divide a warp, some turns have one more.
        turn = np.arange(several)[:, None]
        lane = -(-turn * lanes // several) + np.arange(-(-lanes // several))
        runs = lane * several // lanes == turn
        lane = np.minimum(lane, lanes - 1)
        where, which = addresses[mine][:, lane], used[mine][:, lane] & runs
        shape = -1, lane.shape[1]
        parts = _passes(where.reshape(shape), which.reshape(shape), itemsize)
        found[:, mine] = [each.reshape(-1, several).sum(axis=1) for each in parts]
    return found[0], found[1]


def _passes(addresses: Rows, used: Flags, itemsize: int) -> tuple[Rows, Rows]:
    """Passes over the banks that each turn takes, and at best."""
    words = max(-(-itemsize // WORD), 1)
    each = (addresses // WORD)[:, :, None] + np.arange(words)
    ordered, new = _sorted(each.reshape(len(each), -1), np.repeat(used, words, axis=1))
    in_bank = np.zeros((len(each), BANKS), np.int64)
    row, column = np.nonzero(new)
    np.add.at(in_bank, (row, ordered[row, column] % BANKS), 1)
    return in_bank.max(axis=1, initial=0), -(-new.sum(axis=1) // BANKS)


GLOBAL = Memory(LINE, _sectors)
SHARED = Memory(WORD, partial(_wavefronts, is_write=False))
STORED = Memory(WORD, partial(_wavefronts, is_write=True))
"""Shared memory when it is loaded from, and when it is stored to."""


def memory_of(space: str, *, is_write: bool) -> Memory:
    """The properties of ``"global"`` or ``"shared"`` memory."""
    return GLOBAL if space == "global" else STORED if is_write else SHARED
