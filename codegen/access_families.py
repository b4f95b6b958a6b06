"""Array accesses of statements, grouped into families, and the sets where two accesses touch one
cell.

A family holds accesses whose subscripts differ only by constants, so that one question to isl
covers many pairs of accesses. The resulting sets are memoised across kernels, because the launches
of one kernel often ask about the same subscripts.
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
    """The accesses of one statement to one array, all reads or all writes: one index tuple per
    access.

    They all execute under the same ``guards``, the conditions within the statement's expressions.
    ``atomic`` is the operation of an atomic update, which reads and writes the cell in one step.
    """

    statement: str
    array: str
    cells: tuple[Cell, ...]
    is_write: bool
    guards: Guards = ()
    atomic: str | None = None

    def commutes(self, other: Access) -> bool:
        """Whether both are atomic updates with the same operation, so that their order is free."""
        return self.atomic is not None and self.atomic == other.atomic


Member = tuple[tuple[int, ...], Access, Cell]
"""The constants in the subscripts of a cell, an access that touches the cell, and the cell."""


@dataclass(frozen=True, eq=False)
class Family:
    """Writes, or reads, whose subscripts differ by constants only, in the order of these."""

    members: tuple[Member, ...]

    @property
    def halves(self) -> tuple[Family, Family]:
        """Two families: the members with the smaller constants, and those with the larger ones."""
        middle = len(self.members) // 2
        return Family(self.members[:middle]), Family(self.members[middle:])

    @property
    def accesses(self) -> list[Access]:
        """The distinct accesses of the members."""
        return [*{id(access): access for _, access, _ in self.members}.values()]

    def constants(self, axis: int) -> list[int]:
        """By how much each member's subscript along ``axis`` exceeds that of the first."""
        (first, _, _), *_ = self.members
        return [constants[axis] - first[axis] for constants, _, _ in self.members]


def matched(one: Family, two: Family) -> Iterator[tuple[Family, Family]]:
    """Corresponding parts of two families: those whose numeric subscripts are equal.

    Only axes along which the subscripts of both families are numbers are compared.
    """
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
    """The intersection of two sets, or None if it is empty."""
    found = one & two
    return None if found.is_empty() else found


@remembered(1 << 12)
def holds_somewhere(pairs: isl.Set, conditions: tuple[isl.Set, ...]) -> bool:
    """Whether one of the conditions holds for at least one of the pairs."""
    return any(not (pairs & condition).is_empty() for condition in conditions)


def apart(one: Expression, two: Expression) -> tuple[isl.Set, isl.Set]:
    """``{ one < two }``, and its mirror image."""
    less, more = (_sets.condition_set(prim.Comparison(one, op, two)) for op in "<>")
    return less, more


@remembered(1 << 12)
def hull(sets: tuple[isl.Set, ...]) -> isl.Set:
    """A superset of a union of sets: a conjunction of constraints that hold in all of them."""
    return reduce(lambda one, two: (one | two).plain_unshifted_simple_hull().to_set(), sets)
