"""The cheapest set cover: places (columns) that meet all needs, found exactly for small problems.

A need is a set of places of which at least one must be taken. A *strong* need requires its place
to be taken as a strong one, which costs a little more. Sets are bits of integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from math import inf

from loopkit import _budget
from loopkit._frozen import dataclass
from loopkit._relations import grouped
from loopkit._sets import linked

Need = tuple[int, bool]


@dataclass(frozen=True)
class _Column:
    """A place, taken as strong or not, and the needs that it meets."""

    place: int
    strong: bool
    serves: int
    cost: int

    @property
    def rank(self) -> tuple[int, int]:
        """Cheapest first; of equals, the last place."""
        return (self.cost, -self.place)


def bits(mask: int) -> list[int]:
    """The positions of the bits that are set."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def cheapest_cover(needs: Iterable[Need], cost: Callable[[int, bool], int]) -> dict[int, bool]:
    """The places that meet all needs at the least cost, and whether each is strong.

    ``cost(place, strong)`` is the cost of one place. Among equally cheap covers, later places are
    preferred. Beyond a size limit, the result is the best cover found so far, which is
    irredundant.
    """
    chosen: dict[int, bool] = {}
    for members in _components(_essential(needs)):
        for column in _solve(_columns(members, cost), (1 << len(members)) - 1):
            chosen[column.place] = chosen.get(column.place, False) or column.strong
    return chosen


def _essential(needs: Iterable[Need]) -> list[Need]:
    """The needs that are not implied by another need."""
    kept: list[Need] = []
    by_place: dict[int, list[Need]] = {}
    for mask, strong in sorted(set(needs), key=lambda need: (need[0].bit_count(), not need[1])):
        if any(
            other & ~mask == 0 and strong <= other_strong
            for place in bits(mask)
            for other, other_strong in by_place.get(place, ())
        ):
            continue
        kept.append((mask, strong))
        # Whoever holds this one as a subset holds its first place.
        by_place.setdefault((mask & -mask).bit_length() - 1, []).append((mask, strong))
    return kept


def _components(needs: list[Need]) -> list[tuple[Need, ...]]:
    """The connected components of the needs, which share no places with each other."""
    places = [bits(mask) for mask, _ in needs]
    groups = linked(dict.fromkeys(chain.from_iterable(places)), places)
    number = {place: position for position, group in enumerate(groups) for place in group}
    return list(grouped((number[bits(need[0])[0]], need) for need in needs).values())


def _columns(needs: Sequence[Need], cost: Callable[[int, bool], int]) -> list[_Column]:
    all_of: dict[int, int] = {}
    weak_of: dict[int, int] = {}
    for number, (mask, strong) in enumerate(needs):
        for place in bits(mask):
            all_of[place] = all_of.get(place, 0) | 1 << number
            if not strong:
                weak_of[place] = weak_of.get(place, 0) | 1 << number
    found = []
    for place, serves in all_of.items():
        weak = weak_of.get(place, 0)
        if weak:
            found.append(_Column(place, False, weak, cost(place, False)))
        if weak != serves:
            found.append(_Column(place, True, serves, cost(place, True)))
    return found


def _undominated(columns: list[_Column], left: int) -> list[_Column]:
    """The columns that no other column dominates, cheapest first."""
    kept: list[_Column] = []
    best: dict[int, _Column] = {}
    for column in columns:
        serves = column.serves & left
        if serves and (serves not in best or column.rank < best[serves].rank):
            best[serves] = column
    for serves, column in sorted(best.items(), key=lambda item: item[1].rank):
        # What is kept already costs no more.
        if not any(serves & ~(other.serves & left) == 0 for other in kept):
            kept = [
                other for other in kept if other.cost < column.cost or other.serves & left & ~serves
            ]
            kept.append(column)
    return kept


def _solve(columns: list[_Column], everything: int) -> list[_Column]:
    """A cheapest set of columns that meets all needs."""
    best: list[_Column] = []
    best_cost: float = inf
    steps = 0

    def search(columns: list[_Column], left: int, taken: list[_Column], spent: int) -> None:
        nonlocal best, best_cost, steps
        steps += 1
        if not left and spent < best_cost:
            best, best_cost = taken, spent
        if not left or (best and steps > _budget.BARRIER_PLACES):
            return
        columns = _undominated(columns, left)
        rows = {n: [c for c in columns if c.serves >> n & 1] for n in bits(left)}
        if spent + _least(rows) >= best_cost:
            return
        hardest = min(rows, key=lambda n: len(rows[n]))
        for position, column in enumerate(rows[hardest]):
            tried = rows[hardest][:position]
            others = [c for c in columns if c is not column and c not in tried]
            search(others, left & ~column.serves, [*taken, column], spent + column.cost)

    search(columns, everything, [], 0)
    return _irredundant(best, everything)


def _least(rows: dict[int, list[_Column]]) -> int:
    """A lower bound of the cost of all rows: the sum over rows without a common column."""
    total = 0
    seen: set[int] = set()
    for _, columns in sorted(rows.items(), key=lambda row: len(row[1])):
        if not any(id(c) in seen for c in columns):
            total += min(c.cost for c in columns) if columns else 0
            seen.update(id(c) for c in columns)
    return total


def _irredundant(columns: list[_Column], everything: int) -> list[_Column]:
    """A cover without redundant columns; the most expensive ones are dropped first."""
    kept = sorted(columns, key=lambda c: c.rank)
    for column in reversed(tuple(kept)):
        others = 0
        for other in kept:
            if other is not column:
                others |= other.serves
        if others & everything == everything:
            kept.remove(column)
    return kept
