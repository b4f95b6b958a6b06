"""What a line reads of a temporary was written before it: by its thread, or in its block.

A private cell must have been written by the same thread, a shared one by some
thread of the same block, one in global memory by some thread, earlier in the
order of the text.  That the threads then wait for each other is shown by
:mod:`.conflicts`; that lines stand in the kernel's order, and for which
instances they run, by :mod:`.order` and :mod:`.instances`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

import islpy as isl

from loopkit import _sets
from loopkit.codegen.proof import conditions
from loopkit.codegen.proof.divergence import varying_names
from loopkit.codegen.proof.forms import Form, Opaque, variable
from loopkit.codegen.proof.instances import InstanceCheck
from loopkit.codegen.proof.recorder import Recorder
from loopkit.codegen.proof.report import Finding
from loopkit.codegen.proof.scopes import Scope
from loopkit.codegen.proof.spaces import equal, in_range, less
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.syntax import For, Let
from loopkit.codegen.proof.tree import Group, Leaf, Touch

_EARLIER = "earlier"
_MANY = 8
_WORD = re.compile(r"[A-Za-z_]\w*(?:\.[xyz])?")
_WHOSE = {"private": "this thread", "shared": "this block", "global": "any thread"}

Cell = tuple[Form, ...]


class Write:
    """One write of a temporary, and where in the text it stands."""

    def __init__(self, position: int, leaf: Leaf, cell: Cell) -> None:
        self.position = position
        self.leaf = leaf
        self.scope = leaf.scope
        self.cell = cell


class Read:
    """One read, with what is asked of it."""

    def __init__(self, position: int, leaf: Leaf, touch: Touch, cell: Cell) -> None:
        self.position = position
        self.leaf = leaf
        self.touch = touch
        self.scope = touch.scope
        self.cell = cell
        self.key = tuple(c.key for c in cell)


class WrittenCheck:
    """Finds for each read of a temporary the writes before it."""

    def __init__(self, subject: Subject, recorder: Recorder, instances: InstanceCheck) -> None:
        self.subject = subject
        self.recorder = recorder
        self.surplus = {id(s.leaf): s.statement for s in instances.surplus}
        self.writes: dict[str, list[Write]] = {}
        self.reads: dict[str, list[Read]] = {}
        for position, leaf in enumerate(subject.leaves):
            for touch in leaf.touches:
                if touch.array in subject.temporaries and touch.cell is not None:
                    if touch.is_write:
                        write = Write(position, leaf, touch.cell)
                        self.writes.setdefault(touch.array, []).append(write)
                    else:
                        read = Read(position, leaf, touch, touch.cell)
                        self.reads.setdefault(touch.array, []).append(read)
        self._spans: dict[int, tuple[int, int]] = {}
        self._aligned: dict[tuple[int, int], isl.Set] = {}
        self._pieces: dict[tuple[object, ...], isl.Set] = {}

    def run(self) -> None:
        """Check all reads of all temporaries."""
        for array, reads in self.reads.items():
            for rank in sorted({len(read.cell) for read in reads}):
                own = [read for read in reads if len(read.cell) == rank]
                _OneArray(self, array, own).run()

    # {{{ the text

    @cached_property
    def varying(self) -> set[str]:
        """What threads of a block may see differently."""
        return varying_names(self.subject)

    @cached_property
    def used(self) -> frozenset[str]:
        """The arrays whose values reach an output, or decide what runs."""
        writers: dict[str, list[Leaf]] = {}
        waiting: list[Leaf] = []
        for leaf in self.subject.leaves:
            written = [touch.array for touch in leaf.touches if touch.is_write]
            for name in written:
                writers.setdefault(name, []).append(leaf)
            if not written or any(name in self.subject.kernel.arg_by_name for name in written):
                waiting.append(leaf)
        used: set[str] = set(self.subject.kernel.arg_by_name)
        while waiting:
            for touch in waiting.pop().touches:
                if touch.array not in used and not touch.is_write:
                    used.add(touch.array)
                    waiting += writers.get(touch.array, ())
        return frozenset(used)

    def is_used(self, leaf: Leaf) -> bool:
        """Whether anything depends on what a line reads."""
        written = [touch.array for touch in leaf.touches if touch.is_write]
        return not written or any(name in self.used for name in written)

    def span(self, node: Group | Leaf, position: int) -> tuple[int, int]:
        """The first and the last position of the leaves in a node, one of which is known."""
        if isinstance(node, Leaf):
            return position, position
        if not self._spans:
            self._measure(self.subject.tree, 0)
        return self._spans[id(node)]

    def _measure(self, group: Group, start: int) -> int:
        end = start
        for child in group.children:
            end = self._measure(child, end) if isinstance(child, Group) else end + 1
        self._spans[id(group)] = (start, end - 1)
        return end

    def written_in(self, span: tuple[int, int], names: frozenset[str]) -> bool:
        """Whether lines of a part of the text write what lies in memory by these names."""
        leaves = self.subject.leaves[span[0] : span[1] + 1]
        return any(t.is_write and t.array in names for leaf in leaves for t in leaf.touches)

    # }}}


class _OneArray:
    """The reads of one array."""

    def __init__(self, check: WrittenCheck, array: str, reads: list[Read]) -> None:
        self.check = check
        self.subject = check.subject
        self.array = array
        self.reads = reads
        self.writes = [w for w in check.writes.get(array, ()) if len(w.cell) == len(reads[0].cell)]
        self.place = check.subject.place_of(array)
        rank = len(reads[0].cell)
        self.cells = [f"cell {axis}" for axis in range(rank)]
        self.space = check.subject.cell_space(rank)
        self._by_cell: dict[tuple[str, ...], list[Write]] = {}
        for write in self.writes:
            key = tuple(c.key for c in write.cell)
            self._by_cell.setdefault(key, []).append(write)
        self._whole: dict[int, bool] = {}
        self._known: set[tuple[object, ...]] = set()
        self._counts: dict[int, set[tuple[str, ...]]] = {}
        for read in reads:
            self._counts.setdefault(id(read.scope), set()).add(read.key)

    def run(self) -> None:
        """Check all reads, in the order of the text."""
        for read in self.reads:
            key = (id(read.scope), read.key)
            # What was written before an earlier line of the same scope is still written.
            if key in self._known or self.obvious(read) or self.inside_whole(read):
                continue
            what = f"whether what line {read.leaf.line} reads of '{self.array}' was written"
            with self.check.recorder.question("unwritten", what, read.leaf):
                if self.covered(read):
                    self._known.add(key)

    def inside_whole(self, read: Read) -> bool:
        """Whether all of the array was written before an earlier read."""
        return any(self._whole.get(id(s)) for s in read.scope.chain())

    # {{{ what is seen from the text

    def obvious(self, read: Read) -> bool:
        """Whether a line before, under no more guards and in no other loops, writes that cell."""
        around = None
        for write in self._by_cell.get(read.key, ()):
            if write.position >= read.position:
                return False
            if around is None:
                around = set(map(id, read.scope.chain()))
            if id(write.scope) in around and self.is_fixed(write, read):
                return True
        return False

    def is_fixed(self, write: Write, read: Read) -> bool:
        """Whether the written cell is called the same until it is read."""
        names = _memory(self.subject, write.cell)
        return not names or not self.check.written_in(self.between(write, read), names)

    def between(self, write: Write, read: Read) -> tuple[int, int]:
        """All lines that may run between two others in one iteration of what is around both."""
        one, two = _route(write.leaf), _route(read.leaf)
        depth = 0
        while depth < min(len(one), len(two)) and one[depth] is two[depth]:
            depth += 1
        if depth == min(len(one), len(two)):
            return self.check.span(one[depth - 1], write.position)
        first = self.check.span(one[depth], write.position)[0]
        return first, self.check.span(two[depth], read.position)[1]

    # }}}

    # {{{ sets of cells

    def aligned(self, scope: Scope) -> isl.Set:
        """Where a scope is reached, over the names of a cell's indices, too."""
        key = (id(self.space), id(scope))
        found = self.check._aligned.get(key)
        if found is None:
            found = self.check._aligned[key] = self.space.aligned(scope.set)
        return found

    def covered(self, read: Read) -> bool:
        """Whether the cells of a read were written before; tells what is found otherwise."""
        several = len(self._counts[id(read.scope)]) >= _MANY
        if several and id(read.scope) not in self._whole:
            extents = read.touch.extents
            if extents and None not in extents:
                whole = self.space.all_of(
                    in_range(variable(c), e)
                    for c, e in zip(self.cells, extents, strict=True)
                    if e is not None
                )
                rest = self.without_written(read, self.aligned(read.scope) & whole)
                self._whole[id(read.scope)] = rest is None
                if rest is None:
                    return True
        left = self.without_written(read, self.asked(read))
        if left is None or not self.check.is_used(read.leaf):
            return True
        self.report(read, left)
        return False

    def asked(self, read: Read) -> isl.Set:
        """Cells and instances of a read, as far as anything depends on them."""
        where = self.aligned(read.scope)
        statement = self.check.surplus.get(id(read.leaf))
        if statement is not None:
            # Nothing sees what the others compute.
            domain, _ = self.subject.domain(statement)
            where = where & self.space.aligned(domain)
            where = where & self.space.all_of(self.subject.coordinate_conditions(statement.inames))
        parts = []
        for name, index, extent in zip(self.cells, read.cell, read.touch.extents, strict=False):
            if index.is_affine:
                parts.append(equal(variable(name), index))
            elif extent is not None:
                parts.append(in_range(variable(name), extent))
        return where & self.space.all_of(parts)

    def without_written(self, read: Read, asked: isl.Set) -> isl.Set | None:
        """What of ``asked`` was not written before; None if all was."""
        if asked.is_empty():
            return None
        left = asked
        for piece in self.pieces(read):
            if left.is_subset(piece):
                return None
            left = left.subtract(piece)
            if left.is_empty():
                return None
        return left

    def pieces(self, read: Read) -> Iterator[isl.Set]:
        """The cells that were written before a read, by what is around both; nearest first."""
        for write in reversed(self.writes):
            if write.position < read.position:
                found = self.piece(write, read, None)
                if found is not None:
                    yield found
        for loop in reversed(read.scope.loops):
            for write in reversed(self.writes):
                if any(other is loop for other in write.scope.loops):
                    found = self.piece(write, read, loop)
                    if found is not None:
                        yield found

    def piece(self, write: Write, read: Read, carried: For | None) -> isl.Set | None:
        """The cells written by a line; ``carried``: in earlier iterations of a loop.

        None where only data decides that they are.
        """
        memory = self.decided_by(write, read, carried)
        if memory is None:
            return None
        common = _common(write.scope, read.scope, carried)
        same_data = tuple(a.key if not a.is_affine else "" for a in write.cell)
        key = (write.position, id(write.leaf), id(common), id(carried), memory, same_data)
        found = self.check._pieces.get(key)
        if found is None:
            found = self.check._pieces[key] = self.make_piece(write, common, carried, memory)
        return found

    def decided_by(self, write: Write, read: Read, carried: For | None) -> frozenset[str] | None:
        """The names on which conditions and cells that only data decides depend.

        They stand for the same values at the read; None if they may not, or if
        the read does not ask for the same.
        """
        unknown = {u.key for u in write.scope.unknown}
        if not unknown <= {u.key for u in read.scope.unknown}:
            return None
        words: set[str] = set()
        for key in unknown:
            words.update(_WORD.findall(key))
        for mine, other in zip(write.cell, read.cell, strict=True):
            if not mine.is_affine:
                if mine.key != other.key:
                    return None
                words.update(_WORD.findall(mine.key))
        data = self.subject.data_names
        if data:
            for condition in write.scope.all_conditions:
                words |= conditions.names_in(condition) & data
            for mine in write.cell:
                words |= mine.names & data
        if not words:
            return frozenset()
        places = self.subject.names.places
        memory = frozenset(w for w in words if places.get(w, "value") != "value")
        if carried is not None and carried.name in words:
            return None
        if self.place != "private":
            own = {m for m in memory if places[m] == "private"}
            if own & self.check.varying:
                return None
        if memory:
            span = self.between(write, read)
            if carried is not None:
                span = self.check.span(_group_of(write.leaf, carried), write.position)
            if self.check.written_in(span, memory):
                return None
        return frozenset(words)

    def make_piece(
        self, write: Write, common: Scope, carried: For | None, kept: frozenset[str]
    ) -> isl.Set:
        """The cells that all executions of a write reach, by the names around it and the read."""
        space, subject = self.space, self.subject

        def name(old: str) -> str:
            return _EARLIER if carried is not None and old == carried.name else old

        if carried is None:
            where = self.aligned(write.scope)
        else:
            where = space.aligned(subject.admitted) & space.all_of(write.scope.copied(name))
            where = where & space.where(less(variable(_EARLIER), variable(carried.name)))
        where = where & space.all_of(
            equal(variable(c), i.renamed(name))
            for c, i in zip(self.cells, write.cell, strict=True)
            if i.is_affine
        )
        # What equations fix goes first: isl then finds the simplest form.
        lets: list[str] = []
        loops: list[str] = []
        outer = set(map(id, common.chain()))
        for scope in write.scope.chain():
            node = scope.node
            if not isinstance(node, (For, Let)) or node.name in kept or node is carried:
                continue
            # Another thread has constants of its own.
            if id(scope) not in outer or (isinstance(node, Let) and self.place != "private"):
                (lets if isinstance(node, Let) else loops).append(node.name)
        words: tuple[str, ...] = ()
        if self.place != "private":
            words = subject.thread_words
        if self.place == "global":
            words += subject.block_words
        if carried is not None:
            loops.append(_EARLIER)
        for one in (*lets, *words, *loops):
            where = where.eliminate(_sets.PARAM, space.position[one], 1)
        return where

    # }}}

    def report(self, read: Read, left: isl.Set) -> None:
        """A read of something that nothing has written."""
        subject, recorder = self.subject, self.check.recorder
        whose = _WHOSE[self.place]
        what = f"the line reads '{self.array}' where nothing before has written it for {whose}"
        if not self.writes:
            what = f"the line reads '{self.array}', which nothing writes"
        involved = set(_sets.involved_names(left)) & subject.data_names
        doubts = read.scope.unknown or involved or not all(c.is_affine for c in read.cell)
        if doubts and self.writes:
            recorder.open("unwritten", f"whether {what}: data decide", [read.leaf])
            return
        inames = [i for i in subject.kernel.all_inames if i in subject.space.position]
        names = (*subject.sizes, *subject.words, *inames, *self.cells)
        point = recorder.point(self.space, left, names)
        recorder.found(
            Finding(
                "unwritten",
                what,
                subject.place(read.leaf, point),
                array=self.array,
                cell=tuple(point[c] for c in self.cells),
                sizes=subject.sizes_at(point),
            )
        )


