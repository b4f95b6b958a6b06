"""Last writers: the sources of the values that a statement reads, within one kernel.

This is Feautrier's array dataflow analysis (Dataflow analysis of array and scalar references,
1991) with sets in place of decision trees: of the writes before a read, those remain that no other
write replaces (value-based dependences: Pugh and Wonnacott, 1993). The sources of a read are the
last write that certainly sets the cell, and the later writes that update it or may set it: updates
of a reduction, and writes under conditions on data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import reduce
from itertools import chain

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import memoised, once
from loopkit._expression import Access, accesses, variable_names
from loopkit._frozen import dataclass
from loopkit._guarded import Guards, flags_of
from loopkit._hidden import KILLER, READER, WRITER, hidden
from loopkit._kernel import Kernel, Statement
from loopkit._nodes import Expression
from loopkit._poly.model import Cell, Model, model_of
from loopkit._poly.pairs import (
    Instance,
    Undecided,
    between,
    differ,
    equal_inames,
    inside,
    intersection,
    renamed,
    within_any,
    without,
)
from loopkit._same import Key, key_of, same
from loopkit._tree import Path

_Happens = tuple[frozenset[str], isl.Set]


@dataclass(frozen=True, eq=False)
class Sources:
    """The writes that a read may see.

    ``writes[id]`` relates inames of writer ``id`` (label ``WRITER``) to those of the reader (label
    ``READER``). ``untouched`` holds the reader's instances that may see the array's value from
    before the kernel. ``sure`` is the part of ``writes`` in which the cell is set for all data,
    given the ``choices``: names for the truth values of conditions on data, shared by reader and
    writer, with the set ``{ choices : each is 0 or 1 }``. ``certain`` are the writers that set the
    cell wherever their write is the one seen, for these choices. ``never[id]`` relates inames of
    writer and reader, and choices, for which the write does not happen if the read does.
    """

    writes: Mapping[str, isl.Set]
    untouched: isl.Set
    sure: Mapping[str, isl.Set] = field(default_factory=dict)
    certain: frozenset[str] = frozenset()
    choices: isl.Set | None = None
    never: Mapping[str, isl.Set] = field(default_factory=dict)

    def is_sure(self, writer: str) -> bool:
        """Whether a writer sets the cell wherever it may be what is read, in all choices."""
        relation, sure = self.writes.get(writer), self.sure.get(writer)
        if relation is None or sure is None:
            return relation is None
        return bool((relation if self.choices is None else relation & self.choices) <= sure)


def is_update(statement: Statement) -> bool:
    """Whether a statement updates its cell by a reduction's operation, in any order."""
    return statement.operation is not None


def commute(one: Statement, two: Statement) -> bool:
    """Whether two statements update by the same operation, so that their order is free."""
    return is_update(one) and one.operation == two.operation


def is_own_read(statement: Statement, access: Access) -> bool:
    """Whether an access is the read of the cell that an update changes."""
    return is_update(statement) and same(access, statement.write)


@memoised
def dataflow_of(kernel: Kernel) -> Dataflow:
    """The dataflow of a kernel (memoised on it)."""
    return Dataflow(model_of(kernel))


