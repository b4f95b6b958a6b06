"""Proof that each barrier is reached by all threads of its scope, or by none of them."""

from __future__ import annotations

import islpy as isl

from loopkit._collectives import COMBINE, combined_axes, is_alike_in_all
from loopkit._hidden import label_of
from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.proof.forms import floor, renamed
from loopkit.codegen.proof.names import Names
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.spaces import Space, copy_of, equal
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Leaf


class DivergenceCheck(Check):
    """Proves that barriers are reached uniformly."""

    def __init__(self, subject: Subject, recorder: Recorder) -> None:
        super().__init__(subject, recorder)
        self.varying = varying_names(subject)

    def run(self) -> None:
        """Check all barriers."""
        if not self.subject.thread_words:
            return
        for leaf in self.subject.leaves:
            if leaf.meets is not None:
                what = "whether all threads reach the barrier"
                with self.recorder.question("divergent barrier", what, leaf):
                    self.barrier(leaf)

    def barrier(self, leaf: Leaf) -> None:
        """Whether the loops and guards around a barrier are the same for all threads."""
        names, depends = self.subject.names, False
        for scope in leaf.scope.chain():
            node = scope.node
            if not isinstance(node, (c.For, c.If)) or not _depends(names, node, self.varying):
                continue
            depends = True
            for data in filter(None, map(self._varying_data, c.expressions(node))):
                what = f"line {node.line} decides by {data}, which "
                what += "threads may see differently, whether the barrier is reached"
                self.found("divergent barrier", what, leaf, {})
                return
        if depends:
            self.affine(leaf)

    def affine(self, leaf: Leaf) -> None:
        """Check that no two threads differ in whether they reach the barrier in an iteration."""
        subject = self.subject
        loops = tuple(loop.name for loop in leaf.scope.loops)
        space = subject.pair_space((*subject.block_words, *loops))
        here = space.aligned(leaf.scope.set)
        there = self._copy(space, leaf)
        launched = [renamed(subject.launched(w), _second) for w in subject.thread_words]
        others = here & space.all_of(launched)
        if leaf.barrier == "warp":
            number = subject.thread_number
            warps = floor(number, CUDA.warp), floor(renamed(number, _second), CUDA.warp)
            others = others & space.where(equal(*warps))
        absent = others - there
        if absent.is_empty():
            return
        point = self.point(absent, *loops, *(copy_of(w, 1) for w in subject.thread_words))
        what = f"the first of these threads of a {leaf.barrier} reaches the barrier, "
        second = subject.place(leaf, point, 1)
        self.found("divergent barrier", what + "the second does not", leaf, point, second=second)

    def _copy(self, space: Space, leaf: Leaf) -> isl.Set:
        """The barrier's executions by the second thread, constants of its own projected out."""
        domain = space.renamed(leaf.scope.set, space.renaming(1))
        words = {copy_of(w, 1) for w in self.subject.thread_words}
        return space.without(domain, (n for n in space.names if label_of(n) and n not in words))

    def _varying_data(self, expr: c.CExpression) -> str:
        """Loaded values in an expression that may differ between threads."""
        places = self.subject.names.places
        for part in c.walk(expr):
            used = self.subject.names.used(part)
            if isinstance(part, c.Element) and not self.varying.isdisjoint(used):
                return part.array
            if (
                isinstance(part, c.Name)
                and part.name in self.varying
                and places.get(part.name) == "private"
            ):
                return part.name
        return ""


def _second(name: str) -> str:
    return copy_of(name, 1) if name in CUDA.thread_index else name


def _depends(names: Names, node: c.For | c.If | c.Let | None, varying: set[str]) -> bool:
    parts = () if node is None else c.expressions(node)
    return any(not varying.isdisjoint(names.used(part)) for part in parts)


def varying_names(subject: Subject) -> set[str]:
    """Names and private arrays whose values may differ between threads of a block.

    Elements of shared and global memory are the same for all threads that read them at one point,
    unless there is a race, which another check reports. So is an accumulator that all threads of a
    block have combined, for the lines that read it after the combination (checked elsewhere, too).
    """
    varying = set(subject.thread_words)
    used = subject.names.used
    whole = _combined_by_all(subject)
    while True:
        before = len(varying)
        for leaf in subject.leaves:
            # Where a private variable is written only by some threads, it varies, too.
            guarded = False
            for scope in leaf.scope.chain():
                node = scope.node
                depends = _depends(subject.names, node, varying)
                if isinstance(node, (c.For, c.Let)) and depends:
                    varying.add(node.name)
                guarded = guarded or (depends and not isinstance(node, c.Let))
            if isinstance(leaf.node, c.Combine):
                varying.update(touch.array for touch in leaf.touches)
            if isinstance(leaf.node, c.Assign):
                target = leaf.node.target
                name = target.name if isinstance(target, c.Name) else target.array
                if subject.names.places.get(name) != "private":
                    continue
                parts: list[c.CExpression] = [leaf.node.value]
                if isinstance(target, c.Element):
                    parts += target.indices
                own = varying if name in whole else varying - whole
                if guarded or any(not own.isdisjoint(used(e)) for e in parts):
                    varying.add(name)
        if len(varying) == before:
            return varying


def _combined_by_all(subject: Subject) -> set[str]:
    """The accumulators whose partial results all threads of a block combine, to the same bits."""
    axes = {axis for axis, extent in enumerate(subject.program.block) if extent > 1}
    parts = {
        touch.array
        for leaf in subject.leaves
        if isinstance(leaf.node, c.Combine)
        and ((own := subject.statement_of(leaf)) is None or own.kind != COMBINE)
        for touch in leaf.touches
    }
    return {
        name
        for name, along in combined_axes(subject.kernel).items()
        if axes <= {*along} and name not in parts and is_alike_in_all(subject.kernel, name)
    }
