"""A step's statements before and after it, on their hardware axes, and their accesses.

Accesses that are equivalent before and after the step are represented by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from loopkit._cached import cached_property, memoised
from loopkit._expression import substitute
from loopkit._frozen import dataclass
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._poly.dataflow import commute
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance
from loopkit._poly.parallel_axes import Axis
from loopkit._relations import grouped, reachable
from loopkit._same import key_of


@dataclass(frozen=True, eq=False)
class StatementPair:
    """A statement after the step and before it; ``values`` are old inames in terms of new ones."""

    new: Statement
    old: Statement
    values: Mapping[str, Expression]

    @cached_property
    def at(self) -> Instance:
        """An instance, inames not labelled."""
        return Instance(self.new.id, "")


@dataclass(frozen=True, eq=False)
class StepAccess:
    """One access of a statement after the step: subscripts over its inames of after the step.

    ``number`` counts the statements that access the array, in the order of the text.
    """

    number: int
    pair: StatementPair
    array: str
    indices: tuple[Expression, ...]
    writes: bool
    place: tuple[object, ...]

    @cached_property
    def kind(self) -> tuple[object, ...]:
        """What decides how it is ordered: where the statement runs, and what it touches."""
        return (*self.place, self.indices, self.writes, self.is_updated)

    @property
    def is_updated(self) -> bool:
        """Whether this is the write of an update, or its read of the same cell."""
        mine = self.pair.new
        return mine.operation is not None and (self.array, self.indices) == mine.write

    def never_meets(self, other: StepAccess) -> bool:
        """Whether the two are seen to touch different cells: a subscript is another number."""
        return any(
            isinstance(a, int) and isinstance(b, int) and a != b
            for a, b in zip(self.indices, other.indices, strict=False)
        )

    def commutes(self, other: StepAccess) -> bool:
        """Whether both belong to updates by one operation, whose order does not show."""
        mine = self.is_updated and other.is_updated
        return mine and commute(self.pair.new, other.pair.new)


@dataclass(frozen=True, eq=False)
class AccessPair:
    """Two accesses of one array, whose order a step must preserve.

    ``itself``: they belong to one statement. ``own`` are the axes along which the array exists
    once per index. In different iterations of ``loops``, the order does not matter.
    """

    one: StepAccess
    two: StepAccess
    itself: bool
    own: frozenset[Axis]
    loops: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[object, ...]:
        """The same for pairs that have one answer."""
        return self.own, self.one.kind, self.two.kind, self.itself, self.loops


def uses_of(model: Model, name: str) -> dict[str, tuple[bool, int]]:
    """For each statement that uses a name, whether it is written and how often it is read there."""
    reads = model.kernel.reads_of
    users = model.kernel.users(name)
    return {s.id: (s.written == name, [n for n, _ in reads(s)].count(name)) for s in users}


def by_array(pairs: Iterable[StatementPair], old: Model) -> dict[str, list[StatementPair]]:
    """The statements that access each name: what a statement writes, and what it read before."""
    found: dict[str, list[StatementPair]] = {}
    for pair in pairs:
        for name in {pair.new.written: None, **dict(old.kernel.reads_of(pair.old))}:
            found.setdefault(name, []).append(pair)
    return found


def accesses_of(
    array: str, pairs: Iterable[StatementPair], old: Model, new: Model
) -> list[StepAccess]:
    """All accesses of an array that some statement writes, by those that access it."""
    found = []
    # At the new indices of one that has more axes now fewer meet than did.
    before, after = (model.array(array).shape or () for model in (old, new))
    is_wide = len(after) > len(before)
    for number, pair in enumerate(pairs):
        place = (
            pair.old.inames,
            pair.new.inames,
            old.order.place(pair.old.id)[1],
            new.order.place(pair.new.id)[1],
            tuple(sorted(pair.values.items())),
            (pair.new.operation, pair.new.kind, new.order.launch(pair.new.id).number),
            # Under other conditions, others meet.
            key_of((pair.old.predicates, pair.new.predicates)),
            old.replicated_axes(pair.old.written),
            new.replicated_axes(pair.new.written),
        )
        if pair.new.written == array:
            found.append(StepAccess(number, pair, array, pair.new.write[1], True, place))
        # What is read now in place of something else is asked of the whole proof.
        reads = new.kernel.reads_of(pair.new) if is_wide else old.kernel.reads_of(pair.old)
        for name, indices in dict.fromkeys(reads):
            if name == array:
                mine = indices if is_wide else tuple(substitute(i, pair.values) for i in indices)
                found.append(StepAccess(number, pair, array, mine, False, place))
    return found


def by_place(accesses: list[StepAccess]) -> list[list[StepAccess]]:
    """Accesses by where their statements run; those of a statement are together."""
    return [[*group] for group in grouped((a.place, a) for a in accesses).values()]


def access_pairs(
    accesses: list[StepAccess], others: list[StepAccess] | None = None
) -> Iterator[tuple[StepAccess, StepAccess, bool]]:
    """Pairs of accesses to one array, one of them a write; of those that are alike, one.

    But one for each order in which two such statements stand in the text: the first of a pair is
    above the second.  With each, whether both belong to one statement.  ``others`` are those at
    another place.
    """
    mine = [*grouped((a.kind, a) for a in accesses).values()]
    its = [*grouped((a.kind, a) for a in others).values()] if others else None
    for at, first in enumerate(mine):
        for second in mine[at:] if its is None else its:
            if not (first[0].writes or second[0].writes):
                continue
            here, there = ({a.number: a for a in some} for some in (first, second))
            if both := here.keys() & there.keys():
                number = min(both)
                yield here[number], there[number], True
            for above, below in ((first, second), (second, first)):
                if above[0].number < below[-1].number:
                    yield above[0], below[-1], False
                if first is second:
                    break


def same_domains(before: Model, after: Model, inames: frozenset[str]) -> bool:
    """Whether what bounds some inames is what it was."""
    old, new = before.kernel, after.kernel
    if not inames <= old.home_domain.keys():
        return False
    around = reachable(inames, old.parents_of)
    return around <= new.home_domain.keys() and all(
        old.domains[old.home_domain[i]] == new.domains[new.home_domain[i]] for i in around
    )


class StepAxes:
    """A step's kernels, and its statements before and after by their new name, on their axes."""

    def __init__(self, old: Model, new: Model, pairs: Mapping[str, StatementPair]) -> None:
        self.old = old
        self.new = new
        self.pairs = pairs

    @cached_property
    def new_axes(self) -> tuple[Axis, ...]:
        """Hardware axes that nothing was on before."""
        return tuple(a for a in self.new.axes if a not in self.old.axes)

    @cached_property
    def changed_axes(self) -> tuple[Axis, ...]:
        """Hardware axes on which some statement has another coordinate than before."""
        return tuple(
            axis
            for axis in self.new.axes
            if axis in self.new_axes or any(self.moves(t, axis) for t in self.pairs.values())
        )

    @memoised
    def moves(self, pair: StatementPair, axis: Axis) -> bool:
        """Whether a statement's coordinate on an axis is not what it was.

        An iname that has another name now is what it was.
        """
        if axis in self.new_axes:
            return True
        before = self.old.coordinate(Instance(pair.old.id, ""), axis)
        if before is not None and pair.values:
            before = substitute(before, pair.values)
        return before != self.coordinate(pair, axis)

    @memoised
    def coordinate(self, pair: StatementPair, axis: Axis) -> Expression | None:
        """A statement's coordinate on an axis, as :meth:`ParallelAxes.coordinate` gives it."""
        return self.new.coordinate(pair.at, axis)

    @memoised
    def inames_on(self, pair: StatementPair, axis: Axis) -> tuple[str, ...]:
        """The inames of a statement on an axis."""
        return tuple(i for i in self.new.inames_on[axis] if i in pair.new.inames)
