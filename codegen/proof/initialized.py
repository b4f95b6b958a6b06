"""Proof that every read of a temporary is preceded by a write of the cell.

A private cell must have been written by the same thread, a shared one by some thread of the same
block, a global one by some thread, earlier in the order of the text. Barriers between the two are
checked by :mod:`.conflict_check`, the order of lines by :mod:`.order`, and the instances that
execute by :mod:`.instance_proof`.
"""

from __future__ import annotations

from functools import reduce
from itertools import chain

import islpy as isl

from loopkit import _sets
from loopkit._cached import memoised
from loopkit._kernel import Statement
from loopkit._relations import grouped
from loopkit.codegen.c.tree import If
from loopkit.codegen.proof.data import DataFacts
from loopkit.codegen.proof.forms import is_affine, variable
from loopkit.codegen.proof.instance_proof import InstanceCheck
from loopkit.codegen.proof.liveness import Liveness, written_by
from loopkit.codegen.proof.reaching_definitions import ReachingDefinitions
from loopkit.codegen.proof.recorder import Check, Recorder
from loopkit.codegen.proof.shown import shown
from loopkit.codegen.proof.spaces import Space, equal, in_range
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Group, Leaf, Touch

_MANY = 8
_WHOSE = {"private": "this thread", "shared": "this block", "global": "any thread"}


class InitializedCheck(Check):
    """Finds, for each read of a temporary, the writes that precede it."""

    def __init__(
        self,
        subject: Subject,
        recorder: Recorder,
        data: DataFacts,
        instances: InstanceCheck,
        varying: set[str],
    ) -> None:
        super().__init__(subject, recorder)
        self.data = data
        self.surplus = {id(s.leaf): s.statement for s in instances.surplus}
        self.varying = varying
        self.uses = Liveness(subject)
        found = [*subject.touches]
        self.unnamed = grouped((t.array, t) for t in found if t.is_write and t.cell is None)
        alike = grouped(((t.array, len(t.cell)), t) for t in found if t.cell is not None)
        self.arrays = grouped((key[0], ArrayReads(self, *key, alike[key])) for key in alike)

    def run(self) -> None:
        """Check all reads of all temporaries."""
        for array in chain(*self.arrays.values()):
            if array.array in self.subject.temporaries:
                array.run()

    @memoised
    def in_excess(self, leaf: Leaf) -> list[Statement]:
        """The statements that a line belongs to, if all of them execute outside their domains."""
        if not isinstance(leaf.node, If):
            return [self.surplus[id(leaf)]] if id(leaf) in self.surplus else []
        behind = leaf.parent.children[leaf.index :]
        first, last = next(g.span for g in behind if isinstance(g, Group) and g.node is leaf.node)
        inside = [self.in_excess(one) for one in self.subject.leaves[first : last + 1]]
        return [*chain(*inside)] if all(inside) else []

    def is_seen(self, leaf: Leaf) -> bool:
        """Whether anything may read what a line writes before it is overwritten."""
        written = written_by(leaf)
        if not self.uses.is_used(leaf):
            return False
        if not written or any(name not in self.subject.temporaries for name in written):
            return True
        arrays = [one for name in written for one in self.arrays.get(name, ())]
        return not all(one.hides(leaf) for one in arrays)

    def writes_all(self, leaf: Leaf, reader: Leaf, name: str) -> bool:
        """Whether a line writes all cells that another line reads, each time before it reads."""
        reads = [(a, r) for a in self.arrays.get(name, ()) for r in a.reads if r.leaf is reader]
        return bool(reads) and all(a.writes_all(leaf, r, a.asked(r)) for a, r in reads)

    def read_at_all(self, leaf: Leaf, where: isl.Set, space: Space) -> isl.Set:
        """The given executions of a line whose results are read, or are left at the end.

        Cells of a copied box that are never read may hold any value.
        """
        writes = [touch for touch in leaf.touches if touch.is_write]
        if not writes:
            return where
        needing = space.nothing
        for touch in writes:
            arrays = self.arrays.get(touch.array, ())
            if len(arrays) != 1:
                return where
            found = arrays[0].read_at_all(leaf, touch)
            if found is None:
                return where
            needing = needing | space.aligned(found)
        return where & needing


