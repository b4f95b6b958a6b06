"""What statements touch of an array, families of accesses, and where two touch one cell, as sets.

One question can be about two families. Sets are remembered, also from one kernel to the next:
launches of one kernel often ask the same, of the words that coordinates are here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from math import gcd

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._expression import is_constant
from loopkit._frozen import dataclass
from loopkit._guarded import Guards
from loopkit._nodes import Expression
from loopkit._relations import grouped
from loopkit._same import remembered

Cell = tuple[Expression, ...]


@dataclass(frozen=True)
class Access:
    """What a statement reads of an array, or writes to it: index tuples, one per access.

    All of them happen under ``guards`` alone, conditions within the statement's expressions.
    ``atomic`` is the operation of an atomic update, which reads and writes at once.
    """

    statement: str
    array: str
    cells: tuple[Cell, ...]
    is_write: bool
    guards: Guards = ()
    atomic: str | None = None

    def commutes(self, other: Access) -> bool:
        """Whether both are atomic updates by one operation: they need no order."""
        return self.atomic is not None and self.atomic == other.atomic


Member = tuple[tuple[int, ...], Access, Cell]
"""The constants in the subscripts of a cell, an access that touches the cell, and the cell."""


@dataclass(frozen=True, eq=False)
class Family:
    """Writes, or reads, whose subscripts differ by constants only, in the order of these."""

    members: tuple[Member, ...]

    @property
    def halves(self) -> tuple[Family, Family]:
        """Those of the smaller, and of the larger constants."""
        middle = len(self.members) // 2
        return Family(self.members[:middle]), Family(self.members[middle:])

    @property
    def accesses(self) -> list[Access]:
        """Each access once."""
        return [*{id(access): access for _, access, _ in self.members}.values()]

    def constants(self, axis: int) -> list[int]:
        """By how much a subscript of each member is greater than that of the first."""
        (first, _, _), *_ = self.members
        return [constants[axis] - first[axis] for constants, _, _ in self.members]


def matched(one: Family, two: Family) -> Iterator[tuple[Family, Family]]:
    """The members of two families that agree where subscripts of both are numbers."""
    (_, first, cell), (_, second, other) = one.members[0], two.members[0]
    both = zip(cell, other, strict=True) if first.array == second.array else ()
    axes = [axis for axis, indices in enumerate(both) if all(map(is_constant, indices))]
    found = [
        grouped((tuple(member[2][axis] for axis in axes), member) for member in family.members)
        for family in (one, two)
    ]
    for numbers, mine in found[0].items():
        if numbers in found[1]:
            part = Family(mine)
            yield part, part if one is two else Family(found[1][numbers])


def one_cell(one: Family, cell: Cell, two: Family, other: Cell) -> isl.Set:
    """Where a cell of one family is one of the other; their first cells in the names of a set."""
    relations: list[tuple[Expression, str, Expression]] = []
    for axis, (mine, its) in enumerate(zip(cell, other, strict=True)):
        left, right = one.constants(axis), two.constants(axis)
        gap = prim.Sum((mine, prim.Product((-1, its))))
        low, high = min(right) - max(left), max(right) - min(left)
        relations += [(gap, ">=", low), (gap, "<=", high)]
        step = gcd(*left, *right)
        if step > 1:
            relations.append((prim.Remainder(prim.Sum((gap, -low)), step), "==", 0))
    return _sets.comparisons(relations)


@remembered(1 << 12)
def equal(one: tuple[Expression, ...], two: tuple[Expression, ...]) -> isl.Set:
    """Where the affine indices of two cells are equal."""
    pairs = (pair for pair in zip(one, two, strict=True) if pair[0] != pair[1])
    return _sets.intersection(_sets.pw_affine(a).eq_set(_sets.pw_affine(b)) for a, b in pairs)


@remembered(1 << 12)
def common(one: isl.Set, two: isl.Set) -> isl.Set | None:
    """What two sets have in common; None where that is nothing."""
    found = one & two
    return None if found.is_empty() else found


@remembered(1 << 12)
def holds_somewhere(pairs: isl.Set, conditions: tuple[isl.Set, ...]) -> bool:
    """Whether one of several conditions holds somewhere."""
    return any(not (pairs & condition).is_empty() for condition in conditions)


def apart(one: Expression, two: Expression) -> tuple[isl.Set, isl.Set]:
    """``{ one < two }``, and its mirror image."""
    less, more = (_sets.condition_set(prim.Comparison(one, op, two)) for op in "<>")
    return less, more


@remembered(1 << 12)
def hull(sets: tuple[isl.Set, ...]) -> isl.Set:
    """A set around several ones, of constraints that hold in all of them."""
    return reduce(lambda one, two: (one | two).plain_unshifted_simple_hull().to_set(), sets)