class Dataflow:
    """The sources of all reads in one kernel (memoised)."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._reads: dict[tuple[str, Key, bool, bool], Sources] = {}

    def of_read(self, statement: str, access: Access, *, anyway: bool = False) -> Sources:
        """The sources of one read of a statement, where its conditions hold or ``anyway``."""
        own = self.model.statement[statement]
        own = replace(own, predicates=()) if anyway else own
        is_own = is_own_read(own, access)
        key = (statement, key_of(access), is_own, anyway)
        return once(self._reads, key, self._of_read, own, access, is_own)

    def _of_read(self, own: Statement, access: Access, is_own: bool) -> Sources:
        at = Instance(own.id, READER)
        cell = self.model.cell(access[0], self.model.indices(at, access[1]), at)
        return self._sources(at, own, cell, beside=own if is_own else None)

    @memoised
    def at_end(self, statement: str) -> tuple[isl.Set, Sources]:
        """``{ inames·READER : the write is left at the end }``, a superset, and what is there then.

        The statement is among its own sources.
        """
        own = Instance(statement, READER)
        written = self.model.write_cell(own)
        domain = self.model.domain(own)
        writer = self.model.statement[statement]
        if self._is_written_again(writer):
            return domain - domain, Sources({}, domain - domain)
        end = Instance(None, READER)
        killers = filter(self._is_sure, self.model.writers_of(written))
        dead = [self._killed_by(killer, domain, written, own, end) for killer in killers]
        left = reduce(isl.Set.subtract, dead, domain).coalesce()
        if all(map(self._is_sure, self.model.writers(writer.written))):
            # Whatever came later would have replaced it, and it replaces all before.
            itself = left & equal_inames(writer.inames, WRITER, READER)
            return left, _only(statement, itself)
        found = self._sources(end, writer, written, beside=None, domain=left)
        return left, replace(found, untouched=left - left)

    @memoised
    def seen_together(self, one: str, other: str) -> isl.Set:
        """``{ inames·READER of one write, inames·WRITER of another : a read may see both }``.

        Both write one array.  What a caller finds there at the end counts as read; a superset.
        """
        array = self.model.statement[one].written
        reads = [sources for _, sources in self._all_reads(array)]
        if array in self.model.kernel.arg_by_name:
            reads += [self.at_end(writer.id)[1] for writer in self.model.writers(array)]
        found = _sets.universe() - _sets.universe()
        for sources in reads:
            if one in sources.writes and other in sources.writes:
                mine = renamed(sources.writes[one], {WRITER: KILLER})
                both = without(mine & sources.writes[other], READER)
                found = found | renamed(both, {KILLER: READER})
        return found

    @memoised
    def is_replacing(self, statement: str) -> bool:
        """Whether no read sees what a cell contained before a statement may have set it.

        No read may then see a write with the statement in between. The final contents of arguments
        count as read by the caller.
        """
        own, kernel = self.model.statement[statement], self.model.kernel
        if is_update(own) or {own.written} & (kernel.arg_by_name.keys() | kernel.bounding):
            return False
        return all(
            self._killed_by(own, where, self.model.write_cell(at), at, reader).is_empty()
            for reader, sources in self._all_reads(own.written)
            for at, where in ((Instance(w, WRITER), r) for w, r in sources.writes.items())
        )

    def _all_reads(self, array: str) -> Iterator[tuple[Instance, Sources]]:
        """The reads of an array, each with its sources: of a condition, whether it holds or not."""
        kernel = self.model.kernel
        for reader in kernel.readers.get(array, ()):
            asked = {access for p in reader.predicates for access in accesses(p)}
            for access in dict.fromkeys(kernel.reads_of(reader)):
                if access[0] == array:
                    at = Instance(reader.id, READER)
                    yield at, self.of_read(reader.id, access, anyway=access in asked)

    def unwritten(self, statement: str, access: Access, guards: Guards = ()) -> isl.Set | None:
        """``{ inames, sizes : no write can have set the cell before it is read }``, not labelled.

        Exact where no data decide.  Any write that may be of the cell counts, and a read that
        data decide counts as written.  None where there are no such instances.
        """
        model = self.model
        at = Instance(statement, "")
        writers = model.writers(access[0])
        left = model.domain(at) & model.where_evaluated(guards, "")
        if writers:
            cell = model.cell(access[0], model.indices(at, access[1]), at)
            bounds = model.bounds_from_data(statement)
            if cell.by_data or (bounds and access[0] not in bounds):
                return None
            # Who comes to a loop reads its bounds, however often it then runs.
            inames = model.statement[statement].inames
            inside = {i for i in inames if access[0] in model.kernel.loaded_bounds([i])}
            left = _sets.project_out(left, sorted({*bounds, *inside}))
            if any(inside & w.inames for w in writers):
                return None
            if any(model.condition(guard) is None for guard in guards):
                return None
        near: list[tuple[Instance, isl.Set]] = []
        far: list[tuple[Instance, isl.Set]] = []
        for writer in reversed(writers):
            source = Instance(writer.id, WRITER)
            pieces = [(source, piece) for piece in model.order.before(source, at)]
            is_above = model.order.is_above(writer.id, statement)
            near += pieces[:is_above]
            far += pieces[is_above:]
        # Most reads follow a write of the same iteration.
        for source, piece in (*near, *far):
            try:
                both = left & piece & model.writing(source, cell)
            except Undecided:  # which cell is beyond sets: it may be the one that is read
                return None
            left = left - without(both, WRITER)
            if left.is_empty():
                return None
        return None if left.is_empty() else left

    @memoised
    def agreeing(self, statement: str, access: Access) -> Mapping[str, frozenset[str]]:
        """The sources of a read of a statement, each with the inames whose values are equal.

        Those are inames of both statements that have equal values wherever the write is seen.
        """
        model = self.model
        own = model.statement[statement]
        renewed = self._renewed_in(own, access)
        if renewed is not None:
            inames = frozenset(iname for iname, _ in renewed)
            # Each thread and each block sees its own copy alone.
            copies = (model.inames_on.get(axis, ()) for axis in model.copy_axes(access[0]))
            apart = own.inames & {*chain.from_iterable(copies)}
            return {
                w.id: inames | (apart & w.inames)
                for w in model.writers(access[0])
                if model.order.place(w.id)[1][: len(renewed)] == renewed
            }
        found = {}
        for name, relation in self.of_read(statement, access).writes.items():
            common = sorted(own.inames & model.statement[name].inames)
            agree = (i for i in common if (relation & differ(i, WRITER, READER)).is_empty())
            found[name] = frozenset(agree)
        return found

    @memoised
    def is_set_within(self, statement: str, access: Access, depth: int) -> bool:
        """Whether a read sees what the same iteration of the ``depth`` outermost loops wrote.

        Writes that surely set the cell before it is read are looked for there, those under no
        condition first, and the nearest: what is seen came no earlier.
        """
        model = self.model
        at = Instance(statement, READER)
        cell = model.cell(access[0], model.indices(at, access[1]), at)
        if cell.by_data:
            return False
        loops = model.order.shared_loops(statement, statement)[:depth]
        own = model.statement[statement]
        for writer in filter(self._is_sure, self.model.writers(access[0])):
            shared = model.order.shared_loops(writer.id, statement)
            is_near = shared[:depth] == loops and model.order.is_above(writer.id, statement)
            if is_near and self._is_same_cell(writer, own, access, frozenset(shared)):
                return True
        left = model.domain(at)
        writers = filter(self._is_sure, reversed(self.model.writers(access[0])))
        is_above = model.order.is_above
        for writer in sorted(writers, key=lambda w: (len(w.predicates), is_above(statement, w.id))):
            source = Instance(writer.id, WRITER)
            if model.order.shared_loops(writer.id, statement)[:depth] != loops:
                continue
            mine = left & model.writing(source, cell) & equal_inames(loops, WRITER, READER)
            for level, piece in model.order.before_by_loop(source, at):
                if level >= depth:
                    left = left - without(mine & piece, WRITER)
            if left.is_empty():
                return True
        return False

    @memoised
    def replaced(self, writer: str, reader: str) -> isl.Set | None:
        """``{ inames·WRITER, inames·READER : another write certainly sets the cell in between }``.

        A subset of such pairs, for any cell of the array that data may choose. None if no write of
        the array certainly happens.
        """
        model = self.model
        own, at = Instance(writer, WRITER), Instance(reader, READER)
        written = model.write_cell(own)
        killers = filter(self._is_sure, self.model.writers_of(written))
        found = self._any_cell(written)
        if not killers or found is None:
            return None
        cell, somewhere = found
        both = model.domain(own) & model.domain(at)
        both = within_any(both, model.order.before(own, at))
        alive = both & somewhere
        for killer in killers:
            alive = alive - self._killed_by(killer, alive, cell, own, at)
        names = [n for n in _sets.names_of(alive) if n not in set(_sets.names_of(both))]
        return (both - _sets.project_out(alive, names)).coalesce()

    def _any_cell(self, cell: Cell) -> tuple[Cell, isl.Set] | None:
        """A cell with a name for each index that data decide, and ``{ cell··axis : in range }``."""
        shape = self.model.array(cell.array).shape
        if shape is None or len(shape) != len(cell.indices):
            return None
        indices, where = list(cell.indices), _sets.universe()
        for axis, (index, extent) in enumerate(zip(cell.indices, shape, strict=True)):
            if _sets.is_affine(index) and not variable_names(index) & self.model.data:
                continue
            if not (_sets.is_affine(extent) and variable_names(extent) <= self.model.integers):
                return None
            indices[axis] = prim.Variable(hidden("cell", axis))
            where = where & inside(indices[axis], extent)
        return replace(cell, indices=tuple(indices), by_data=False), where

    def _renewed_in(self, reader: Statement, access: Access) -> Path | None:
        """The deepest loops in each iteration of which a write above sets what a read sees.

        Then nothing is seen of other iterations.  None where no statement does so.
        """
        model = self.model
        path = model.order.place(reader.id)[1]
        best: Path | None = None
        for writer in model.writers(access[0]):
            depth = len(model.order.shared_loops(writer.id, reader.id))
            if not model.order.is_above(writer.id, reader.id) or not self._is_by_sizes(writer):
                continue
            if best is not None and depth <= len(best):
                continue
            if self._covers(writer, reader, access, frozenset(i for i, _ in path[:depth])):
                best = path[:depth]
        return best

    def _covers(
        self, writer: Statement, reader: Statement, access: Access, inames: frozenset[str]
    ) -> bool:
        """Whether a write sets what each instance of a read sees, the same in some ``inames``."""
        model = self.model
        if self._is_same_cell(writer, reader, access, inames):
            return True
        at, source = Instance(reader.id, READER), Instance(writer.id, WRITER)
        cell = model.cell(access[0], model.indices(at, access[1]), at)
        if cell.by_data:
            return False
        both = model.writing(source, cell) & equal_inames(inames, WRITER, READER)
        if not model.domain(at).is_subset(without(both, WRITER)):
            return False
        given = [model.named(p, READER) for p in reader.predicates]
        left = [model.named(p, WRITER) for p in writer.predicates if model.condition(p) is None]
        return not left or all(model.holds(p, both & model.domain(at), given) for p in left)

    def _is_same_cell(
        self, writer: Statement, reader: Statement, access: Access, inames: frozenset[str]
    ) -> bool:
        """Whether a write runs with each read that is the same in ``inames``, of one cell."""
        if access[1] != writer.write[1] or writer.inames - inames:
            return False
        used = frozenset().union(*(variable_names(i) for i in access[1]))
        return set(writer.predicates) <= set(reader.predicates) and (
            used <= inames | set(self.model.kernel.sizes)
        )

    def _is_alike(self, writer: Statement, other: Statement) -> bool:
        """Whether a write happens in each instance of ``other``, in the same loops."""
        model = self.model
        return (
            not (is_update(writer) or model.cells_by_data(writer))
            and writer.inames == other.inames
            and same(writer.predicates, other.predicates)
            and model.order.place(writer.id)[1] == model.order.place(other.id)[1]
            and all(self.decided_by(p, writer, other) is not None for p in writer.predicates)
        )

    def _is_written_again(self, statement: Statement) -> bool:
        """Whether a statement below sets the same cell in the same iteration."""
        model = self.model
        return any(
            model.order.is_above(statement.id, other.id)
            and other.write == statement.write
            and self._is_alike(other, statement)
            for other in model.writers(statement.written)
        )

    def _killed_by(
        self, killer: Statement, where: isl.Set, cell: Cell, own: Instance, at: Instance
    ) -> isl.Set:
        """The part of ``where`` in which a statement writes ``cell`` between ``own`` and ``at``.

        ``where`` may contain names of the statement's instance, with the label ``KILLER``.
        """
        other, order = Instance(killer.id, KILLER), self.model.order
        same, found = self.model.same_cell(self.model.write_cell(other), cell), where - where
        for first, after in order.before_by_loop(own, other):
            for second, until in order.before_by_loop(other, at):
                both = where & (after & until & same)
                if not both.is_empty():
                    both = both & self.model.domain_beside(other, (own, first), (at, second))
                    found = found | without(both, KILLER)
        return found

    def _is_sure(self, writer: Statement) -> bool:
        """Whether a statement sets its cells in all instances, whatever data hold."""
        return not is_update(writer) and self.model.is_exact(writer)

    def _is_by_sizes(self, writer: Statement) -> bool:
        """Whether inames and sizes decide when a statement sets its cells, which sets may not."""
        model = self.model
        left = (variable_names(p) for p in writer.predicates if model.condition(p) is None)
        return not (
            is_update(writer) or model.cells_by_data(writer) or model.bounds_from_data(writer.id)
        ) and all(names <= model.integers for names in left)

    def _sources(
        self,
        at: Instance,
        reader: Statement,
        cell: Cell,
        *,
        beside: Statement | None,
        domain: isl.Set | None = None,
    ) -> Sources:
        """The sources of a read at time ``at`` by ``reader``, whose inames carry ``READER``.

        Updates that commute with ``beside`` are none: they and it make one set without order.
        """
        model = self.model
        domain = model.domain(at) if domain is None else domain
        writes: dict[str, isl.Set] = {}
        reached = self._writes_before(at, reader, cell, domain, beside=beside)
        choices = _Choices()
        # At the end a cell is asked for, whatever condition its statement has.
        conditions = () if at.statement is None else reader.predicates
        mine = [p for p in conditions if self._is_decided(p, reader)]
        reads = intersection(map(choices.where, mine))
        happens = {w.id: self._happens(w, reader, choices) for w in model.writers(cell.array)}
        sure = {
            name: found
            for name, found in happens.items()
            if found and name in reached and self._may_be_sure(model.statement[name], reader)
        }
        free = choices.free() & reads
        for writer_id, before in reached.items():
            own = Instance(writer_id, WRITER)
            written = model.write_cell(own)
            if written.by_data:
                # It is replaced where any cell that it may have written is.
                replaced = None if at.statement is None else self.replaced(writer_id, at.statement)
                alive = before if replaced is None else before - replaced
                if not alive.is_empty():
                    writes[writer_id] = alive.coalesce()
                continue
            if choices.names:
                before = before & free
            dead = before - before
            for other, (inames, where) in sure.items():
                killer = model.statement[other]
                near = before & equal_inames(inames, KILLER, READER) & where
                dead = dead | self._killed_by(killer, near, written, own, at)
            if (itself := happens[writer_id]) is not None:
                inames, where = itself
                dead = dead | (before & equal_inames(inames, WRITER, READER)) - where
            alive = (before - dead).coalesce()
            if not alive.is_empty():
                writes[writer_id] = alive
        if cell.by_data:
            # Which of the writes that may have come last sets the cell, data decide.
            return Sources({n: choices.forgotten(w) for n, w in writes.items()}, domain)
        untouched, known, certain = domain & free, {}, set[str]()
        for other, (inames, where) in sure.items():
            alike = equal_inames(inames, WRITER, READER) & where
            untouched = untouched - without(reached[other] & alike, WRITER)
            if other in writes:
                known[other] = choices.forgotten(writes[other]) & alike & free
                if writes[other] <= known[other]:
                    certain.add(other)
        return Sources(
            {name: choices.forgotten(where) for name, where in writes.items()},
            choices.forgotten(untouched).coalesce(),
            known,
            frozenset(certain),
            free if choices.names else None,
            choices.never(happens),
        )

    def _writes_before(
        self,
        at: Instance,
        reader: Statement,
        cell: Cell,
        domain: isl.Set,
        *,
        beside: Statement | None,
    ) -> dict[str, isl.Set]:
        """``{ inames·WRITER, inames·READER : written before, and not surely replaced nearer }``.

        Nearer are writers above the reader, in the same iteration of the loops that they share.
        """
        model, order = self.model, self.model.order
        found: dict[str, isl.Set] = {}
        left: dict[tuple[str, ...], isl.Set] = {(): domain}
        covered: dict[str, isl.Set] = {}

        def without_near(names: tuple[str, ...]) -> isl.Set:
            if names not in left:
                left[names] = without_near(names[:-1]) - covered[names[-1]]
            return left[names]

        writers = [
            w for w in reversed(model.writers_of(cell)) if beside is None or not commute(w, beside)
        ]
        if at.statement is not None:  # those above come first, and what surely sets the cell there
            near = {w.id for w in writers if self._is_sure_near(w, reader)}
            writers.sort(key=lambda w: (not order.is_above(w.id, reader.id), w.id not in near))
        for writer in writers:
            source = Instance(writer.id, WRITER)
            for level, piece in order.before_by_loop(source, at):
                nearer = (n for n in covered if order.is_replaced(writer.id, level, n, reader.id))
                before = without_near(tuple(nearer))
                if not before.is_empty():
                    before = before & (model.same_cell(model.write_cell(source), cell) & piece)
                    before = before & model.domain_beside(source, (at, level))
                    before = before & self._same_loads(writer, reader, level, before)
                if before.is_empty():
                    continue
                found[writer.id] = found[writer.id] | before if writer.id in found else before
                if at.statement is None or cell.by_data or not self._is_sure_near(writer, reader):
                    continue
                if level == len(order.shared_loops(writer.id, reader.id)):
                    covered[writer.id] = without(before, WRITER)
        return {w.id: found[w.id] for w in model.writers(cell.array) if w.id in found}

    def _is_sure_near(self, writer: Statement, reader: Statement) -> bool:
        """Whether a write sets its cells in the iteration of a reader, whose conditions hold."""
        loops = {*self.model.order.shared_loops(writer.id, reader.id)}
        loads = (self._load(n, writer, reader) for n in self.model.bounds_from_data(writer.id))
        return (
            self._may_be_sure(writer, reader)
            and all(inames is not None and inames <= loops for inames in loads)
            and all(
                self.model.condition(p) is not None
                or (p in reader.predicates and self.decided_by(p, writer, reader) is not None)
                for p in writer.predicates
            )
        )

    def _may_be_sure(self, writer: Statement, reader: Statement) -> bool:
        """Whether a write sets its cells wherever its conditions hold, near a reader.

        In a loop whose bounds were loaded it does if the reader is inside of the same bounds.
        """
        model = self.model
        if is_update(writer) or model.cells_by_data(writer):
            return False
        loads = model.bounds_from_data(writer.id)
        return all(self._load(name, writer, reader) is not None for name in loads)

    def _happens(self, writer: Statement, reader: Statement, choices: _Choices) -> _Happens | None:
        """Where conditions on data let a write happen, and which inames it shares with the reader.

        ``{ choices : all conditions hold }``, for instances that agree in the inames, names of
        loaded bounds among them.  None where data decide that nobody leaves alone.
        """
        model = self.model
        inames: set[str] = set()
        for name in model.bounds_from_data(writer.id):
            found = self._load(name, writer, reader)
            inames |= {name, *found} if found is not None else set()
        where = _sets.universe()
        for predicate in writer.predicates:
            if model.condition(predicate) is not None:
                continue
            decided_by = self.decided_by(predicate, writer, reader)
            if decided_by is None:
                return None
            inames |= decided_by
            where = where & choices.where(predicate)
        return frozenset(inames), where

    def _is_decided(self, predicate: Expression, reader: Statement) -> bool:
        """Whether data decide a condition, the same data wherever it is asked."""
        is_by_data = self.model.condition(predicate) is None
        return is_by_data and self.decided_by(predicate, reader, reader) is not None

    def decided_by(
        self, predicate: Expression, writer: Statement, reader: Statement
    ) -> frozenset[str] | None:
        """The inames in which two statements that agree see one value of a condition.

        None if unknown: what it depends on may change in between.
        """
        names = variable_names(predicate)
        inames = names & self.model.kernel.home_domain.keys()
        if not inames <= reader.inames:
            return None
        for name in names & self.model.written:
            held = self._held(name, writer, reader)
            if held is None and predicate == prim.Variable(name) and predicate in reader.predicates:
                held = self._still_set(name, writer, reader)
            if held is None:
                return None
            inames |= held
        return inames

    def _held(self, name: str, writer: Statement, reader: Statement) -> frozenset[str] | None:
        """The inames in which two statements must agree to see one value of a scalar, if known."""
        temporary = self.model.kernel.temporary_by_name.get(name)
        if temporary is None or temporary.shape:
            return None
        return self._made_before(self.model.writers(name), writer, reader)

    def _still_set(self, name: str, writer: Statement, reader: Statement) -> frozenset[str] | None:
        """The inames of what sets a flag: where two statements agree in them, it is one flag.

        Where a later statement finds it set, an earlier one has: nothing sets it again.
        """
        flag = flags_of(self.model.kernel).get(name)
        return None if flag is None else self._made_before([flag.start], writer, reader)

    def _made_before(
        self, setters: Iterable[Statement], writer: Statement, reader: Statement
    ) -> frozenset[str] | None:
        """The inames in which two statements agree that come after the same instances of others.

        Each of these stands above both, and shares the same loops with one as with the other: in an
        iteration of these all that it does comes first.  None where that is not so.
        """
        order, inames = self.model.order, set[str]()
        for setter in setters:
            loops = order.shared_loops(setter.id, writer.id)
            if loops != order.shared_loops(setter.id, reader.id) or not all(
                order.is_above(setter.id, other.id) for other in (writer, reader)
            ):
                return None
            # Of copies side by side, and of threads, each one sees its own: those have no number.
            inner = order.place(setter.id)[1][len(loops) :]
            inames |= setter.inames.difference(i for i, number in inner if number > 0)
        return frozenset(inames) if inames <= writer.inames & reader.inames else None

    def _load(self, name: str, writer: Statement, reader: Statement) -> frozenset[str] | None:
        """The inames that decide a loaded bound that two statements share; None if unknown."""
        if name not in self.model.bounds_from_data(reader.id):
            return None
        if name not in self.model.written:
            return frozenset()
        return self._held(name, writer, reader)

    def _same_loads(
        self, writer: Statement, reader: Statement, level: int, pairs: isl.Set
    ) -> isl.Set:
        """Loaded bounds are the same wherever the inames are that they are loaded for.

        ``{ loaded bounds·WRITER, those·READER }``, of ``pairs`` of instances that one iteration of
        ``level`` shared loops runs, and no iteration of the next one.
        """
        equal = {*self.model.order.shared_loops(writer.id, reader.id)[:level]}

        def is_shared(name: str) -> bool:
            inames = self._load(name, writer, reader)
            return inames is not None and all(
                (pairs & differ(iname, WRITER, READER)).is_empty() for iname in inames - equal
            )

        names = filter(is_shared, self.model.bounds_from_data(writer.id))
        return equal_inames(names, WRITER, READER)


def _only(writer: str, relation: isl.Set) -> Sources:
    """One write that surely happens wherever there is a reader."""
    return Sources({writer: relation}, relation - relation, {writer: relation}, frozenset([writer]))


class _Choices:
    """Names for the truth values of conditions on data."""

    def __init__(self) -> None:
        self.names: dict[Key, str] = {}

    def where(self, condition: Expression) -> isl.Set:
        """``{ choices : a condition holds }``."""
        if isinstance(condition, prim.LogicalNot):
            return self.where(condition.child).complement()
        if isinstance(condition, (prim.LogicalAnd, prim.LogicalOr)):
            is_and = isinstance(condition, prim.LogicalAnd)
            return reduce(
                isl.Set.intersect if is_and else isl.Set.union, map(self.where, condition.children)
            )
        name = self.names.setdefault(key_of(condition), hidden("choice", len(self.names)))
        return _sets.equality(name, 1)

    def free(self) -> isl.Set:
        """``{ choices : each is 0 or 1 }``."""
        return intersection(between(name, 0, 1) for name in self.names.values())

    def never(self, happens: Mapping[str, _Happens | None]) -> dict[str, isl.Set]:
        """``{ inames·WRITER, inames·READER, choices : the write does not happen }``, by writer."""
        known = happens.items() if self.names else ()
        return {n: equal_inames(h[0], WRITER, READER) - h[1] for n, h in known if h is not None}

    def forgotten(self, where: isl.Set) -> isl.Set:
        """A set without the choices."""
        return _sets.project_out(where, [*self.names.values()]) if self.names else where
