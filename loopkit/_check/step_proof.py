"""Whether a step leaves every value as it was, or but for some reads that it replaced.

A schedule that was proven stays right under a step if each instance is the
image of one before, touches the same cells, and any two that touch one cell
come in the same order; where an array exists once per index of a new hardware
axis, it is enough that what is read there was written there.  To see that
takes no look at where values come from, and it holds for most steps.  Where it
does not, nothing is wrong yet: the whole proof is asked for.

Statements that only move data may be new, and reads may be replaced.  Then the
whole proof is asked for of these alone: see :class:`Obligations`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import cached_property, once
from loopkit._check.compare_statements import Differences, StatementComparison
from loopkit._check.injectivity import Injectivity
from loopkit._check.instance_maps import Lineage
from loopkit._check.step_accesses import StatementPair, StepAccess, access_pairs, accesses_of
from loopkit._expression import variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import OLD, instances, variable
from loopkit._launches import is_one_launch
from loopkit._nodes import Expression
from loopkit._poly.dataflow import dataflow_of
from loopkit._poly.model import model_of
from loopkit._poly.pairs import Instance, equal, intersection
from loopkit._poly.parallel_axes import Axis
from loopkit._relations import reachable
from loopkit._same import key_of, same

if TYPE_CHECKING:
    from loopkit._change import Change
    from loopkit._kernel import Kernel, Statement


@dataclass(frozen=True)
class Obligations:
    """What is left to prove of a step: statements that read anew, moves, and new arrays.

    ``unchanged`` holds the identities of expressions whose value is known to be
    what it was.
    """

    statements: frozenset[str]
    moves: frozenset[str]
    arrays: frozenset[str]
    unchanged: frozenset[int]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return not (self.statements or self.moves or self.arrays)


class StepProof:
    """One step of a schedule, compared with the proven schedule before it."""

    def __init__(self, before: Kernel, change: Change, lineage: Lineage) -> None:
        self.old = model_of(before)
        self.new = model_of(change.kernel)
        self.change = change
        self.lineage = lineage
        self.injectivity = Injectivity(self.new)
        self.private: set[str] = set()
        self._known: dict[tuple[object, ...], bool] = {}
        self._orders_kept: dict[tuple[object, ...], tuple[bool, bool]] = {}

    def obligations(self) -> Obligations | None:
        """What is left to prove, or None for everything."""
        if self.change.fixed or not self.keeps_data() or not self.statements_match():
            return None
        if not self.keeps_launches():
            return None
        if not self.keeps_axes() or not all(self.same_instances(t) for t in self.pairs.values()):
            return None
        changes = {name: self.changes(pair) for name, pair in self.pairs.items()}
        if any(c.more for c in changes.values()):
            return None
        if not self.keeps_order() or not self.keeps_private_values():
            return None
        changed = {name: c for name, c in changes.items() if c.reads}
        if not changed.keys() <= self.lineage.image_of.keys():
            return None
        # Statements may share nodes: what changed in one counts as unchanged in none.
        kept: set[int] = set().union(*(c.kept for c in changed.values()))
        others: set[int] = set().union(*(c.others for c in changed.values()))
        return Obligations(
            frozenset(changed), frozenset(self.moves), self.new_arrays, frozenset(kept - others)
        )

    @cached_property
    def new_arrays(self) -> frozenset[str]:
        """Temporaries that the step made."""
        before = self.old.kernel.temporary_by_name
        return frozenset(t for t in self.new.kernel.temporary_by_name if t not in before)

    def keeps_data(self) -> bool:
        """Whether all arrays are what they were, and nothing is forgotten of the sizes."""
        old, new = self.old.kernel, self.new.kernel
        if self.old.has_loaded_bounds or self.new.has_loaded_bounds:
            return False
        if old.args != new.args or old.reductions != new.reductions:
            return False
        for temporary in old.temporaries:
            its = new.temporary_by_name.get(temporary.name)
            if its is None:
                return False
            if its != temporary and not self.old.axes and is_one_launch(new):
                # In a launch of one thread, tags alone decide where it lies.
                its = replace(its, address_space=temporary.address_space)
            if its != temporary:
                return False
        if not set(old.assertions) <= set(new.assertions):
            return False
        return old.assumptions is new.assumptions or bool(
            new.assumptions.set.is_subset(old.assumptions.set)
        )

    @cached_property
    def moves(self) -> set[str]:
        """Statements that carry data to new temporaries."""
        return {
            s.id
            for s in self.new.kernel.statements
            if s.id in self.change.moves and s.id not in self.old.statement
        }

    @cached_property
    def pairs(self) -> dict[str, StatementPair]:
        """Statements by their new name; none where they do not match one to one.

        Of what a step says of an iname, only that counts which is said of a statement inside.
        """
        maps = {m.new: m for m in self.change.instances}
        found: dict[str, StatementPair] = {}
        for statement in self.new.kernel.statements:
            if statement.id in self.moves:
                continue
            step = maps.get(statement.id)
            old = self.old.statement.get(statement.id if step is None else step.old)
            if old is None:
                return {}
            # Of inames around it, those that are not what they were.
            moved = {
                iname: value
                for iname, value in (step.values if step is not None else {}).items()
                if iname in old.inames and value != prim.Variable(iname)
            }
            found[statement.id] = StatementPair(statement, old, moved)
        return found

    def statements_match(self) -> bool:
        """Whether statements match one to one, in the same order; moves fill new arrays only."""
        before = [t.old.id for t in self.pairs.values()]
        if before != [s.id for s in self.old.kernel.statements]:
            return False
        kept = self.change.moves - self.moves
        if any(name in self.new.statement for name in kept):
            return False
        if any(m.new in self.moves for m in self.change.instances):
            # What carries data stands for no statement.
            return False
        return all(self.new.statement[m].written in self.new_arrays for m in self.moves) and not (
            self.new_arrays & {t.new.written for t in self.pairs.values()}
        )

    def keeps_launches(self) -> bool:
        """Whether what one launch runs, one launch ran before: others are ordered now, too."""
        old = {p.new.id: self.old.order.launch(p.old.id) for p in self.pairs.values()}
        parts: dict[int, int] = {}
        for name, pair in self.pairs.items():
            before, now = old[name], self.new.order.launch(name)
            if parts.setdefault(now.number, before.number) != before.number:
                return False
            if not {*before.loops} <= {*now.loops} or pair.values.keys() & {*before.loops}:
                return False
        return True

    def changes(self, pair: StatementPair) -> Differences:
        """How the expressions of a statement changed."""
        comparison = StatementComparison(pair.values, self.new, pair.at)
        comparison.statements(pair.old, pair.new)
        return comparison.changes

    def same_instances(self, pair: StatementPair) -> bool:
        """Whether each old instance of a statement is one new instance."""
        values = tuple(sorted(pair.values.items()))
        predicates = key_of((pair.old.predicates, pair.new.predicates, values))
        key = (pair.old.inames, pair.new.inames, predicates)
        return once(self._known, key, self._same_instances, pair)

    def _same_instances(self, pair: StatementPair) -> bool:
        old, new = pair.old, pair.new
        moved = pair.values
        is_plain = not moved and old.inames == new.inames and same(old.predicates, new.predicates)
        if is_plain and self.same_domains(old.inames):
            return True
        kept = old.inames - moved.keys()
        if not kept <= new.inames:
            return False
        fresh = new.inames - kept
        if fresh and not fresh <= self.injectivity.determined_by(moved.values()):
            return False
        if not (old.predicates or new.predicates) and self.same_boxes(pair, fresh):
            return True
        marks = instances(self.old.kernel.all_inames, OLD)
        wanted = _sets.rename(self.old.domain(Instance(old.id, "")), marks)
        wanted = wanted & self.new.kernel.assumptions.set
        mine = self.new.domain(pair.at)
        for iname, value in moved.items():
            mine = mine & equal(variable(iname, OLD), value)
        mine = _sets.project_out(mine, sorted(fresh))
        mine = _sets.rename(mine, instances(kept, OLD))
        return bool(mine.is_equal(wanted))

    def same_boxes(self, pair: StatementPair, fresh: frozenset[str]) -> bool:
        """Whether one domain holds all inames that a step replaced, and the new ones all of it.

        One question, then, for all statements inside.
        """
        old, new = self.old.kernel, self.new.kernel
        homes = {old.home_domain[i] for i in pair.values}
        homes_now = {new.home_domain[i] for i in fresh}
        if len(homes) != 1 or len(homes_now) != 1:
            return False
        before, after = old.domains[homes.pop()], new.domains[homes_now.pop()]
        rest = [i for i in before.inames if i not in pair.values]
        if fresh & {*before.inames} or {*rest, *fresh} != {*after.inames}:
            return False
        others = frozenset(i for i in pair.old.inames if i not in before.inames)
        if not self.same_domains(others | before.parameters & old.home_domain.keys()):
            return False

        def reaches_all() -> bool:
            values = pair.values.items()
            reached = after.set & intersection(equal(prim.Variable(i), e) for i, e in values)
            return bool(_sets.project_out(reached, sorted(fresh)).is_equal(before.set))

        key = (id(before), id(after), tuple(sorted(pair.values.items())))
        return once(self._known, key, reaches_all)

    def same_domains(self, inames: frozenset[str]) -> bool:
        """Whether what bounds some inames is what it was."""
        old, new = self.old.kernel, self.new.kernel
        if not inames <= old.home_domain.keys():
            return False
        around = reachable(inames, old.parents_of)
        return around <= new.home_domain.keys() and all(
            old.domains[old.home_domain[i]] == new.domains[new.home_domain[i]] for i in around
        )

    @cached_property
    def new_axes(self) -> tuple[Axis, ...]:
        """Hardware axes that nothing was on before."""
        return tuple(a for a in self.new.axes if a not in self.old.axes)

    def keeps_axes(self) -> bool:
        """Whether each statement has the coordinates that it had, and one on each new axis."""
        old, new = self.old, self.new
        if not set(old.axes) <= set(new.axes):
            return False
        if any(axis[0] == "ilp" or isinstance(axis[1], str) for axis in new.axes):
            return False
        mine = frozenset().union(*(t.new.inames for t in self.pairs.values()))
        for axis in old.axes:
            before, after = old.inames_on[axis], new.inames_on[axis]
            if set(before) != set(after) & mine:
                return False
            if any(old.lower(i) != new.lower(i) for i in before):
                return False
            indices = []
            for pair in self.pairs.values():
                indices.append(old.coordinate(Instance(pair.old.id, ""), axis))
                if indices[-1] != new.coordinate(pair.at, axis):
                    return False
                if any(i in pair.values for i in before):
                    return False
            same_range = len(after) == len(before)
            # Of those that run on all indices there must not be more.
            if None in indices and not (same_range and self.same_domains(frozenset(before))):
                return False
        return all(
            len(self.inames_on(t, axis)) == 1 for axis in self.new_axes for t in self.pairs.values()
        )

    def inames_on(self, pair: StatementPair, axis: Axis) -> list[str]:
        """The inames of a statement on an axis."""
        return [i for i in self.new.inames_on[axis] if i in pair.new.inames]

    def keeps_order(self) -> bool:
        """Whether instances that touch one cell come in the order in which they came."""
        if not self.new_axes and self.same_nest():
            return True
        pairs = [*self.pairs.values()]
        for name, accesses in accesses_of(pairs, self.old.order, self.new.order).items():
            copied = self.new_copy_axes(name)
            if copied is None:
                return False
            for one, two, itself in access_pairs(accesses):
                key = (copied, one.kind, two.kind, itself)
                answer = once(self._orders_kept, key, self.order_kept, copied, one, two, itself)
                is_kept, is_apart = answer
                if not is_kept:
                    return False
                if is_apart:
                    self.private.add(name)
        return True

    def same_nest(self) -> bool:
        """Whether all statements are in the loops in which they were."""
        if any(pair.values for pair in self.pairs.values()):
            return False
        olds = [pair.old.id for pair in self.pairs.values()]
        return self.old.order.nest(olds) == self.new.order.nest(self.pairs)

    def new_copy_axes(self, name: str) -> frozenset[Axis] | None:
        """The axes along which an array exists several times from now on; None if fewer."""
        before, after = set(self.old.copy_axes(name)), set(self.new.copy_axes(name))
        fresh = after - before
        if not before <= after or not fresh <= set(self.new_axes):
            return None
        return frozenset(fresh)

    def order_kept(
        self, copied: frozenset[Axis], one: StepAccess, two: StepAccess, itself: bool
    ) -> tuple[bool, bool]:
        """Whether two accesses of one array keep their order, wherever they meet.

        And whether they do because each thread has a cell of its own then.  ``itself``: they
        belong to one statement.
        """
        mine, its = one.pair, two.pair
        if not (self.new_axes or mine.values or its.values):
            # They have the inames that they had, perhaps in the loops that they shared.
            before = self.old.order.shared_loops(mine.old.id, its.old.id)
            if before == self.new.order.shared_loops(mine.new.id, its.new.id):
                return True, False
        if not copied and one.commutes(two) and one.pair.new.is_atomic and two.pair.new.is_atomic:
            return True, False
        cells = [*zip(one.indices, two.indices, strict=False)]
        same = self.injectivity.determined_by(a for a, b in cells if a == b)
        apart = False
        for axis in self.new_axes:
            (a,), (b,) = self.inames_on(one.pair, axis), self.inames_on(two.pair, axis)
            if a == b and a in same:
                continue
            first, second = (self.new.coordinate(t.pair.at, axis) for t in (one, two))
            if not self.injectivity.equal_wherever(cells, first, second):
                if axis not in copied or a != b:
                    return False, False
                apart = True
            if a == b:
                same |= {a}
        if itself and one.commutes(two):
            return True, apart  # sums, in any order
        return self.same_order(one.pair, two.pair, same), apart

    def keeps_private_values(self) -> bool:
        """Whether what threads read in arrays of their own was written on the same thread."""
        return all(map(self.keeps_values, sorted(self.private)))

    def keeps_values(self, name: str) -> bool:
        """Whether all that is read from an array was written on the same new coordinates.

        That is known of the text, and carries over where the schedule touches
        the array where the text does.
        """
        if name not in self.lineage.root.temporary_by_name:
            return False
        mine: dict[str, tuple[bool, int]] = {}
        for statement, uses in _uses(self.new.kernel, name).items():
            image = self.lineage.image_of.get(statement)
            if image is None or len(self.lineage.images_from[image.origin]) != 1:
                return False
            mine[image.origin] = uses
        text = model_of(self.lineage.root)
        if mine != _uses(text.kernel, name):
            return False
        return all(self.reads_own_values(text.statement[origin], name) for origin in mine)

    def reads_own_values(self, origin: Statement, name: str) -> bool:
        """Whether a statement of the text and what it reads of an array run on one new index."""
        (image,) = self.lineage.images_from[origin.id]
        for access in dict.fromkeys(origin.reads):
            if access[0] != name:
                continue
            agreeing = dataflow_of(self.lineage.root).agreeing(origin.id, access)
            for writer, inames in agreeing.items():
                (source,) = self.lineage.images_from[writer]
                mine, its = image.value_of, source.value_of
                same = self.injectivity.determined_by(
                    mine[i] for i in sorted(inames) if mine[i] == its[i]
                )
                for axis in self.new_axes:
                    if axis not in self.new.copy_axes(name):
                        continue
                    here, there = (
                        self.new.statement[i.statement].inames.intersection(
                            self.new.inames_on[axis]
                        )
                        for i in (image, source)
                    )
                    if here != there or not here <= same:
                        return False
        return True

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


def _uses(kernel: Kernel, name: str) -> dict[str, tuple[bool, int]]:
    """For each statement that uses a name, whether it is written and how often it is read there."""
    users = kernel.users(name)
    return {s.id: (s.written == name, sum(n == name for n, _ in s.reads)) for s in users}
