"""The accesses of a step's statements: each as it was and as it is, those that are alike as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loopkit._cached import cached_property
from loopkit._expression import substitute
from loopkit._frozen import dataclass
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._poly.dataflow import commute
from loopkit._poly.pairs import Instance
from loopkit._poly.program_order import ProgramOrder


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
    """One access of a statement after the step: subscripts over its inames of after the step."""

    pair: StatementPair
    indices: tuple[Expression, ...]
    writes: bool
    kind: tuple[object, ...]

    @property
    def is_updated(self) -> bool:
        """Whether this is the write of an update, or its read of the same cell."""
        return self.pair.new.operation is not None and self.indices == self.pair.new.write[1]

    def commutes(self, other: StepAccess) -> bool:
        """Whether both belong to updates by one operation, whose order does not show."""
        mine = self.is_updated and other.is_updated
        return mine and commute(self.pair.new, other.pair.new)


def accesses_of(
    pairs: Sequence[StatementPair], old: ProgramOrder, new: ProgramOrder
) -> dict[str, list[StepAccess]]:
    """All accesses of each array that some statement writes."""
    written = {t.new.written for t in pairs}
    found: dict[str, list[StepAccess]] = {name: [] for name in written}
    for pair in pairs:
        kind = (
            pair.old.inames,
            pair.new.inames,
            old.place(pair.old.id)[1],
            new.place(pair.new.id)[1],
            tuple(sorted(pair.values.items())),
            (pair.new.operation, pair.new.kind),
        )
        name, indices = pair.new.write
        found[name].append(StepAccess(pair, indices, True, (*kind, indices, True)))
        # What is read now in place of something else is asked of the whole proof.
        for name, indices in dict.fromkeys(pair.old.reads):
            if name in written:
                mine = tuple(substitute(i, pair.values) for i in indices)
                is_own = name == pair.new.written and mine == pair.new.write[1]
                found[name].append(StepAccess(pair, mine, False, (*kind, mine, False, is_own)))
    return found


def access_pairs(accesses: list[StepAccess]) -> Iterator[tuple[StepAccess, StepAccess, bool]]:
    """Pairs of accesses to one array, one of them a write; of those that are alike, one.

    With each, whether both belong to one statement.
    """
    groups: dict[tuple[object, ...], dict[str, StepAccess]] = {}
    for access in accesses:
        groups.setdefault(access.kind, {})[access.pair.new.id] = access
    kinds = [*groups.values()]
    for number, mine in enumerate(kinds):
        for its in kinds[number:]:
            one, two = next(iter(mine.values())), next(iter(its.values()))
            if not (one.writes or two.writes):
                continue
            if mine.keys() & its.keys():
                yield one, two, True
            if len(mine.keys() | its.keys()) > 1:
                yield one, two, False
