"""Proof that every access is within the bounds of its array."""

from __future__ import annotations

import islpy as isl

from loopkit._arrays import ArrayArg, TemporaryVariable
from loopkit._cached import memoised
from loopkit._expression import accesses, to_text
from loopkit._hidden import plain
from loopkit._promotion import BOOL
from loopkit.codegen.c.tree import If
from loopkit.codegen.proof.asked import is_asked_by_text
from loopkit.codegen.proof.data import DataFacts
from loopkit.codegen.proof.forms import Form, is_affine, values_of
from loopkit.codegen.proof.instance_proof import InstanceCheck
from loopkit.codegen.proof.proof_conditions import negated
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.shown import shown
from loopkit.codegen.proof.spaces import in_range
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Touch


class BoundsCheck(Check):
    """Compares the cells of accesses, once matched with the kernel's, with the arrays' extents."""

    def __init__(
        self, subject: Subject, recorder: Recorder, data: DataFacts, instances: InstanceCheck
    ) -> None:
        super().__init__(subject, recorder)
        self.data = data
        self.surplus = {id(s.leaf) for s in instances.surplus if not s.instances.is_empty()}

    def run(self) -> None:
        """Check all accesses."""
        for touch in self.subject.touches:
            what = f"whether '{touch.array}' has the cell"
            with self.recorder.question("bounds", what, touch.leaf):
                self.touch(touch)

    def touch(self, touch: Touch) -> None:
        """Whether an access lies in its array."""
        if touch.cell is None:
            what = f"{touch.array}[{shown(touch.offset)}]: the cell is not affine"
            self.recorder.open("bounds", what, [touch.leaf])
            return
        for axis, (index, extent) in enumerate(zip(touch.cell, touch.extents, strict=True)):
            if extent is None:
                continue
            if not (is_affine(index) and is_affine(extent)):
                if not _is_within(touch.scope, index, extent):
                    self.by_assertions(touch, axis)
                continue
            outside = self.outside(touch.scope, index, extent)
            if outside is not None:
                self.report(touch, axis, outside)
                return
        self.subscripts(touch)

    def subscripts(self, touch: Touch) -> None:
        """Whether the text's own subscripts are in bounds, if they are not the cell's indices."""
        for axis, (index, extent) in enumerate(zip(touch.indices, touch.dimensions, strict=False)):
            if extent is None or not is_affine(index):
                continue  # where data decide, the cell is looked at, and where all cells lie
            outside = self.outside(touch.scope, index, extent)
            if outside is not None:
                what = f"subscript {axis} of {touch.array} leaves its dimension"
                point = self.point(outside, *self.subject.kernel.all_inames)
                self.found("bounds", what, touch.leaf, point, array=touch.array)
                return

    @memoised
    def outside(self, scope: Scope, index: Form, extent: Form) -> isl.Set | None:
        """The set where an index is out of range; None if it is empty (memoised)."""
        if _is_within(scope, index, extent):
            return None
        found = scope.set & scope.space.where(negated(in_range(index, extent)))
        return None if found.is_empty() else found

    def by_assertions(self, touch: Touch, axis: int) -> None:
        """Check an index that depends on data, with the assertions about that data."""
        assert touch.cell is not None
        if not self.data.is_inside(touch, axis):
            if self.is_kernels_own(touch):
                self.trust(touch, axis)
                return
            what = (
                f"{touch.array}[{shown(touch.cell[axis])}] along axis {axis}: only data decides it"
            )
            self.recorder.open("bounds", what, [touch.leaf])

    def is_kernels_own(self, touch: Touch) -> bool:
        """Whether an access is one of its statement's, and executes only for its instances.

        Then it is out of bounds only if the kernel's own access is. The same holds for a guard
        that evaluates a predicate of the kernel.
        """
        is_argument = touch.array in self.subject.kernel.arg_by_name
        if isinstance(touch.leaf.node, If):
            asked = is_argument and touch.origin is not None
            return asked and is_asked_by_text(self.subject, touch)
        matched = touch.origin is not None and touch.leaf.statement is not None
        return is_argument and matched and id(touch.leaf) not in self.surplus

    def trust(self, touch: Touch, axis: int) -> None:
        """Record an access whose bounds are taken from the kernel's text."""
        assert touch.origin is not None
        kernel = self.subject.kernel
        index = self.data.followed(touch.leaf, touch.origin[axis])
        read = (plain(n) for n, _ in accesses(index))
        deciding = dict.fromkeys(n for n in read if kernel.is_array(n))
        deciding.update(dict.fromkeys(self.data.arrays_around(touch)))
        deciding = {n: None for n in deciding if not is_truth(kernel.array(n))}
        text = ", ".join(to_text(i) for i in touch.origin)
        what = f"{touch.array}[{text}] lies in '{touch.array}' along axis {axis}"
        self.recorder.trust(what, deciding, touch.leaf)

    def report(self, touch: Touch, axis: int, outside: isl.Set) -> None:
        """Report an access that may be out of bounds, unless assertions about data exclude that."""
        assert touch.cell is not None
        outside = outside & self.data.ranges(touch.leaf)
        if outside.is_empty():
            return
        extent = touch.extents[axis]
        what = (
            f"index {axis} of {touch.array} leaves its {shown(extent) if extent else ''} elements"
        )
        data = self.data.names_around(touch)
        if data and self.is_kernels_own(touch):
            self.trust(touch, axis)
            return
        if data:
            self.recorder.open("bounds", f"{what} unless data ({data}) prevents it", [touch.leaf])
            return
        point = self.point(outside, *self.subject.kernel.all_inames)
        cell = values_of(touch.cell, point)
        self.found("bounds", what, touch.leaf, point, array=touch.array, cell=cell)


def is_truth(held: ArrayArg | TemporaryVariable) -> bool:
    """Whether an array holds truth values, about which there are no assertions."""
    return held.dtype == BOOL


def _is_within(scope: Scope, index: Form, extent: Form) -> bool:
    """Whether ranges alone show that an index is in bounds, such as a remainder of any data."""
    low, high = scope.range_of(index)
    return low >= 0 and high < scope.range_of(extent)[0]
