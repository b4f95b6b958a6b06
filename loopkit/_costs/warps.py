"""What the accesses of warps cost: sectors of global memory, wavefronts of shared memory.

Exact counts. Threads of consecutive index make a warp; a *request* is one execution of an access
by one warp, with those of its threads that run it. What a request costs depends on which of its
threads run and on where their addresses lie within a line of 128 bytes, so requests are counted
by that: for each group of linked names (:mod:`loopkit._poly.integer_points`), all patterns of
threads and addresses that occur, and how often; patterns of different groups combine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from itertools import product
from math import prod
from operator import add, and_
from typing import Any

import numpy as np

from loopkit import _budget, _sets
from loopkit._costs.accesses import AddressMap
from loopkit._frozen import dataclass
from loopkit._poly.integer_points import (
    UNKNOWN,
    Rows,
    System,
    TooManyPointsError,
    enumerated,
    points_of,
    systems,
)

SECTOR = 32
"""Bytes of the pieces in which global memory is moved."""

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
    each request lay beside each other.
    """

    requests: int = 0
    threads: int = 0
    elements: int = 0
    pieces: int = 0
    least_pieces: int = 0

    def __add__(self, other: WarpCosts) -> WarpCosts:
        return WarpCosts(*map(sum, zip(self._numbers(), other._numbers(), strict=True)))

    def __mul__(self, times: int) -> WarpCosts:
        return WarpCosts(*(n * times for n in self._numbers()))

    def _numbers(self) -> tuple[int, ...]:
        return tuple(getattr(self, name) for name in self.__match_args__)


@dataclass(frozen=True)
class Memory:
    """How requests are served: what they cost depends on addresses modulo ``period`` bytes."""

    period: int
    pieces: Callable[[Rows, Flags, int], tuple[int, int]]


@dataclass(frozen=True, eq=False)
class _Pattern:
    """Threads of a block that run an access together, and their addresses in bytes.

    Both arrays have axes for the threads (z, y, x), of length 1 where nothing depends on them.
    ``bases`` says how often the pattern occurs, moved by how many bytes within a period.
    """

    bases: Counter[int]
    runs: Flags
    addresses: Rows


def warp_costs(
    access: AddressMap,
    sizes: Mapping[str, int],
    block: Extents,
    itemsize: int,
    warp: int,
    memory: Memory,
) -> WarpCosts:
    """What an access costs at these sizes, in blocks of these extents.

    Raises :class:`TooManyPointsError` where that would take too long.
    """
    lanes = {lane[0]: axis for axis, lane in enumerate(access.lanes) if lane is not None}
    names = (*access.requests, *lanes, *access.others)
    found = systems(access.domain, names, sizes)
    factors = {v.name: c * itemsize for v, c in access.address.terms.items()}
    make = partial(_patterns, access=access, block=block, factors=factors, period=memory.period)
    bases = Counter({access.address.constant * itemsize % memory.period: 1})
    tables = [[_Pattern(bases, _existing(access, block), np.zeros((1, 1, 1), np.int64))]]
    if not found:
        return WarpCosts()
    for part in _independent(found, names):
        if any(name in lanes for name in part.names):
            tables.append(make(part.points, part.names))
        else:
            moves = _moves(part, factors, memory.period)
            tables.append(
                [_Pattern(moves, np.ones((1, 1, 1), bool), np.zeros((1, 1, 1), np.int64))]
            )
    if prod(map(len, tables)) > _budget.PATTERNS:
        raise TooManyPointsError
    total = WarpCosts()
    for chosen in product(*tables):
        runs = reduce(and_, (p.runs for p in chosen))
        addresses = reduce(add, (p.addresses for p in chosen))
        bases = reduce(partial(_both, period=memory.period), (p.bases for p in chosen))
        for base, times in bases.items():
            total += _requests(runs, addresses + base, itemsize, warp, memory) * times
    return total


def _existing(access: AddressMap, block: Extents) -> Flags:
    """All threads of a block, but those beside index 0 of axes where nothing else runs."""
    runs = np.ones(block[::-1], bool)
    for axis, lane in enumerate(access.lanes):
        if lane is None:
            np.moveaxis(runs, 2 - axis, 0)[1:] = False
    return runs


