"""Families of accesses whose subscripts differ only by constants: one question covers all."""

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
    """Accesses with equal cells and scopes; ``touch`` is one of them.

    ``where`` (the scope as a set), ``cell`` and ``place`` in memory are over the hardware indices.
    ``is_simple`` says that sets can represent the cell.
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
        """The key that all accesses of a family share."""
        if self.cell is None or not self.is_simple:
            return self
        return self.touch.array, *(without_number(form)[0] for form in self.cell)


@dataclass(frozen=True, eq=False)
class Family:
    """The writes, or the reads, of one family with their kinds, ordered by their offsets."""

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
        """Whether sets can represent where an access of each family touch one cell."""
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
    """Accesses grouped into families."""
    keys = (((kind.family, t.is_write, t.atomic), (kind, t)) for kind, t in members)
    found = (sorted(own, key=lambda member: member[0].offset) for own in grouped(keys).values())
    return [*map(Family, map(tuple, found))]


def matched(one: Family, two: Family) -> Iterator[tuple[Family, Family]]:
    """Corresponding parts of two families: those whose numeric subscripts are equal."""
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
    """Constraints that hold if an access of each family touch one cell.

    The second family's names are renamed.
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
