"""Accesses whose subscripts differ by constants only: one question can be about all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from math import gcd

import islpy as isl

from loopkit._algebra.polynomials import minus, plus, scaled
from loopkit._algebra.terms import number
from loopkit._cached import cached_property
from loopkit._frozen import dataclass
from loopkit._relations import grouped
from loopkit.codegen.proof.forms import Form, floor, number_in, renamed, without_number
from loopkit.codegen.proof.proof_conditions import Condition
from loopkit.codegen.proof.spaces import at_most, equal
from loopkit.codegen.proof.text_tree import Touch

Cell = tuple[Form, ...]


@dataclass(frozen=True, eq=False)
class Kind:
    """Accesses that touch one cell, and are reached alike; ``touch`` is one of them.

    ``where`` they are reached, and their ``cell`` and ``place`` in memory, are in the names of
    hardware indices.  Sets hold the cell of one that ``is_simple``.
    """

    touch: Touch
    where: isl.Set
    cell: Cell | None
    place: Form
    is_simple: bool

    @cached_property
    def offset(self) -> tuple[int, ...]:
        """The constants in the subscripts."""
        return tuple(without_number(form)[1] for form in self.cell or ())

    @cached_property
    def family(self) -> object:
        """What accesses have in common that are of one family."""
        if self.cell is None or not self.is_simple:
            return self
        return self.touch.array, *(without_number(form)[0] for form in self.cell)


@dataclass(frozen=True, eq=False)
class Family:
    """Writes, or reads, of one family and their kinds, in the order of their offsets."""

    members: tuple[tuple[Kind, Touch], ...]

    @cached_property
    def kinds(self) -> list[Kind]:
        """The kinds of the accesses."""
        return [*dict.fromkeys(kind for kind, _ in self.members)]

    @cached_property
    def where(self) -> isl.Set:
        """A superset of where any of the accesses is reached."""
        sets = {id(kind.where): kind.where for kind in self.kinds}.values()
        return reduce(lambda a, b: (a | b).plain_unshifted_simple_hull().to_set(), sets)

    def is_like(self, other: Family) -> bool:
        """Whether sets can say where an access of each touch one cell."""
        first, second = self.kinds[0], other.kinds[0]
        is_one_array = first.touch.array == second.touch.array
        has_one_rank = len(first.offset) == len(second.offset)
        return first.is_simple and second.is_simple and is_one_array and has_one_rank

    @property
    def halves(self) -> tuple[Family, Family]:
        """The accesses of the smaller, and of the larger offsets."""
        middle = len(self.members) // 2
        return Family(self.members[:middle]), Family(self.members[middle:])


def families_of(members: Iterable[tuple[Kind, Touch]]) -> list[Family]:
    """Accesses by family."""
    keys = (((kind.family, t.is_write, t.atomic), (kind, t)) for kind, t in members)
    found = (sorted(own, key=lambda member: member[0].offset) for own in grouped(keys).values())
    return [*map(Family, map(tuple, found))]


def matched(one: Family, two: Family) -> Iterator[tuple[Family, Family]]:
    """The accesses of two families that agree where subscripts of both are numbers."""
    both = [family.kinds[0].cell or () for family in (one, two)]
    cells = zip(*both, strict=True) if one.is_like(two) else ()
    axes = [axis for axis, (a, b) in enumerate(cells) if None not in (number_in(a), number_in(b))]
    mine, its = (
        grouped((tuple(kind.offset[n] for n in axes), (kind, t)) for kind, t in family.members)
        for family in (one, two)
    )
    for numbers, members in mine.items():
        if numbers in its:
            part = Family(members)
            yield part, part if one is two else Family(its[numbers])


def one_cell(one: Family, two: Family, rename: Callable[[str], str]) -> Iterator[Condition]:
    """What holds wherever an access of one family and one of another touch one cell.

    The names of the other have others there.
    """
    mine, its = one.kinds, two.kinds
    for axis, (a, b) in enumerate(zip(mine[0].cell or (), its[0].cell or (), strict=True)):
        left, right = ([kind.offset[axis] for kind in kinds] for kinds in (mine, its))
        gap = minus(a, renamed(b, rename))
        gap = plus(gap, number(max(left) - left[0] + right[0] - min(right)))
        yield at_most(number(0), gap)
        yield at_most(gap, number(max(left) - min(left) + max(right) - min(right)))
        step = gcd(*(n - left[0] for n in left), *(n - right[0] for n in right))
        if step > 1:
            yield equal(gap, scaled(floor(gap, step), step))