def _patterns(
    points: Rows,
    names: Sequence[str],
    access: AddressMap,
    block: Extents,
    factors: Mapping[str, int],
    period: int,
) -> list[_Pattern]:
    """What threads do together at the values of other names that there are."""
    place = {name: column for column, name in enumerate(names) if name}
    axes = [a for a, lane in enumerate(access.lanes) if lane is not None and lane[0] in place]
    thread = np.zeros(len(points), np.int64)
    for axis in reversed(axes):
        name, low = access.lanes[axis] or ("", 0)
        thread = thread * block[axis] + points[:, place[name]] - low
    others = [place[name] for name in access.requests if name in place]
    requests, number = np.unique(points[:, others], axis=0, return_inverse=True)
    threads = prod(block[axis] for axis in axes)
    if len(requests) * threads > _budget.POINTS:
        raise TooManyPointsError
    runs = np.zeros((len(requests), threads), bool)
    addresses = np.zeros((len(requests), threads), np.int64)
    place_of = number.reshape(-1), thread
    runs[place_of] = True
    addresses[place_of] = points @ np.array([factors.get(name, 0) for name in names], np.int64)
    first = np.where(runs, addresses, np.iinfo(np.int64).max).min(axis=1, initial=UNKNOWN)
    addresses = np.where(runs, addresses - first[:, None], 0)
    kinds, kind = np.unique(np.hstack([runs, addresses]), axis=0, return_inverse=True)
    moved, times = np.unique(
        np.column_stack([kind.reshape(-1), first % period]), axis=0, return_counts=True
    )
    bases: list[Counter[int]] = [Counter() for _ in kinds]
    for (one, base), n in zip(moved.tolist(), times.tolist(), strict=True):
        bases[one][base] = n
    shape = [block[axis] if axis in axes else 1 for axis in (2, 1, 0)]
    return [
        _Pattern(base, row[:threads].reshape(shape) != 0, row[threads:].reshape(shape))
        for row, base in zip(kinds, bases, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _Part:
    """Names whose values do not depend on those of others, and how to find them."""

    names: tuple[str, ...]
    system: System | None = None
    table: Rows | None = None

    @property
    def points(self) -> Rows:
        """All values, a row each."""
        if self.system is not None:
            return enumerated(self.system)
        assert self.table is not None
        return self.table

    def __len__(self) -> int:
        return len(self.points) if self.system is None else points_of(self.system)


def _independent(found: Sequence[System], names: tuple[str, ...]) -> list[_Part]:
    """Groups of names.

    Several systems are a product of what each group can be, where that has as many points as
    they have together; where it has more, all names are one group.
    """
    if len(found) == 1:
        return [_Part(part.names, system=part) for part in found[0].parts]
    links = [[n for n in part.names if n] for system in found for part in system.parts]
    parts = []
    for group in _sets.linked(names, links):
        columns = sorted(group, key=names.index)
        points = [enumerated(s.restricted(group))[:, : len(group)] for s in found]
        parts.append(_Part(tuple(columns), table=np.unique(np.concatenate(points), axis=0)))
    if prod(map(len, parts)) == sum(map(points_of, found)):
        return parts
    whole = [enumerated(s)[:, : len(names)] for s in found]
    return [_Part(names, table=np.concatenate(whole))]


def _moves(part: _Part, factors: Mapping[str, int], period: int) -> Counter[int]:
    """How often names that are of no thread move addresses by how much, within a period."""
    row = np.array([factors.get(name, 0) % period for name in part.names], np.int64)
    if not row.any():
        return Counter({0: len(part)})
    places, times = np.unique(part.points @ row % period, return_counts=True)
    return Counter(dict(zip(places.tolist(), times.tolist(), strict=True)))


def _both(one: Counter[int], two: Counter[int], period: int) -> Counter[int]:
    """How often sums of moves occur."""
    found: Counter[int] = Counter()
    for (a, n), (b, m) in product(one.items(), two.items()):
        found[(a + b) % period] += n * m
    return found


def _requests(runs: Flags, addresses: Rows, itemsize: int, warp: int, memory: Memory) -> WarpCosts:
    """What one execution costs, in all warps of a block."""
    runs, addresses = np.broadcast_arrays(runs, addresses)
    missing = -runs.size % warp
    running = np.pad(runs.reshape(-1), (0, missing)).reshape(-1, warp)
    touched = np.pad(addresses.reshape(-1), (0, missing)).reshape(-1, warp)
    pieces, least = memory.pieces(touched, running, itemsize)
    return WarpCosts(
        requests=int(running.any(axis=1).sum()),
        threads=int(running.sum()),
        elements=int(_different(touched, running).sum()),
        pieces=pieces,
        least_pieces=least,
    )


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


def _sectors(addresses: Rows, used: Flags, itemsize: int) -> tuple[int, int]:
    """Sectors that requests touch; and the least that hold as many elements."""
    elements = _different(addresses, used)
    least = -(-elements * itemsize // SECTOR)
    return int(_different(addresses // SECTOR, used).sum()), int(least.sum())


def _wavefronts(addresses: Rows, used: Flags, itemsize: int) -> tuple[int, int]:
    """Passes of shared memory: the most different words in one bank; and without conflicts."""
    words = -(-itemsize // WORD)
    # Of wide elements, a half or a quarter of the warp is served in turn.
    turns = (
        addresses.reshape(-1, addresses.shape[1] // words),
        used.reshape(-1, used.shape[1] // words),
    )
    each = (turns[0] // WORD)[:, :, None] + np.arange(words)
    ordered, new = _sorted(each.reshape(len(each), -1), np.repeat(turns[1], words, axis=1))
    in_bank = np.zeros((len(each), BANKS), np.int64)
    row, column = np.nonzero(new)
    np.add.at(in_bank, (row, ordered[row, column] % BANKS), 1)
    least = -(-new.sum(axis=1) // BANKS)
    return int(in_bank.max(axis=1, initial=0).sum()), int(least.sum())


GLOBAL = Memory(SECTOR, _sectors)
SHARED = Memory(WORD, _wavefronts)
