"""Private results that are computed too often must not be seen.

A statement may run for instances that its domain leaves out if what it then
writes is private, and no thread reads one of those cells for an instance that
the kernel has.  What such an instance reads does not matter then, as long as it
lies in its array, which :mod:`.bounds` proves of all that runs, and goes into no function of the
user's: one need not end for what nothing has computed.
"""

from __future__ import annotations

import islpy as isl

from loopkit._algebra.terms import number
from loopkit._device_functions import own_calls
from loopkit.codegen.proof.forms import variable
from loopkit.codegen.proof.initialized import ArrayReads, InitializedCheck
from loopkit.codegen.proof.instance_proof import Surplus
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.spaces import equal
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Touch


class ExtraInstancesCheck(Check):
    """Proves that what runs too often is not seen."""

    def __init__(
        self,
        subject: Subject,
        recorder: Recorder,
        surplus: list[Surplus],
        initialized: InitializedCheck,
    ) -> None:
        super().__init__(subject, recorder)
        self.surplus = surplus
        self.initialized = initialized
        self._seen: set[tuple[object, ...]] = set()

    def run(self) -> None:
        """Check all private arrays that have too many writes."""
        for one in self.surplus:
            what = f"whether what '{one.statement.id}' computes too often is used"
            with self.recorder.question("instances", what, one.leaf):
                self.check_calls(one)
                for array in self.initialized.arrays.get(one.statement.written, ()):
                    self.check(one, array)

    def check_calls(self, surplus: Surplus) -> None:
        """Functions of the user's get no arguments but those of the kernel's instances."""
        calls = (call for e in surplus.statement.expressions for call in own_calls(e))
        for call in calls:
            what = f"'{surplus.statement.id}' calls '{call.function.name}' for what is no instance"
            instance = self.point(surplus.instances, *sorted(surplus.statement.inames))
            self.found("instances", what, surplus.leaf, instance)
            return

    def check(self, surplus: Surplus, array: ArrayReads) -> None:
        """Compare the cells written too often with those that are read in earnest."""
        for write in surplus.leaf.touches:
            key = (array, surplus.leaf.scope, surplus.statement.inames, write.offset)
            if not write.is_write or key in self._seen:
                continue
            self._seen.add(key)
            where = array.space.aligned(surplus.instances) & array.cells_of(write)
            written = self.cells(array, where)
            for read in array.reads:
                asked = array.asked(read, in_domain=True)
                if surplus.leaf.position < read.leaf.position:
                    left = array.without_written(read, asked, surplus.leaf)
                    if left is None:
                        continue  # overwritten before it is read
                    asked = left
                both = written & self.cells(array, asked)
                if both.is_empty():
                    continue
                # What other iterations leave there, nobody sees.
                loops = self.renewed(surplus, array, read, asked)
                around = [x.name for x in read.scope.loops if surplus.leaf.scope.is_inside(x)]
                if loops.issuperset(around[-1:]) and surplus.leaf.position >= read.leaf.position:
                    continue  # read before, and written anew before it is read again
                loops |= array.fills.held(surplus.leaf, read.leaf, loops)
                if loops:
                    both = self.cells(array, where, loops) & self.cells(array, asked, loops)
                if not both.is_empty():
                    self.report(surplus, array, read, where, both)
                    return

    def renewed(
        self, surplus: Surplus, array: ArrayReads, read: Touch, asked: isl.Set
    ) -> frozenset[str]:
        """The loops in each iteration of which all that a line reads is written before it."""
        found: set[str] = set()
        for leaf in {write.leaf for write in array.writes}:
            if array.writes_all(leaf, read, asked):
                around = (x for x in read.scope.loops if leaf.scope.is_inside(x))
                found |= {x.name for x in around if surplus.leaf.scope.is_inside(x)}
        return frozenset(found)

    def cells(
        self, array: ArrayReads, where: isl.Set, names: frozenset[str] = frozenset()
    ) -> isl.Set:
        """Threads and cells of some accesses, over all sizes, and other ``names`` that are kept."""
        kept = [*self.subject.shared_names, *self.subject.words, *array.cells, *names]
        return array.space.project_onto(where, [n for n in kept if n in array.space.position])

    def report(
        self, surplus: Surplus, array: ArrayReads, read: Touch, where: isl.Set, both: isl.Set
    ) -> None:
        """A finding: which cell an instance too many changes."""
        point = self.point(both, *array.cells)
        fixed = [equal(variable(n), number(v)) for n, v in point.items()]
        inames = sorted(surplus.statement.inames)
        instance = self.point(where & array.space.all_of(fixed), *inames)
        what = f"'{surplus.statement.id}' runs for what is no instance of it, and so changes "
        what += f"a cell that '{read.leaf.statement or 'a guard'}' (line {read.leaf.line}) reads"
        cell = tuple(point[name] for name in array.cells)
        self.found("instances", what, surplus.leaf, instance, array=array.array, cell=cell)