class ArrayReads:
    """The reads of one array, whose cells all have as many indices."""

    def __init__(
        self, check: InitializedCheck, array: str, rank: int, touches: tuple[Touch, ...]
    ) -> None:
        self.check = check
        self.subject = check.subject
        self.array = array
        self.reads = [touch for touch in touches if not touch.is_write]
        self.writes = [touch for touch in touches if touch.is_write]
        self.fills = ReachingDefinitions(check.subject, array, rank, self.writes, check.varying)
        self.cells, self.space = self.fills.cells, self.fills.space
        self._by_cell = grouped((write.cell, write) for write in self.writes)
        self._whole: dict[int, bool] = {}
        self._known: set[tuple[object, ...]] = set()
        self._cells_read = grouped((read.scope.frame, read.cell) for read in self.reads)

    def run(self) -> None:
        """Check all reads, in the order of the text."""
        for read in self.reads:
            excess = tuple(s.id for s in self.check.in_excess(read.leaf))
            key = (id(read.scope.frame), read.cell, excess)
            # What was written before an earlier line of the same scope is still written.
            # All of the array may have been written before an earlier read.
            is_inside = any(self._whole.get(id(scope)) for scope in read.scope.chain())
            if key in self._known or is_inside or self.obvious(read):
                continue
            what = f"whether what line {read.leaf.line} reads of '{self.array}' was written"
            with self.check.recorder.question("unwritten", what, read.leaf):
                if self.covered(read) and not self.fills.memory(read.cell):
                    self._known.add(key)

    def obvious(self, read: Touch) -> bool:
        """Whether an earlier line writes the cell under no further guards and in no other loops."""
        around = None
        for write in self._by_cell.get(read.cell, ()):
            if write.leaf.position >= read.leaf.position:
                return False
            if around is None:
                around = set(map(id, read.scope.chain()))
            if id(write.scope.frame) in around and self.fills.is_fixed(write, read):
                return True
        return False

    def covered(self, read: Touch) -> bool:
        """Whether the cells of a read were written before; reports a finding otherwise."""
        frame = read.scope.frame
        several = len(set(self._cells_read[frame])) >= _MANY
        if several and id(frame) not in self._whole:
            extents = read.extents
            if extents and None not in extents:
                whole = self.space.all_of(
                    in_range(variable(c), e)
                    for c, e in zip(self.cells, extents, strict=True)
                    if e is not None
                )
                rest = self.without_written(read, self.fills.aligned(read.scope) & whole)
                self._whole[id(frame)] = rest is None
                if rest is None:
                    return True
        left = self.without_written(read, self.asked(read))
        if left is None:
            return True
        if not self.addresses(read):
            if not self.check.is_seen(read.leaf):
                return True
            left = self.check.uses.by_own_thread(read.leaf, left, self.space)
            left = self.check.read_at_all(read.leaf, left, self.space)
            if left.is_empty():
                return True
        self.report(read, left)
        return False

    def matters(self, read: Touch) -> bool:
        """Whether any output depends on the value that is read."""
        return self.check.uses.is_used(read.leaf) or self.addresses(read)

    def addresses(self, read: Touch) -> bool:
        """Whether the value that is read determines an address, and so must be defined."""
        return self.array in self.check.uses.addressing(read.leaf)

    def asked(self, read: Touch, *, in_domain: bool = False) -> isl.Set:
        """The cells and instances of a read on which anything depends.

        With ``in_domain``, only instances of the kernel, although others may compute addresses,
        too.
        """
        where = self.fills.aligned(read.scope)
        statements = self.check.in_excess(read.leaf)
        if statements and (in_domain or not self.addresses(read)):
            # Nothing sees what the others compute.
            needed = reduce(isl.Set.union, map(self.subject.instances, statements))
            # What data decide behind a guard is not known where it is asked.
            data = () if read.leaf.statement else self.subject.data_names
            where = where & self.space.aligned(self.subject.space.without(needed, data))
        return where & self.cells_of(read)

    def cells_of(self, touch: Touch) -> isl.Set:
        """The cells of an access, over the enclosing names (a superset if data decide)."""
        known, parts = self.space.everything, []
        each = zip(self.cells, touch.cell or (), touch.extents, strict=False)
        for axis, (name, index, extent) in enumerate(each):
            if is_affine(index):
                parts.append(equal(variable(name), index))
                continue
            known = known & self.check.data.chosen(touch, axis, name, self.space)
            if extent is not None:
                parts.append(in_range(variable(name), extent))
        return known & self.space.all_of(parts)

    def without_written(
        self, read: Touch, asked: isl.Set, after: Leaf | None = None
    ) -> isl.Set | None:
        """The part of ``asked`` that was not written before; None if it is empty."""
        if asked.is_empty():
            return None
        # Most names are free in all of these sets.
        left = asked.drop_unused_params()
        for piece in self.fills.pieces(read, after):
            written = piece.drop_unused_params()
            if left.is_subset(written):
                return None
            left = left.subtract(written).coalesce()
            if left.is_empty():
                return None
        return self.space.aligned(left)

    def hides(self, leaf: Leaf) -> bool:
        """Whether everything that a line writes is overwritten before it is read."""
        for read in self.reads:
            if not self.matters(read):
                continue
            if read.leaf.position <= leaf.position:
                if any(loop in leaf.scope.loops for loop in read.scope.loops):
                    return False
            elif self.without_written(read, self.asked(read), leaf) is not None:
                return False
        return True

    def read_at_all(self, leaf: Leaf, write: Touch) -> isl.Set | None:
        """The executions of a write whose cells some line reads; None where that is open.

        All of an argument's cells are read behind the kernel.  What a later iteration of a loop
        overwrites, in which nothing reads the array, is not read.
        """
        if write.cell is None or len(write.cell) != len(self.cells):
            return None
        if not all(is_affine(index) for index in write.cell):
            return None
        there = self.fills.aligned(write.scope) & self.cells_of(write)
        if self.array in self.subject.temporaries:
            there = there & self.cells_read(leaf)
        reads = [read for read in self.reads if self.matters(read)]
        for loop in leaf.scope.loops:
            if not any(loop in (*read.scope.loops, read.leaf.node) for read in reads):
                there = there - self.fills.overwritten(write, loop)
        return _sets.project_out(there, self.cells)

    def cells_read(self, leaf: Leaf) -> isl.Set:
        """The cells that any line reads for a value that is used, per block or thread.

        Also per iteration of the loops around a read and the line, if the line rewrites them all.
        """
        words = {"private": self.subject.words, "shared": self.subject.block_words, "global": ()}
        always = {*self.subject.sizes, *words[self.fills.place], *self.cells}
        result = self.space.nothing
        for read in self.reads:
            if not self.matters(read):
                continue
            asked = self.asked(read)
            kept = always
            if self.writes_all(leaf, read, asked):
                kept = always | {x.name for x in read.scope.loops if leaf.scope.is_inside(x)}
            result = result | self.space.project_onto(asked, kept & self.space.position.keys())
        return result

    def writes_all(self, leaf: Leaf, read: Touch, asked: isl.Set) -> bool:
        """Whether a line writes all that is asked of a read in the iteration around both."""
        for write in self.writes:
            if write.leaf is leaf and leaf.position < read.leaf.position:
                piece = self.fills.piece(write, read, None)
                if piece is not None and asked.is_subset(piece):
                    return True
        return False

    def report(self, read: Touch, left: isl.Set) -> None:
        """Report a read of an uninitialised cell."""
        subject = self.subject
        whose = _WHOSE[self.fills.place]
        what = f"the line reads '{self.array}' where nothing before has written it for {whose}"
        unnamed = self.check.unnamed.get(self.array)
        if unnamed is not None:
            lines = f"which cells line {unnamed[0].leaf.line} writes is not known"
            self.check.recorder.open("unwritten", f"whether {what}: {lines}", [read.leaf])
            return
        if not self.writes:
            what = f"the line reads '{self.array}', which nothing writes"
        beyond = left.gist(self.space.aligned(subject.admitted))
        involved = set(_sets.involved_names(beyond)) & subject.data_names
        doubts = read.scope.unknown or involved or not all(is_affine(c) for c in read.cell or ())
        if self.writes and not doubts:
            sure = left
            for piece in self.fills.perhaps(read):
                sure = sure.subtract(piece)
            doubts, left = sure.is_empty(), sure
        if doubts and self.writes:
            # A guard on data may be true only where the cell was written; that is not known here.
            guards = sorted({shown(u) for u in read.scope.unknown})
            where = f" whether '{' and '.join(guards)}' holds there" if guards else ""
            self.check.recorder.open(
                "unwritten", f"whether {what}: data decide{where}", [read.leaf]
            )
            return
        point = self.check.point(left, *subject.kernel.all_inames, *self.cells)
        cell = tuple(point[c] for c in self.cells)
        self.check.found("unwritten", what, read.leaf, point, array=self.array, cell=cell)
