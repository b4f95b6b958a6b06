"""Whether a step preserves every value, except for reads that it replaced.

A proven schedule remains correct if each new instance is the image of one old instance, touches
the same cells, and conflicting instances keep their order. If an array exists once per index of a
new hardware axis, each value must be written on the index where it is read. This check needs no
dataflow analysis and covers most steps. If it fails, the step may still be legal: the whole proof
is then attempted.

A step may add copying statements and replace reads. The whole proof is then needed for these only:
see :class:`Obligations`. Temporaries may get additional axes if each read finds its value at the
new indices.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import without_names
from loopkit._cached import cached_property, once
from loopkit._check.compare_statements import Differences, StatementComparison
from loopkit._check.injectivity import Injectivity
from loopkit._check.instance_maps import Lineage
from loopkit._check.specialised import is_specialised
from loopkit._check.step_accesses import StatementPair, same_domains
from loopkit._check.step_order import StepOrder
from loopkit._check.step_values import KeptValues
from loopkit._expression import substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import OLD, instances, variable
from loopkit._launches import is_one_launch
from loopkit._nodes import Expression
from loopkit._poly.model import Model, model_of
from loopkit._poly.pairs import Instance, equal, intersection
from loopkit._same import key_of, same

if TYPE_CHECKING:
    from loopkit._change import Change
    from loopkit._kernel import Kernel


@dataclass(frozen=True)
class Obligations:
    """What remains to be proven: statements with replaced reads, copies, and new arrays.

    ``unchanged`` holds the identities of expressions whose values are known to be unchanged.
    """

    statements: frozenset[str]
    moves: frozenset[str]
    arrays: frozenset[str]
    unchanged: frozenset[int]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return not (self.statements or self.moves or self.arrays)


NOTHING = Obligations(frozenset(), frozenset(), frozenset(), frozenset())


@dataclass(frozen=True)
class Untouched:
    """Arrays and statements of a step for which nothing remains to be proven."""

    arrays: frozenset[str]
    statements: frozenset[str]


ALL_TOUCHED = Untouched(frozenset(), frozenset())


class StepProof:
    """One step of a schedule, compared with the proven schedule before it."""

    def __init__(self, before: Kernel, change: Change, lineage: Lineage) -> None:
        self.old = model_of(before)
        self.new = model_of(change.kernel)
        self.change = change
        self.lineage = lineage
        self.injectivity = Injectivity(self.new)
        self._known: dict[tuple[object, ...], bool] = {}

    def obligations(self) -> Obligations | None:
        """What remains to be proven, or None if it is everything."""
        if is_specialised(self.old, self.new, self.change, self.lineage):
            return NOTHING
        if self.change.fixed or self.change.merges:
            return None
        if not self.keeps_data() or not self.statements_match():
            return None
        if not self.keeps_launches():
            return None
        order = self.order
        if not order.keeps_axes() or not all(map(self.same_instances, self.pairs.values())):
            return None
        changes = {name: self.changes(pair) for name, pair in self.pairs.items()}
        if any(c.more for c in changes.values()):
            return None
        if not all(self.keeps_cells(name, order.values) for name in self.widened):
            return None
        if not order.keeps_all():
            return None
        wide = self.widened.keys()
        changed = {
            name: c
            for name, c in changes.items()
            if c.reads or not wide.isdisjoint(self.new.statement[name].names)
        }
        if not changed.keys() <= self.lineage.image_of.keys():
            return None
        # Statements may share nodes: what changed in one counts as unchanged in none.
        kept: set[int] = set().union(*(c.kept for c in changed.values()))
        others: set[int] = set().union(*(c.others for c in changed.values()))
        arrays = self.new_arrays | wide
        return Obligations(
            frozenset(changed), frozenset(self.moves), arrays, frozenset(kept - others)
        )

    @cached_property
    def order(self) -> StepOrder:
        """What is asked of the order of accesses."""
        return StepOrder(self.old, self.new, self.pairs, self.lineage, self.injectivity)

    @cached_property
    def new_arrays(self) -> frozenset[str]:
        """Temporaries that the step made."""
        before = self.old.kernel.temporary_by_name
        return frozenset(t for t in self.new.kernel.temporary_by_name if t not in before)

    def untouched(self) -> Untouched:
        """Arrays whose reads see what they saw, and statements that read no others.

        The instances that use such an array are those that did, and come in the same order
        wherever they meet.  What was moved there was read in such an array, too.
        """
        if self.change.fixed or self.change.merges or not self.pairs:
            return ALL_TOUCHED
        if not (self.keeps_meaning() and self.keeps_launches() and self.order.keeps_axes()):
            return ALL_TOUCHED
        alike = {
            name
            for name, pair in self.pairs.items()
            if self.same_instances(pair)
            and not ((changes := self.changes(pair)).more or changes.reads)
        }
        kernel, images = self.new.kernel, self.lineage.image_of
        reads = {name: {*dict(kernel.reads_of(self.new.statement[name]))} for name in alike}
        names = {*kernel.arg_by_name, *kernel.temporary_by_name}
        touched = {name for name in names if not self.is_untouched(name, alike)}
        while more := {
            array
            for array in names - touched
            for w in kernel.writers.get(array, ())
            if w.id not in images and reads[w.id] & touched
        }:
            touched |= more
        # What is added up elsewhere is asked of how it gets where it belongs.
        text = self.lineage.root.statement_by_id
        moved = {n: text[images[n].origin].written for n in alike & images.keys()}
        return Untouched(
            frozenset(names - touched),
            frozenset(
                name
                for name, array in moved.items()
                if not (reads[name] | ({array} - {self.new.statement[name].written})) & touched
            ),
        )

    def is_untouched(self, array: str, alike: Collection[str]) -> bool:
        """Whether the only users of an array are ``alike`` statements, and keep their order."""
        old, new = self.old, self.new
        if _declared(old, array) != _declared(new, array):
            return False
        mine = self.order.users.get(array, [])
        return array not in old.written | new.written or (
            {p.new.id for p in mine} == {s.id for s in new.kernel.users(array)} <= {*alike}
            and {p.old.id for p in mine} == {s.id for s in old.kernel.users(array)}
            and all(old.order.is_above(a.old.id, b.old.id) for a, b in pairwise(mine))
            and self.order.keeps_array(array)
        )

    def keeps_meaning(self) -> bool:
        """Whether functions are what they were, and nothing is forgotten of sizes and data."""
        old, new = self.old.kernel, self.new.kernel
        return (
            old.reductions == new.reductions
            and old.functions == new.functions
            and set(old.assertions) <= set(new.assertions)
            and (
                old.assumptions is new.assumptions
                or bool(new.assumptions.set.is_subset(old.assumptions.set))
            )
        )

    def keeps_data(self) -> bool:
        """Whether all arrays are what they were, and :meth:`keeps_meaning`."""
        old, new = self.old.kernel, self.new.kernel
        if list(map(without_names, old.args)) != list(map(without_names, new.args)):
            return False
        for temporary in old.temporaries:
            its = new.temporary_by_name.get(temporary.name)
            if its is None:
                return False
            alone = not any(axis[0] == "l" for axis in self.old.axes)
            # What all blocks share, or each has for itself, is another array.
            is_like = self.old.is_global(its.name) == self.new.is_global(its.name)
            alone = alone and (is_like or not self.old.axes)
            if its != temporary and alone and is_one_launch(new):
                # In a launch of blocks of one thread, tags alone decide where it lies.
                its = replace(its, address_space=temporary.address_space)
            if its.name in self.widened:
                its = replace(its, shape=temporary.shape, dim_names=None)
            if without_names(its) != without_names(temporary):
                return False
        return self.keeps_meaning()

    @cached_property
    def widened(self) -> dict[str, int]:
        """Temporaries that have more axes now, behind so many that they had."""
        found: dict[str, int] = {}
        for temporary in self.old.kernel.temporaries:
            name, count = temporary.name, len(temporary.shape)
            its = self.new.kernel.temporary_by_name.get(name)
            if its is None or len(its.shape) <= count or its.shape[:count] != temporary.shape:
                continue
            laid_out = (its.dim_tags, its.padding, its.swizzles, its.base_storage, its.initializer)
            is_plain = not any(laid_out) and not its.is_running
            bounds = name in self.old.kernel.bounding | self.new.kernel.bounding
            # Combined and replicated temporaries are excluded.
            combined = self.old.combined_axes(name) or self.new.combined_axes(name)
            is_there = {*self.old.copy_axes(name)} == {*self.new.copy_axes(name)}
            if is_plain and is_there and not (bounds or combined):
                found[name] = count
        return found

    def keeps_cells(self, name: str, values: KeptValues) -> bool:
        """Whether all that is read of a widened temporary was written at the same new indices.

        Then what is seen is what was: who writes such a cell wrote the old one, and the last one
        to do so is still the last.
        """
        told: dict[str, tuple[Expression, ...]] = {}
        rank = len(self.new.kernel.temporary_by_name[name].shape)
        for statement in self.new.kernel.statements:
            mine = {i for n, i in statement.accesses if n == name}
            ends = {i[self.widened[name] :] for i in mine}
            if len(ends) > 1 or any(len(i) != rank for i in mine):
                return False
            if ends:
                told[statement.id] = ends.pop()
        return values.are_kept_at(name, told)

    @cached_property
    def moves(self) -> set[str]:
        """Statements that copy data to new temporaries."""
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

    def may_be_in_pieces(self) -> bool:
        """Whether several statements may run what one ran, or the order of the text is another."""
        if self.change.fixed or self.change.merges or self.change.moves or not self.pairs:
            return False
        if self.widened:
            return False
        return [t.old.id for t in self.pairs.values()] != [s.id for s in self.old.kernel.statements]

    def statements_match(self) -> bool:
        """Whether statements match one to one, in the same order; copies fill new arrays only."""
        before = [t.old.id for t in self.pairs.values()]
        if before != [s.id for s in self.old.kernel.statements]:
            return False
        kept = self.change.moves - self.moves
        if any(name in self.new.statement for name in kept):
            return False
        if any(m.new in self.moves for m in self.change.instances):
            # A copy executes no instance of an old statement.
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
            # Equal values of the loops around launches now are equal values of those before.
            mine = (pair.values.get(i, prim.Variable(i)) for i in before.loops)
            if not all(variable_names(value) <= {*now.loops} for value in mine):
                return False
        return True

    def changes(self, pair: StatementPair) -> Differences:
        """How the expressions of a statement changed."""
        comparison = StatementComparison(pair.values, self.new, pair.at, self.widened)
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
        if is_plain and same_domains(self.old, self.new, old.inames):
            return True
        kept = old.inames - moved.keys()
        if not kept <= new.inames:
            return False
        fresh = new.inames - kept
        if fresh and not fresh <= self.injectivity.determined_by(moved.values()):
            return False
        if self.same_conditions(pair) and self.same_boxes(pair, fresh):
            return True
        return bool(self.reached(pair).is_equal(self.wanted(old.id)))

    def same_conditions(self, pair: StatementPair) -> bool:
        """Whether each predicate of a statement is what it was, one by one."""
        before, after = pair.old.predicates, pair.new.predicates
        if len(before) != len(after):
            return False
        for old, new in zip(before, after, strict=True):
            meant = substitute(old, pair.values)
            if same(meant, new):
                continue
            one, two = self.new.condition(meant), self.new.condition(new)
            if one is None or two is None or not one.is_equal(two):
                return False
        return True

    def wanted(self, old: str) -> isl.Set:
        """``{ inames·OLD, sizes : an old statement has the instance }``."""
        marks = instances(self.old.kernel.all_inames, OLD)
        found = _sets.rename(self.old.domain(Instance(old, "")), marks)
        return found & self.new.kernel.assumptions.set

    def reached(self, pair: StatementPair) -> isl.Set:
        """``{ inames·OLD, sizes : some new instance executes the old one }``."""
        kept = pair.old.inames - pair.values.keys()
        mine = self.new.domain(pair.at)
        for iname, value in pair.values.items():
            mine = mine & equal(variable(iname, OLD), value)
        mine = _sets.project_out(mine, sorted(pair.new.inames - kept))
        return _sets.rename(mine, instances(kept, OLD))

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
        if not same_domains(
            self.old, self.new, others | before.parameters & old.home_domain.keys()
        ):
            return False

        def reaches_all() -> bool:
            values = pair.values.items()
            reached = after.set & intersection(equal(prim.Variable(i), e) for i, e in values)
            return bool(_sets.project_out(reached, sorted(fresh)).is_equal(before.set))

        key = (id(before), id(after), tuple(sorted(pair.values.items())))
        return once(self._known, key, reaches_all)


def _declared(model: Model, array: str) -> object:
    """What is said of an array, and whether all blocks share it."""
    kernel = model.kernel
    data = kernel.temporary_by_name.get(array) or kernel.arg_by_name.get(array)
    return None if data is None else (without_names(data), model.is_global(array))
