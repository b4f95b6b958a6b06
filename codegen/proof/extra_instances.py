"""Private results that are computed too often must not be seen.

A statement may run for instances that its domain leaves out if what it then
writes is private, and no thread reads one of those cells for an instance that
the kernel has.  What such an instance reads does not matter then, as long as it
lies in its array, which :mod:`.bounds` proves of all that runs.
"""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from loopkit._hidden import hidden
from loopkit._kernel import Statement
from loopkit._relations import grouped
from loopkit.codegen.proof.conditions import Condition, conjuncts
from loopkit.codegen.proof.forms import Form, constant, variable
from loopkit.codegen.proof.instances import InstanceCheck, Surplus
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.spaces import Space, equal
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.tree import Leaf

Indices = tuple[Form, ...]


class ExtraInstancesCheck(Check):
    """Proves that what runs too often is not seen."""

    def __init__(self, subject: Subject, recorder: Recorder, instances: InstanceCheck) -> None:
        super().__init__(subject, recorder)
        self.instances = instances

    def run(self) -> None:
        """Check all private arrays that have too many writes."""
        by_array = grouped((one.statement.written, one) for one in self.instances.surplus)
        for array, surplus in by_array.items():
            rank = len(self.subject.names.dimensions.get(array, ()))
            cells = [hidden("cell", axis) for axis in range(rank)]
            space = Space([*self.subject.space.names, *cells])
            seen: set[tuple[object, ...]] = set()
            for one in surplus:
                what = f"whether what '{one.statement.id}' computes too often is used"
                with self.recorder.question("instances", what, one.leaf):
                    self.check(space, array, cells, one, seen)

    def check(
        self,
        space: Space,
        array: str,
        cells: list[str],
        surplus: Surplus,
        seen: set[tuple[object, ...]],
    ) -> None:
        """Compare the cells written too often with those that are read in earnest."""
        where = space.aligned(surplus.instances)
        for touch in surplus.leaf.touches:
            if not touch.is_write or touch.array != array:
                continue
            key = (id(surplus.leaf.scope), surplus.statement.inames, touch.offset)
            if key in seen:
                continue
            seen.add(key)
            written = self.cells(space, where, cells, touch.indices)
            for leaf in self.subject.leaves:
                for indices, needed in self.reads(space, leaf, array):
                    read = self.cells(space, needed, cells, indices)
                    both = written & read
                    if not both.is_empty():
                        self.report(space, surplus, leaf, array, cells, both)
                        return

    def reads(self, space: Space, leaf: Leaf, array: str) -> Iterator[tuple[Indices, isl.Set]]:
        """The reads of an array by a line or a guard, each with the instances that need it."""
        statement = self.subject.statement_of(leaf)
        needed = None
        for touch in leaf.touches:
            if touch.array == array and not touch.is_write:
                if statement is None:
                    # What C looks at first decides whether the rest of a guard is read.
                    yield touch.indices, space.aligned(touch.scope.set)
                else:
                    if needed is None:
                        needed = self.needed(space, leaf, statement)
                    yield touch.indices, needed

    def needed(self, space: Space, leaf: Leaf, statement: Statement) -> isl.Set:
        """The instances of a line that the kernel has, on the threads that run them."""
        subject = self.subject
        domain, _ = subject.domain(statement)
        conditions: list[Condition] = subject.coordinate_conditions(statement.inames)
        conditions += [p for w in subject.words for p in conjuncts(subject.launched(w))]
        conditions += self.instances.definitions(statement, leaf)
        return space.aligned(domain) & space.all_of(conditions)

    def cells(
        self, space: Space, instances: isl.Set, cells: list[str], indices: Indices
    ) -> isl.Set:
        """Threads and cells of an access, over all sizes."""
        where = instances
        for cell, index in zip(cells, indices, strict=False):
            if index.is_affine:
                where = where & space.where(equal(variable(cell), index))
        kept = [*self.subject.shared_names, *self.subject.words, *cells]
        return space.project_onto(where, [n for n in kept if n in space.position])

    def report(
        self,
        space: Space,
        surplus: Surplus,
        reader: Leaf,
        array: str,
        cells: list[str],
        both: isl.Set,
    ) -> None:
        """A finding: which cell an instance too many changes."""
        point = self.point(both, *cells)
        at = space.aligned(surplus.instances)
        for touch in surplus.leaf.touches:
            if touch.is_write:
                for cell, index in zip(cells, touch.indices, strict=False):
                    at = at & space.where(equal(variable(cell), index))
        fixed = [equal(variable(n), constant(v)) for n, v in point.items()]
        instance = self.point(at & space.all_of(fixed), *sorted(surplus.statement.inames))
        what = f"'{surplus.statement.id}' runs for what is no instance of it, and so changes "
        what += f"a cell that '{reader.statement or 'a guard'}' (line {reader.line}) reads"
        at_cell = tuple(point[name] for name in cells)
        self.found("instances", what, surplus.leaf, instance, array=array, cell=at_cell)
