"""Proof that results of instances outside the domain have no effect.

A statement may execute for instances outside its domain if it writes private cells that no thread
reads for an instance of the kernel. What such an instance reads is then irrelevant, except that it
must be in bounds, which :mod:`.access_bounds` proves for everything that executes. It must not be
an argument of a user's function, which might not terminate for undefined values.
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
    """Proves that instances outside a domain have no visible effect."""

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
        """Check all private arrays with writes outside a domain."""
        for one in self.surplus:
            what = f"whether what '{one.statement.id}' computes too often is used"
            with self.recorder.question("instances", what, one.leaf):
                self.check_calls(one)
                for array in self.initialized.arrays.get(one.statement.written, ()):
                    self.check(one, array)

    def check_calls(self, surplus: Surplus) -> None:
        """Check that users' functions are called for instances of the kernel only."""
        calls = (call for e in surplus.statement.expressions for call in own_calls(e))
        for call in calls:
            what = f"'{surplus.statement.id}' calls '{call.function.name}' for what is no instance"
            instance = self.point(surplus.instances, *sorted(surplus.statement.inames))
            self.found("instances", what, surplus.leaf, instance)
            return

    def check(self, surplus: Surplus, array: ArrayReads) -> None:
        """Check that no cell written outside a domain is read by an instance of the kernel."""
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
                # No read sees what other iterations wrote there.
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
        """The loops in each iteration of which a line reads only what that iteration wrote."""
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
        """Report a cell that an instance outside the domain changes."""
        point = self.point(both, *array.cells)
        fixed = [equal(variable(n), number(v)) for n, v in point.items()]
        inames = sorted(surplus.statement.inames)
        instance = self.point(where & array.space.all_of(fixed), *inames)
        what = f"'{surplus.statement.id}' runs for what is no instance of it, and so changes "
        what += f"a cell that '{read.leaf.statement or 'a guard'}' (line {read.leaf.line}) reads"
        cell = tuple(point[name] for name in array.cells)
        self.found("instances", what, surplus.leaf, instance, array=array.array, cell=cell)
