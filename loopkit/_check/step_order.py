"""Whether a step preserves the order of all conflicting accesses, and what threads own.

Two accesses to one cell, one of them a write, must keep their order. Accesses on different threads
of a block are ordered by barriers in the order of loops and text; those of one statement in the
same iteration, and those of different blocks, have no order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._cached import cached_property, once
from loopkit._check.injectivity import Injectivity
from loopkit._check.instance_maps import Lineage
from loopkit._check.step_accesses import (
    AccessPair,
    StatementPair,
    StepAccess,
    StepAxes,
    access_pairs,
    accesses_of,
    by_array,
    by_place,
    same_domains,
)
from loopkit._check.step_meetings import is_decided_outside, order_is_same
from loopkit._check.step_values import KeptValues
from loopkit._expression import variable_names
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._poly.parallel_axes import Axis

NONE: frozenset[str] = frozenset()


class StepOrder(StepAxes):
    """The order of accesses after a step, compared with the one before it.

    ``pairs`` are the statements before and after, by their new name.
    """

    def __init__(
        self,
        old: Model,
        new: Model,
        pairs: Mapping[str, StatementPair],
        lineage: Lineage,
        injectivity: Injectivity,
    ) -> None:
        super().__init__(old, new, pairs)
        self.injectivity = injectivity
        self.values = KeptValues(self, lineage, injectivity)
        self.private: set[str] = set()
        self._orders_kept: dict[tuple[object, ...], tuple[bool, bool]] = {}

    def keeps_axes(self) -> bool:
        """Whether what stays on an axis stays as it is, and no more runs in other blocks."""
        old, new = self.old, self.new
        if not set(old.axes) <= set(new.axes):
            return False
        mine = frozenset().union(*(t.new.inames for t in self.pairs.values()))
        # Threads that are still to be found (``l.auto``) may be those of copies.
        if any(
            axis[0] == "ilp" or (isinstance(axis[1], str) and mine & {*new.inames_on[axis]})
            for axis in self.new_axes
        ) or any(axis[0] == "ilp" for axis in old.axes):
            return False
        for axis in old.axes:
            before = frozenset(old.inames_on[axis])
            if any(before & t.old.inames and self.moves(t, axis) for t in self.pairs.values()):
                return False
            # Of those that run in all blocks of a launch there must not be more.
            if axis[0] == "g" and not all(
                self.coordinate(t, axis) is not None or self.same_range(t, axis)
                for t in self.pairs.values()
            ):
                return False
        return all(
            len(self.inames_on(t, axis)) <= 1
            for axis in self.changed_axes
            for t in self.pairs.values()
        )

    def same_range(self, pair: StatementPair, axis: Axis) -> bool:
        """Whether an axis has the inames that it had in a launch, in the same bounds."""
        before = self.old.launched_on(pair.old.id, axis)
        after = self.new.launched_on(pair.new.id, axis)
        return len(before) == len(after) and same_domains(self.old, self.new, frozenset(before))

    def other_launches(self, one: StatementPair, two: StatementPair) -> bool:
        """Whether two statements are in two launches, which run one after the other."""
        launch = self.new.order.launch
        return launch(one.new.id).number != launch(two.new.id).number

    def keeps_all(self) -> bool:
        """Whether :meth:`keeps_array` holds of all arrays that are written."""
        if not self.changed_axes and self.same_nest():
            return True
        return all(map(self.keeps_array, {pair.new.written: None for pair in self.pairs.values()}))

    def keeps_array(self, name: str) -> bool:
        """Whether accesses of an array are seen to come in the order in which they came.

        Where they meet, and on axes along which each index has its own array from now on.
        """
        if self.new_copy_axes(name) is None:
            return False
        if self.new.combined_axes(name) & {*self.changed_axes}:
            return False  # threads add up together from now on
        is_kept = all(pair.new.id in self.staying for pair in self.users[name])
        is_kept = is_kept or self.keeps_order_in(name)
        # What threads read in arrays of their own must have been written on the same thread.
        return is_kept and (name not in self.private or self.values.are_kept(name))

    @cached_property
    def users(self) -> Mapping[str, Sequence[StatementPair]]:
        """The statements that access each array."""
        return by_array(self.pairs.values(), self.old)

    def keeps_order_in(self, name: str) -> bool:
        """Whether accesses of an array keep their order; some statements stay as they are."""
        users, staying = self.users[name], self.staying
        places = by_place(accesses_of(name, users, self.old, self.new))
        # Of two that stay, nothing is asked.
        places.sort(key=lambda place: place[0].pair.new.id in staying)
        for number, mine in enumerate(places):
            if mine[0].pair.new.id in staying:
                return True
            if not all(self.keeps(name, *two) for two in access_pairs(mine)):
                return False
            for its in places[number + 1 :]:
                if self.is_plain(name, mine[0], its[0]):
                    continue
                if not all(self.keeps(name, *two) for two in access_pairs(mine, its)):
                    return False
        return True

    @cached_property
    def staying(self) -> frozenset[str]:
        """Statements that are where they were, in the same loops; none where these changed."""
        pairs = [pair for pair in self.pairs.values() if self.stays(pair)]
        before = self.old.order.nest(pair.old.id for pair in pairs)
        if before != self.new.order.nest(pair.new.id for pair in pairs):
            return NONE
        return frozenset(pair.new.id for pair in pairs)

    def stays(self, pair: StatementPair) -> bool:
        """Whether a statement runs on the blocks and threads on which it ran, all named alike."""
        return not pair.values and all(
            self.coordinate(pair, axis) == 0
            if axis in self.new_axes
            else not self.moves(pair, axis)
            for axis in self.changed_axes
        )

    def is_plain(self, name: str, one: StepAccess, two: StepAccess) -> bool:
        """Whether two statements are ordered as they were, whatever cells they touch.

        The loops that they share may have become axes on which each index has its own array.
        """
        mine, its = one.pair, two.pair
        if mine.values or its.values or mine.new.id == its.new.id:
            return False
        copied, own = self.new.copy_axes(name), set[str]()
        for axis in self.changed_axes:
            if not (self.moves(mine, axis) or self.moves(its, axis)):
                continue
            if axis in copied:
                if not self.inames_on(mine, axis) == self.inames_on(its, axis) != ():
                    return False
                own |= {*self.inames_on(mine, axis)}
            elif axis[0] == "g" and not self.other_launches(mine, its):
                return False
        before = self.old.order.shared_loops(mine.old.id, its.old.id)
        after = self.new.order.shared_loops(mine.new.id, its.new.id)
        if tuple(i for i in before if i not in own) != after:
            return False
        if own:
            self.private.add(name)
        return True

    def same_nest(self) -> bool:
        """Whether all statements are in the loops in which they were."""
        if any(pair.values for pair in self.pairs.values()):
            return False
        olds = [pair.old.id for pair in self.pairs.values()]
        return self.old.order.nest(olds) == self.new.order.nest(self.pairs)

    @cached_property
    def parts_launches(self) -> bool:
        """Whether statements that one launch ran are in different ones from now on."""
        old, new = self.old.order, self.new.order
        now: dict[int, int] = {}
        return any(
            now.setdefault(old.launch(p.old.id).number, launch) != launch
            for p in self.pairs.values()
            for launch in [new.launch(p.new.id).number]
        )

    def new_copy_axes(self, name: str) -> frozenset[Axis] | None:
        """The axes along which an array exists several times from now on; None if fewer.

        Or where each of more launches than before has its own.
        """
        before, after = set(self.old.copy_axes(name)), set(self.new.copy_axes(name))
        if self.parts_launches and any(axis[0] == "launch" for axis in after):
            return None
        fresh = after - before
        if not before <= after or not fresh <= set(self.new_axes):
            return None
        return frozenset(fresh)

    def keeps(self, name: str, one: StepAccess, two: StepAccess, itself: bool) -> bool:
        """Whether two accesses of an array keep their order, wherever the order shows."""
        if one.never_meets(two):
            return True
        pair = AccessPair(one, two, itself, frozenset(self.new.copy_axes(name)))
        is_kept, is_apart = once(self._orders_kept, pair.key, self.order_kept, pair)
        if not is_kept:
            is_kept, is_apart = self.order_asked(pair)
        blocks = {axis for axis in self.changed_axes if axis[0] == "g"} - pair.own
        if not (is_kept or blocks) and (loops := self.values.renewed_in(name)):
            # What each iteration of some loops sets anew is seen in no other one, unless blocks
            # share the array, which are in different iterations at one time.
            pair = replace(pair, loops=loops)
            is_kept, is_apart = self.order_kept(pair)
            if not is_kept:
                is_kept, is_apart = self.order_asked(pair)
        if is_kept and is_apart:
            self.private.add(name)
        return is_kept

    def order_kept(self, pair: AccessPair) -> tuple[bool, bool]:
        """Whether two accesses of one array keep their order, wherever they meet.

        And whether they do because each thread has a cell of its own then.
        """
        one, two, copied, itself = pair.one, pair.two, pair.own, pair.itself
        mine, its = one.pair, two.pair
        if not (self.changed_axes or mine.values or its.values):
            # They have the inames that they had, perhaps in the loops that they shared.
            before = self.old.order.shared_loops(mine.old.id, its.old.id)
            if before == self.new.order.shared_loops(mine.new.id, its.new.id):
                return True, False
        both_atomic = mine.new.is_atomic and its.new.is_atomic
        if both_atomic and one.commutes(two) and not copied & {*self.changed_axes}:
            return True, False
        cells = [*zip(one.indices, two.indices, strict=False)]
        same = self.injectivity.determined_by(a for a, b in cells if a == b) | pair.loops
        apart, outside = False, is_decided_outside(self.old, self.new, mine, its)
        others = self.other_launches(mine, its)
        for axis in self.changed_axes:
            if not (self.moves(mine, axis) or self.moves(its, axis)):
                continue
            if axis not in copied and (others or (outside and axis[0] == "l")):
                continue  # whatever threads these are, launches or loops say which comes first
            first, second = self.coordinate(mine, axis), self.coordinate(its, axis)
            if first is None or second is None:
                if not self.meets_everywhere(axis in copied, axis, (one, first), (two, second)):
                    return False, False
                continue
            is_one = self.inames_on(mine, axis) == self.inames_on(its, axis)
            inames = {*self.inames_on(mine, axis)} if is_one else set()
            if is_one and inames <= same:
                continue
            if not (is_one or itself or axis in copied or axis[0] == "g"):
                continue  # other threads of the block, ordered as the text has it
            alone = mine.new.id if itself else None
            if not self.injectivity.equal_wherever(cells, first, second, alone):
                if axis in copied:
                    if not is_one:
                        return False, False
                    apart = True
                elif itself or axis[0] == "g":
                    return False, False
                else:
                    continue
            same |= inames
        if itself and one.commutes(two):
            return True, apart  # sums, in any order
        return outside or self.same_order(mine, its, same), apart

    def order_asked(self, pair: AccessPair) -> tuple[bool, bool]:
        """Like :meth:`order_kept`, asked of the instances that meet."""
        apart, both = False, (pair.one, pair.two)
        for axis in self.changed_axes:
            if axis not in pair.own or not any(self.moves(access.pair, axis) for access in both):
                continue
            first, second = (self.coordinate(access.pair, axis) for access in both)
            if first is None or second is None:
                if not self.meets_everywhere(True, axis, (pair.one, first), (pair.two, second)):
                    return False, False
            elif len({self.inames_on(access.pair, axis) for access in both}) > 1:
                return False, False
            else:
                apart = True
        return order_is_same(self.old, self.new, pair, self.changed_axes), apart

    def meets_everywhere(
        self,
        copied: bool,
        axis: Axis,
        *both: tuple[StepAccess, Expression | None],
    ) -> bool:
        """Whether accesses of which one at least runs on all indices of an axis keep their order.

        Each thread then reads what it wrote itself, or all read what one wrote before.
        """
        if not copied:
            return axis[0] == "l"
        if all(value is None for _, value in both):
            return True
        others = [access for access, value in both if value is not None]
        return all(a.writes for a, value in both if value is None) or not any(
            a.writes for a in others
        )

    def same_order(self, one: StatementPair, two: StatementPair, same: frozenset[str]) -> bool:
        """Whether the loops that two statements share run as they did, ``same`` inames fixed."""
        inames = self.injectivity.inames
        before = list(self.old.order.shared_loops(one.old.id, two.old.id))
        after = [i for i in self.new.order.shared_loops(one.new.id, two.new.id) if i not in same]
        values: dict[str, Expression] = {}
        for iname in before:
            value = one.values.get(iname, prim.Variable(iname))
            if value != two.values.get(iname, prim.Variable(iname)):
                return False
            values[iname] = value
        before = [i for i in before if not variable_names(values[i]) & inames <= same]
        while before:
            first = [before.pop(0)]
            names = variable_names(values[first[0]]) & inames
            while before and variable_names(values[before[0]]) & names:
                first.append(before.pop(0))
                names |= variable_names(values[first[-1]]) & inames
            loops: list[str] = []
            while after and after[0] in names:
                loops.append(after.pop(0))
            run = [values[i] for i in first]
            if not loops:
                return False
            if run == [prim.Variable(i) for i in loops]:
                continue
            if not self.injectivity.is_monotone(tuple(run), tuple(loops), same & names):
                return False
        return not after
