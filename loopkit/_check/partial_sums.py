"""Partial sums: updates that reach their cell through temporaries.

A schedule may perform an update of the text on a temporary instead. The temporary starts from the
operation's neutral element and is *flushed* to the original cell: a statement that executes no
instance of the text updates that cell, by the same operation, with the temporary's value. Since
the updates of one cell are an unordered set, it is enough that each belongs to the set exactly
once:

- the flushed value consists of the neutral element and of updates that precede the flush;
- each update contributes to exactly one flush, whose target is the cell that the text updates;
- a flush comes after the cell's initial value and before its readers, as the text's update does.

A flush may go to another temporary, which is flushed in turn. This does not depend on any
particular transform; it covers privatised histograms as well as the stages of a sum.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._assertions.asserted_cells import data_of, index_range
from loopkit._assertions.follow import followed
from loopkit._cached import cached_property, memoised
from loopkit._check.compare_statements import with_rests
from loopkit._check.instance_maps import Image
from loopkit._check.violation import Side, Violation
from loopkit._expression import Access, access_of, is_constant, substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import FLUSH, ONE, READER, TWO, UPDATE, WRITER, hidden
from loopkit._kernel import Domain, Statement
from loopkit._make.reduction_operations import operations_of
from loopkit._nodes import Expression, Record
from loopkit._poly.dataflow import Sources, commute, dataflow_of
from loopkit._poly.model import Model, model_of
from loopkit._poly.pairs import (
    Instance,
    Undecided,
    ahead,
    equal_inames,
    inside,
    nonempty,
    parts_in,
    renamed,
    without,
)
from loopkit._poly.parallel_axes import Axis
from loopkit._same import same

if TYPE_CHECKING:
    from loopkit._check.schedule_check import Check, ReadEvent


@dataclass(frozen=True)
class Carried(Image):
    """A flush as the image of an update: ``statement`` adds what ``via`` accumulated before.

    ``values`` are empty, since one flush adds many instances (:meth:`PartialSums.relation`).
    """

    via: Image | None = None

    @cached_property
    def flushes(self) -> tuple[Carried, ...]:
        """The flushes from the update to its cell, the last one first."""
        return (self, *(self.via.flushes if isinstance(self.via, Carried) else ()))

    @property
    def update(self) -> Image:
        """The image of the update itself."""
        first = self.flushes[-1].via
        assert first is not None
        return first


class PartialSums:
    """The partial sums of one schedule."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self.new = check.new
        self.images = check.lineage.image_of
        self._checked: set[str] = set()

    def flushed(self, statement: Statement) -> Access | None:
        """The temporary that a flush reads; None for any other statement."""
        if statement.operation is None or statement.id in self.images:
            return None
        read = access_of(statement.rhs, self.new.data)
        return read if read is not None and read[0] in self.new.kernel.temporary_by_name else None

    @memoised
    def flushes(self, array: str) -> tuple[Statement, ...]:
        """The statements that add what ``array`` holds to something else."""
        found = [(s, self.flushed(s)) for s in self.new.kernel.readers.get(array, ())]
        return tuple(s for s, read in found if read is not None and read[0] == array)

    @memoised
    def carried(self, image: Image, array: str) -> tuple[Carried, ...]:
        """The flushes through which an image's updates reach ``array``; none if directly."""
        statement = self.new.statement[image.statement]
        if statement.operation is None or statement.written == array:
            return ()
        found: list[Carried] = []
        for flush in self.flushes(statement.written):
            if commute(flush, statement):
                one = Carried(flush.id, image.origin, (), image)
                found += [one] if flush.written == array else self.carried(one, array)
        return tuple(found)

    def carried_by(self, flush: Statement) -> tuple[Carried, ...]:
        """All images whose updates a flush adds to its target."""
        if self.flushed(flush) is None:
            return ()
        found = (
            c for image in self.check.lineage.images for c in self.carried(image, flush.written)
        )
        return tuple(c for c in found if c.statement == flush.id)

    # {{{ which update goes where

    @cached_property
    def model(self) -> Model:
        """The schedule, in which an update of a cell that depends on data may be to any cell.

        Such an update has an additional iname for each axis whose index depends on data. Threads
        do not combine cells that depend on data.
        """
        kernel = self.new.kernel
        domains: dict[str, Domain] = {}
        changed: dict[str, Statement] = {}
        for statement in kernel.statements:
            name, indices = statement.write
            shape = self.new.array(name).shape
            if statement.operation is None or not shape or not self.flushes(name):
                continue
            cell = list(indices)
            for axis, index in enumerate(indices):
                if variable_names(index) & self.new.data or not _sets.is_affine(index):
                    iname = hidden("cell", statement.id, axis)
                    cell[axis] = prim.Variable(iname)
                    source = followed(kernel, statement, index)
                    known = index_range(kernel.assertions, source, iname, data_of(kernel))
                    known = known & inside(cell[axis], shape[axis])
                    domains[iname] = Domain((iname,), known & self.promised(statement, axis, iname))
            if cell != list(indices):
                more = variable_names(tuple(cell)) - statement.inames & domains.keys()
                lhs = prim.Subscript(prim.Variable(name), tuple(cell))
                changed[statement.id] = replace(statement, lhs=lhs, inames=statement.inames | more)
        if not changed:
            return self.new
        statements = tuple(changed.get(s.id, s) for s in kernel.statements)
        domains_now = (*kernel.domains, *domains.values())
        apart = {s.written for s in changed.values()}
        temporaries = tuple(
            replace(t, accumulates=None) if t.name in apart else t for t in kernel.temporaries
        )
        changed_kernel = kernel.with_(
            statements=statements, domains=domains_now, temporaries=temporaries
        )
        return model_of(changed_kernel)

    def meant(self, image: Image, axis: int, name: str) -> Expression:
        """The text's index for one that data choose, ``name``: a buffer may begin elsewhere."""
        text, own = self.check.root.statement[image.origin], self.new.statement[image.statement]
        rests = with_rests(text.write[1][axis], own.write[1][axis], self.check.root, self.new)
        if rests is None:
            return prim.Variable(name)
        begun = substitute(rests.old, image.value_of)
        return prim.Sum((prim.Variable(name), begun, prim.Product((-1, rests.new))))

    def promised(self, update: Statement, axis: int, name: str) -> isl.Set:
        """Where the text is in its array, if data choose the index ``name``: that is promised."""
        image, root = self.images.get(update.id), self.check.root
        array = "" if image is None else root.statement[image.origin].written
        shape = root.array(array).shape if array else None
        if image is None or shape is None or len(shape) != len(update.write[1]):
            return _sets.universe()
        index = self.meant(image, axis, name)
        is_known = _sets.is_affine(index) and _sets.is_pw_affine(shape[axis])
        return inside(index, shape[axis]) if is_known else _sets.universe()

    @memoised
    def sources(self, flush: Statement) -> Sources:
        """What a flush adds comes from: inames of its own have the label ``READER``."""
        read = self.flushed(flush)
        assert read is not None
        return dataflow_of(self.model.kernel).of_read(flush.id, read)

    def added(self, writer: str, flush: Statement, one: str, two: str) -> isl.Set:
        """``{ inames·one of an update, inames·two : the flush adds what the update added }``."""
        sources = self.sources(flush).writes
        if writer not in sources:
            return _sets.universe() - _sets.universe()
        return renamed(sources[writer], {WRITER: one, READER: two})

    @memoised
    def paths(self, carried: Carried) -> isl.Set:
        """``{ inames·UPDATE of the update, inames·FLUSH of the last flush that carries it }``."""
        via, flush = carried.via, self.new.statement[carried.statement]
        assert via is not None
        if not isinstance(via, Carried):
            return self.added(via.statement, flush, UPDATE, FLUSH)
        first = renamed(self.paths(via), {FLUSH: ONE})
        return without(first & self.added(via.statement, flush, ONE, FLUSH), ONE)

    def between(self, carried: Carried, one: str, two: str) -> isl.Set:
        """:meth:`paths`, with these labels in the place of ``UPDATE`` and ``FLUSH``."""
        return renamed(self.paths(carried), {UPDATE: one, FLUSH: two})

    @memoised
    def relation(self, carried: Carried, label: str, root_label: str) -> isl.Set:
        """``{ inames·label of the flush, inames·root_label of the origin : it carries that }``."""
        image = carried.update
        pairs = self.paths(carried) & self.check.executed(image, UPDATE, root_label)
        return renamed(without(pairs, UPDATE), {FLUSH: label})

    # }}}

    def at_flush(self, event: ReadEvent, carried: Carried) -> ReadEvent:
        """An event of an update, at the time of the flush that carries it."""
        at = Instance(carried.statement, FLUSH)
        bounds, everywhere = self.new.everywhere(at)
        where = event.where & self.between(carried, event.time.label, FLUSH) & bounds
        return replace(event, where=where, time=at, everywhere=everywhere)

    # {{{ what must hold

    def check_image(self, image: Image) -> None:
        """Report updates of an image that do not reach the cell of the text exactly once."""
        origin = self.check.root.statement[image.origin]
        own, array = self.new.statement[image.statement], origin.written
        seen: set[str] = set()
        left = [own]
        while left:
            writer = left.pop()
            if writer.written == array or writer.written in seen:
                continue
            seen.add(writer.written)
            self.check_array(writer.written)
            left += self.flushes(writer.written)
        if {self.new.array(name).dtype for name in (*seen, array)} != {self.new.array(array).dtype}:
            raise Undecided(f"partial sums of '{array}' are kept in another type")
        cell = self.check.root.write_cell(Instance(origin.id, READER))
        for carried in self.carried(image, array):
            self.check_place(carried, cell.indices)

    def check_place(self, carried: Carried, indices: tuple[Expression, ...]) -> None:
        """Report a flush that adds to another cell than the one the text updates."""
        image = carried.update
        mine = self.model.statement[image.statement].write[1]
        own = self.new.statement[image.statement]
        written = self.new.write_cell(Instance(carried.statement, FLUSH))
        pairs = self.paths(carried) & self.check.executed(image, UPDATE, READER)
        pairs = pairs & self.check.lineage.sizes
        if len(indices) != len(written.indices):
            return  # an accumulator that got an axis: what reads it says which cell is meant
        for axis, (due, its) in enumerate(zip(indices, written.indices, strict=True)):
            cell = due
            if variable_names(due) & self.check.root.data or not _sets.is_affine(due):
                name = hidden("cell", own.id, axis)
                if axis >= len(mine) or mine[axis] != prim.Variable(name):
                    raise Undecided(f"which cell of '{written.array}' is meant, data decide")
                cell = self.model.named(self.meant(image, axis, name), UPDATE)
            differ = _sets.pw_affine(cell).ne_set(_sets.pw_affine(its))
            bad = pairs & differ
            if not bad.is_empty():
                side = self.check.origin_side(image, Instance(image.statement, UPDATE))
                sink = Side(Instance(carried.statement, FLUSH), None)
                found = Violation("rewritten", bad, sink, side, array=written.array)
                self.check.report(replace(found, cell=written.indices, detail="partial"))

    def check_array(self, array: str) -> None:
        """Report violations of a temporary of partial sums, once for all of its flushes."""
        if array in self._checked:
            return
        self._checked.add(array)
        flushes = self.flushes(array)
        updates = [w for w in self.new.writers(array) if w.operation is not None]
        if not flushes:
            raise Undecided(
                f"'{array}' holds sums of the text, and nothing adds them where they go"
            )
        for flush in flushes:
            self.check_flush(flush)
        for update in updates:
            self.check_once(update, flushes)
            self.check_order(update, array)

    def check_flush(self, flush: Statement) -> None:
        """Report a flush of what is more than updates on top of the neutral element, once."""
        if flush.id in self._checked:
            return
        self._checked.add(flush.id)
        read = self.flushed(flush)
        if read is None or self.new.cells_by_data(flush):
            raise Undecided(
                f"'{flush.id}' adds to '{flush.written}', but implements no statement of the text"
            )
        at = Instance(flush.id, READER)
        sources, side = self.sources(flush), Side(at, None)
        bounds, everywhere = self.model.everywhere(at)
        cell = self.model.cell(read[0], self.model.indices(at, read[1]), at, everywhere)
        started = wanted = sources.untouched - sources.untouched
        for name, relation in sources.writes.items():
            writer = self.new.statement[name]
            if writer.operation is None and not self.is_neutral(writer, flush):
                other = Side(Instance(name, WRITER), None)
                found = Violation("overwritten", relation, side, None, other, array=read[0])
                self.check.report(replace(found, cell=cell.indices, detail="stale"))
            elif writer.operation is None and not sources.is_sure(name):
                raise Undecided(f"data decide whether '{name}' starts what '{flush.id}' adds")
            elif writer.operation is None:  # in the flush's own copy, if there are several
                pairs, start = relation & bounds, self.model.write_cell(Instance(name, WRITER))
                wanted = wanted | without(pairs, WRITER)
                started = started | without(pairs & self.model.same_copy(start, cell), WRITER)
            if writer.operation is not None and not commute(writer, flush):
                raise Undecided(f"'{read[0]}' is updated in several ways, and flushed")
        self.check_order(flush, read[0])
        self.check_order(flush, flush.written)
        missing = sources.untouched | (wanted - started)
        if not missing.is_empty():
            found = Violation("missing", missing, side, array=read[0], cell=cell.indices)
            self.check.report(replace(found, detail="stale"))

    def is_neutral(self, writer: Statement, flush: Statement) -> bool:
        """Whether a statement sets the neutral element of a flush's operation."""
        if writer.id in self.images:
            return False
        dtype = self.new.array(writer.written).dtype
        start = operations_of(self.new.kernel.reductions)[flush.operation or ""].start(dtype)
        if isinstance(start, Record):
            return same(start, writer.rhs)
        return is_constant(start) and is_constant(writer.rhs) and bool(start == writer.rhs)

    def check_once(self, update: Statement, flushes: tuple[Statement, ...]) -> None:
        """Report updates of a temporary that no flush adds, or several."""
        at = Instance(update.id, ONE)
        left = self.model.domain(at) & self.check.lineage.sizes
        pieces = [(flush, self.added(update.id, flush, ONE, TWO)) for flush in flushes]
        for flush, added in pieces:
            if not self.is_alike(update, flush, added):
                raise Undecided(f"data decide whether '{flush.id}' adds what '{update.id}' leaves")
            for axis in self.new.copy_axes(update.written):
                added = self.on_one_index(added, at, Instance(flush.id, TWO), axis)
            left = left - without(added, TWO)
        side = self.check.side_of(at)
        if not left.is_empty():
            self.check.report(Violation("dropped", left, side, detail="partial"))
        for number, (flush, added) in enumerate(pieces):
            for other, again in pieces[number:]:
                twice = renamed(again, {TWO: FLUSH}) & added
                one_of_two = ahead(flush.inames, TWO, FLUSH) if flush is other else [twice]
                for bad in parts_in(twice, one_of_two):
                    self.check.report(Violation("repeated", bad, side, detail="partial"))

    def on_one_index(
        self, added: isl.Set, update: Instance, flush: Instance, axis: Axis
    ) -> isl.Set:
        """The pairs on one index of an axis along which each index has a copy of the temporary.

        A flush that runs on all of them adds on each what is there, and its cell has copies, too:
        index 0 has what was added there, and none has it all.
        """
        mine, apart = self.new.coordinate(update, axis), self.new.apart(update, flush, axis)
        if mine is None or apart is None:
            return added
        if self.new.coordinate(flush, axis) is None:
            apart = _sets.condition_set(prim.Comparison(mine, "!=", 0))
            return added - added if (added & apart).is_empty() else added - apart
        return added - apart

    def is_alike(self, update: Statement, flush: Statement, added: isl.Set) -> bool:
        """Whether the data that decide if a flush runs are those by which its updates do."""
        inames = frozenset(self.new.bounds_from_data(flush.id))
        for predicate in flush.predicates:
            if self.new.condition(predicate) is None:
                found = dataflow_of(self.new.kernel).decided_by(predicate, update, flush)
                if predicate not in update.predicates or found is None:
                    return False
                inames |= found
        return bool(added <= equal_inames(inames, ONE, TWO))

    def check_order(self, statement: Statement, array: str) -> None:
        """Report writes of ``array`` that are unordered with a statement's access there.

        Atomic updates by one operation need no order.
        """
        at = Instance(statement.id, ONE)
        is_own = statement.written == array
        read = statement.write if is_own else self.flushed(statement)
        assert read is not None
        model = self.model
        own = model.statement[statement.id].write if is_own else read
        runs = model.domain(at) & model.everywhere(at)[0] & self.check.lineage.sizes
        cell = model.cell(array, model.indices(at, own[1]), at, dict(model.everywhere(at)[1]))
        for writer in model.writers(array):
            free = is_own and commute(writer, statement)
            if free and writer.is_atomic and statement.is_atomic:
                continue
            if is_own and not free and not self.flushes(array):
                continue  # the order of another statement of the text: that is asked for each
            other = Instance(writer.id, TWO)
            pieces = model.unordered(at, other, array)
            if not pieces:
                continue
            both = runs & model.writing(other, cell)
            for how, bad in nonempty(both, pieces):
                side, its = self.check.side_of(at), self.check.side_of(other)
                first, second = (None, its) if free else (its, None)
                kind = "updates" if free else "order"
                found = Violation(kind, bad, side, first, second, how, array, cell.indices)
                self.check.report(found)

    # }}}
