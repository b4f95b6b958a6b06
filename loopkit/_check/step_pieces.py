"""Steps after which several statements execute the instances of one, or statements are reordered.

Such steps split or distribute loops. Each old instance belongs to exactly one piece, and any two
instances that touch one cell keep their order. Pieces may have separate temporaries in place of a
common one, if each accumulator shows the values that the common one showed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, groupby, pairwise, product

import pymbolic.primitives as prim

from loopkit._cached import cached_property, once
from loopkit._check.compare_statements import StatementComparison
from loopkit._check.step_accesses import (
    AccessPair,
    StatementPair,
    StepAccess,
    accesses_of,
    by_array,
)
from loopkit._check.step_order import StepOrder
from loopkit._check.step_proof import StepProof
from loopkit._expression import Access, substitute
from loopkit._hidden import BASE, OTHER
from loopkit._kernel import Statement
from loopkit._poly.dataflow import dataflow_of
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, equal
from loopkit._poly.parallel_axes import Axis
from loopkit._relations import grouped


class Pieces:
    """A step, and for each new statement the old one of which it is a piece."""

    def __init__(self, step: StepProof) -> None:
        self.step = step
        self.old, self.new = step.old, step.new
        self._kept: dict[tuple[object, ...], bool] = {}

    def keep_all(self) -> bool:
        """Whether all values are preserved."""
        step = self.step
        return (
            step.keeps_data()
            and self.own_arrays is not None
            and step.keeps_launches()
            and self.order.keeps_axes()
            and not self.order.changed_axes
            and self.are_alike()
            and self.are_all()
            and all(map(self.keeps_order_in, {p.new.written: None for p in self.pairs.values()}))
            and all(map(self.keeps_values_apart, {*(self.own_arrays or {}).values()}))
        )

    @cached_property
    def own_arrays(self) -> Mapping[str, str] | None:
        """For each temporary that the step made, the old one; None where one is not like that."""
        old, new, found = self.old, self.new, dict[str, str]()
        for pair in self.step.pairs.values():
            if pair.new.written in self.step.new_arrays and (
                found.setdefault(pair.new.written, pair.old.written) != pair.old.written
            ):
                return None
        for mine, its in found.items():
            if its not in old.kernel.temporary_by_name:
                return None
            declared = replace(new.kernel.temporary_by_name[its], name=mine)
            if (
                new.kernel.temporary_by_name[mine] != declared
                or new.is_global(its)
                or _copies(new, mine) != _copies(new, its)
                or mine in new.kernel.bounding
            ):
                return None
        return found if found.keys() == self.step.new_arrays else None

    @cached_property
    def pairs(self) -> Mapping[str, StatementPair]:
        """The step's pairs; new statements speak of old arrays."""
        names = {new: prim.Variable(old) for new, old in (self.own_arrays or {}).items()}

        def translated(statement: Statement) -> Statement:
            if statement.names.isdisjoint(names):
                return statement
            return statement.map_expressions(lambda e: substitute(e, names))

        return {
            name: StatementPair(translated(pair.new), pair.old, pair.values)
            for name, pair in self.step.pairs.items()
        }

    @cached_property
    def order(self) -> StepOrder:
        """What is asked of the order of two statements."""
        step = self.step
        return StepOrder(step.old, step.new, self.pairs, step.lineage, step.injectivity)

    @cached_property
    def pieces(self) -> Mapping[str, tuple[StatementPair, ...]]:
        """The pieces of each old statement."""
        return grouped((pair.old.id, pair) for pair in self.pairs.values())

    def home(self, pair: StatementPair, array: str) -> str:
        """The array that a piece uses where the old statement used another one."""
        return next((n for n in self.new.statement[pair.new.id].names if self._is(n, array)), array)

    def _is(self, name: str, array: str) -> bool:
        return self.own_arrays is not None and self.own_arrays.get(name) == array

    def are_alike(self) -> bool:
        """Whether each piece computes what the statement did, under its conditions on data."""
        for pair in self.pairs.values():
            names, arrays = self.new.statement[pair.new.id].names, self.own_arrays or {}
            own = [arrays[n] for n in names if n in arrays]
            if len({*own}) != len(own) or not names.isdisjoint(own):
                return False  # two arrays in place of one
            comparison = StatementComparison(pair.values, self.new, pair.at)
            comparison.statements(_by_data(pair.old, self.old), _by_data(pair.new, self.new))
            if comparison.changes.more or comparison.changes.reads:
                return False
        return True

    def are_all(self) -> bool:
        """Whether each old instance belongs to exactly one piece."""
        if self.pieces.keys() != self.old.statement.keys():
            return False
        for name, pieces in self.pieces.items():
            if len(pieces) == 1:
                if not self.step.same_instances(pieces[0]):
                    return False
                continue
            left = self.step.wanted(name)
            for pair in pieces:
                kept = pair.old.inames - pair.values.keys()
                fresh = pair.new.inames - kept
                if not kept <= pair.new.inames or not (
                    fresh <= self.step.injectivity.determined_by(pair.values.values())
                ):
                    return False
                mine = self.step.reached(pair)
                if not mine.is_subset(left):
                    return False
                left = left - mine
            if not left.is_empty():
                return False
        return True

    def keeps_order_in(self, array: str) -> bool:
        """Whether accesses of an array come in the order in which they came, where they meet."""
        if self.new.combined_axes(array) or self.old.combined_axes(array):
            return False  # threads come together, once
        if {*self.new.copy_axes(array)} != {*self.old.copy_axes(array)}:
            return False  # each of more launches has its own, say
        if self.is_one_sequence:
            return True
        users = by_array(self.pairs.values(), self.old)[array]
        return all(
            self.keeps(one, two)
            for one, two in combinations_with_replacement(
                accesses_of(array, users, self.old, self.new), 2
            )
            if one.writes or two.writes
        )

    @cached_property
    def is_one_sequence(self) -> bool:
        """Whether all old instances are seen to come in the order in which they came.

        A loop that is written out has a copy of its body for each value, in order.
        """
        return self._in_sequence([*self.pairs.values()], 0, 0)

    def _in_sequence(self, pairs: Sequence[StatementPair], outer: int, before: int) -> bool:
        """The same within so many loops that all share now, and so many that they shared.

        What ran in one loop, or in one iteration of it that is written out, stands together now.
        """
        old, new = self.old.order, self.new.order

        def key(pair: StatementPair) -> tuple[object, object]:
            """Which loop the statement ran in, or else which one it is; and the iteration."""
            number, path = old.place(pair.old.id)
            return (
                (path[before], pair.values.get(path[before][0]))
                if path[before:]
                else (number, None)
            )

        runs = [(at, [*run]) for at, run in groupby(pairs, key)]
        for (mine, one), (its, two) in pairwise(runs):
            here, there = (new.place(p.new.id)[1][outer : outer + 1] for p in (one[-1], two[0]))
            first, second = mine[1], its[1]
            if mine[0] != its[0]:
                is_ahead = old.is_above(one[-1].old.id, two[0].old.id)
            else:
                is_ahead = isinstance(first, int) and isinstance(second, int) and first < second
            if not is_ahead or (here and here == there):
                return False
        for _, run in runs:
            loops = {new.place(p.new.id)[1][outer : outer + 1] for p in run}
            left = old.place(run[0].old.id)[1][before:]
            if not left:
                if loops != {()}:
                    return False
                continue
            value = run[0].values.get(left[0][0], prim.Variable(left[0][0]))
            is_loop = not isinstance(value, int)
            if is_loop and [[value]] != [[prim.Variable(i) for i, _ in some] for some in loops]:
                return False
            if not self._in_sequence(run, outer + is_loop, before + 1):
                return False
        return True

    def keeps(self, one: StepAccess, two: StepAccess) -> bool:
        """Whether two accesses, the first of them above the second, keep their order."""
        home = self.home(one.pair, one.array)
        if one.never_meets(two) or home != self.home(two.pair, two.array):
            return True
        is_above = self.old.order.is_above(one.pair.old.id, two.pair.old.id)
        is_one = one.pair.old.id == two.pair.old.id
        # Updates of one statement have no order among them, whichever piece makes them.
        itself = one.pair is two.pair or (is_one and one.commutes(two))
        pair = AccessPair(one, two, itself, frozenset(self.new.copy_axes(home)))

        def asked() -> bool:
            if (itself or is_above) and self.order.order_kept(pair)[0]:
                return True
            return self.order.order_asked(pair)[0]

        return once(self._kept, (*pair.key, is_above, is_one), asked)

    def keeps_values_apart(self, array: str) -> bool:
        """Whether each piece reads only values that were written in the temporary it reads now."""
        flow = dataflow_of(self.old.kernel)
        for reader, pieces in self.pieces.items():
            for access in dict.fromkeys(self.old.kernel.reads_of(self.old.statement[reader])):
                if access[0] != array:
                    continue
                for writer, same in flow.agreeing(reader, access).items():
                    # Pieces at different numeric values of an iname access different iterations.
                    both = (*pieces, *self.pieces[writer])
                    numbered = [
                        i for i in same if all(isinstance(p.values.get(i), int) for p in both)
                    ]
                    mine, its = (
                        grouped((tuple(p.values[i] for i in numbered), p) for p in some)
                        for some in (pieces, self.pieces[writer])
                    )
                    for at, here in mine.items():
                        for one, two in product(here, its.get(at, ())):
                            if self.home(one, array) != self.home(two, array) and self.meet(
                                one, two, access, same
                            ):
                                return False
        return True

    def meet(
        self, one: StatementPair, two: StatementPair, access: Access, same: frozenset[str]
    ) -> bool:
        """Whether a piece may read what another writes, with equal values of some old inames."""
        new, at = self.new, Instance(one.new.id, BASE)
        indices = new.indices(at, [substitute(i, one.values) for i in access[1]])
        both = new.domain(at) & new.writing(
            Instance(two.new.id, OTHER), new.cell(access[0], indices, at)
        )
        for iname in sorted(same):
            mine, its = (p.values.get(iname, prim.Variable(iname)) for p in (one, two))
            both = both & equal(new.named(mine, BASE), new.named(its, OTHER))
        return not both.is_empty()


def _copies(model: Model, array: str) -> tuple[Axis, ...]:
    """The axes along which an array has copies; pieces have own loops around launches."""
    axes = model.copy_axes(array)
    return tuple(axis for axis in axes if axis[0] != "launch" or axis[1] == 0)


def _by_data(statement: Statement, model: Model) -> Statement:
    """A statement under those of its conditions that data decide."""
    return replace(statement, predicates=tuple(model.conditions_on_data(statement)))