def _route(leaf: Leaf) -> list[Group | Leaf]:
    """The groups around a leaf, outermost first, and the leaf."""
    found: list[Group | Leaf] = [leaf]
    group: Group | None = leaf.parent
    while group is not None:
        found.append(group)
        group = group.parent
    return found[::-1]


def _group_of(leaf: Leaf, loop: For) -> Group:
    """The loop around a leaf as a part of the tree."""
    group: Group | None = leaf.parent
    while group is not None and group.node is not loop:
        group = group.parent
    assert group is not None
    return group


def _common(one: Scope, two: Scope, carried: For | None) -> Scope:
    """The innermost scope around both; with ``carried`` that of the loop."""
    around = set(map(id, two.chain()))
    for scope in one.chain():
        if (scope.node is carried) if carried is not None else (id(scope) in around):
            return scope
    raise AssertionError("all scopes lie in that of the function")


def _memory(subject: Subject, cell: Cell) -> frozenset[str]:
    """What a cell's name depends on that lies in memory."""
    words: set[str] = set()
    for form in cell:
        words |= form.names & subject.data_names
        for atom in form.atoms:
            if isinstance(atom, Opaque):
                words.update(_WORD.findall(atom.key))
    places = subject.names.places
    return frozenset(w for w in words if places.get(w, "value") != "value")
