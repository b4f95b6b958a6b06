"""A schedule and the text that it must compute: the common state and tools of all checks.

Most questions are about reads: an *event* is a set of executions of one read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice, product
from typing import Any

import islpy as isl

from loopkit import _budget, _sets
from loopkit._assertions.assertion_values import Increasing, facts_of
from loopkit._cached import cached_property, memoised
from loopkit._check.instance_maps import Image, Lineage
from loopkit._check.partial_sums import Carried, PartialSums
from loopkit._check.violation import Aim, Side, Violation
from loopkit._expression import Access, evaluate, substitute, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import READER, SURE, WRITER, plain, variable
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._poly.dataflow import Sources, dataflow_of, is_update
from loopkit._poly.equal_values import Computed, equal_values_of
from loopkit._poly.model import Cell, Model
from loopkit._poly.pairs import Instance, equal, intersection, without
from loopkit._poly.parallel_axes import Axis
from loopkit._same import key_of


@dataclass(frozen=True, eq=False)
class ReadEvent:
    """Executions of one read.

    ``where`` is a set over the names of all instances involved; ``time`` is the instance of the
    schedule that reads, ``reader`` and ``values`` the corresponding instance of the text.
    ``sources``, if given, replace those of the text's dataflow.
    """

    where: isl.Set
    time: Instance
    reader: str
    values: Mapping[str, Expression]
    everywhere: Mapping[Axis, Expression]
    base: Instance | None
    sources: Sources | None = None
    access: Access | None = None
    depth: int = 0
    by_data: bool = False
    """Whether data decide if the read happens: where it would leave its array, it does not."""

    @cached_property
    def bound(self) -> isl.Set:
        """``{ names of where, inames·READER of the text }``: each case with the text's instance."""
        return self.where & self.reading

    @cached_property
    def reading(self) -> isl.Set:
        """``{ names of where, inames·READER }``: which instance of the text reads, in any case."""
        return intersection(equal(variable(i, READER), value) for i, value in self.values.items())

    @property
    def side(self) -> Side:
        """The reader in a violation."""
        return Side(self.base, self.reader, self.values)

    @property
    def seen(self) -> Sources:
        """The sources according to the text, known once the read is checked."""
        assert self.sources is not None
        return self.sources

    @property
    def meant(self) -> Access | None:
        """The cell that the text reads, over the names of the event."""
        if self.access is None:
            return None
        return self.access[0], tuple(substitute(i, self.values) for i in self.access[1])

    def violation(self, kind: str, where: isl.Set, cell: Cell, **details: Any) -> Violation:
        """A violation of the event at its read of ``cell``."""
        return Violation(
            kind,
            where,
            self.side,
            array=cell.array,
            cell=cell.indices,
            meant=self.meant,
            **details,
        )

    def narrowed(self, where: isl.Set) -> ReadEvent:
        """The event in fewer cases."""
        return replace(self, where=where)


def with_computed_sizes(where: isl.Set, computed: Mapping[str, Expression]) -> isl.Set | None:
    """The part of ``where`` for some small sizes and the sizes computed from them.

    None if no small sizes have one, which leaves open whether larger ones do.
    """
    names = sorted({name for value in computed.values() for name in variable_names(value)})
    for numbers in islice(product(range(_SMALL), repeat=len(names)), _TRIED):
        sizes = dict(zip(names, numbers, strict=True))
        sizes |= {name: evaluate(value, sizes) for name, value in computed.items()}
        part = where & _sets.at(sizes)
        if not part.is_empty():
            return part
    return None


_SMALL, _TRIED = 5, 625


def written_cells(statement: Statement) -> tuple[object, ...]:
    """A key of the cells that a statement writes, and of its instances."""
    return statement.inames, key_of((statement.predicates, statement.write))


class DecidedError(Exception):
    """A violation is certain, and no further ones are wanted."""


class Check:
    """One schedule compared with the text; ``found`` collects violations."""

    def __init__(self, lineage: Lineage, new: Model, aim: Aim = Aim.TELL) -> None:
        self.lineage = lineage
        self.dataflow = dataflow_of(lineage.root)
        self.root = self.dataflow.model
        self.new = new
        self.aim = aim
        self.found: list[Violation] = []
        self._supposed = 0

    @property
    def is_enough(self) -> bool:
        """Whether no more questions are to be asked."""
        if self.aim is Aim.TRY:
            return bool(self.found)
        is_decided = self.aim is Aim.DECIDE and any(v.exact for v in self.found)
        return is_decided or len(self.found) >= _budget.VIOLATIONS

    def supposed(self, question: Callable[[], None]) -> list[Violation]:
        """What a question finds wrong, which is not noted; it is if the question stays open."""
        before = len(self.found)
        self._supposed += 1
        try:
            question()
        finally:
            self._supposed -= 1
        found = self.found[before:]
        del self.found[before:]
        return found

    def report(self, violation: Violation) -> None:
        """Note something wrong; the check goes on, unless that is all that was to be known."""
        names = _sets.involved_names(violation.where)
        bounds = [d for d in self.new.data if any(plain(n) == d for n in names)]
        if bounds:
            loads = [
                read for name in sorted(bounds) for w in self.new.writers(name) for read in w.reads
            ]
            arrays = dict(
                read for read in loads if read[1] and read[0] in self.new.kernel.arg_by_name
            )
            known = facts_of(self.new.kernel.assertions).increasing
            settling = tuple(Increasing(a) for a in arrays if a not in known)
            violation = replace(violation, exact=False, settling=settling)
        if self.new.kernel.computed_sizes and violation.exact:
            where = with_computed_sizes(violation.where, self.new.kernel.computed_sizes)
            violation = replace(violation, where=where or violation.where, exact=where is not None)
        self.found.append(violation)
        if self.aim is Aim.DECIDE and violation.exact and not self._supposed:
            raise DecidedError

    @cached_property
    def partial(self) -> PartialSums:
        """The updates that go by way of temporaries."""
        return PartialSums(self)

    def origin_side(self, image: Image, at: Instance, root_label: str = WRITER) -> Side:
        """A schedule's instance as the text knows it, which is labelled ``root_label`` there."""
        if isinstance(image, Carried):
            inames = self.root.statement[image.origin].inames
            return Side(at, image.origin, {i: variable(i, root_label) for i in inames})
        values = {i: self.new.named(e, at.label) for i, e in image.values}
        values |= {i: variable(i, root_label) for i in self.lineage.every(image)}
        return Side(at, image.origin, values)

    def side_of(self, at: Instance) -> Side:
        """Any instance of the schedule, a move too."""
        assert at.statement is not None
        image = self.lineage.image_of.get(at.statement)
        if image is None:
            return Side(at, None)
        return Side(at, image.origin, {i: self.new.named(e, at.label) for i, e in image.values})

    def computed_by(self, at: Instance) -> Computed | None:
        """The statement of the text that an instance executes; None for copies and flushes."""
        image = self.lineage.image_of.get(at.statement or "")
        return None if image is None else Computed(image.origin, self.origin_side(image, at).values)

    def equal_to(self, one: Computed, at: Instance, where: isl.Set) -> isl.Set:
        """The part of ``where`` in which ``at`` is known to store what ``one`` of the text does."""
        two = self.computed_by(at)
        if two is None:
            return where - where
        found = equal_values_of(self.lineage.root).stored(one, two, where & self.lineage.sizes)
        return _sets.project_out(found, [n for n, _ in self.lineage.fixed])

    def not_equal(self, bad: isl.Set, event: ReadEvent, at: Instance) -> isl.Set:
        """The cases of ``bad`` in which ``at`` is not known to write what the event is to see.

        A superset: what the event is to see must surely be there.  Either all writes that it may
        be are of one value with ``at``, or another thread has computed that at the same time.
        At the end all writes have been made; which of them data decide, their order is asked for.
        """
        array, sources = self.new.statement[at.statement or ""].written, event.seen
        writers = [self.root.statement[w] for w in sources.writes]
        at_end = event.time.statement is None and not all(map(self.root.is_exact, writers))
        if not (at_end or all(map(sources.is_sure, sources.writes))):
            return bad
        differing = bad - bad
        for origin, relation in sources.writes.items():
            if is_update(self.root.statement[origin]):
                differing = bad
                continue
            values = {i: variable(i, WRITER) for i in self.root.statement[origin].inames}
            tied = without(bad & (event.reading & relation), READER)
            alike = self.equal_to(Computed(origin, values), at, tied)
            differing = differing | self.onto(tied - alike, bad)
            for image in self.images_writing(origin, array):
                both = alike & self.instances(image, SURE, WRITER)
                for race in self.new.unordered(at, Instance(image.statement, SURE), array):
                    bad = bad - self.onto(both & race[1], bad)
        return bad & differing

    def equal_writes(self, a: Instance, b: Instance, where: isl.Set) -> isl.Set:
        """The part of ``where`` in which two writes of the schedule are known to be of one value.

        What the text computes is what the schedule does, where all else holds, and copies hold
        what the schedule has stored.
        """
        one = self.computed_by(a)
        if one is not None:
            return self.equal_to(one, b, where)
        if self.computed_by(b) is not None:
            return where - where
        both = []
        for at in (a, b):
            move = self.new.statement[at.statement or ""]
            both.append(Computed(move.id, {i: variable(i, at.label) for i in move.inames}))
        return equal_values_of(self.new.kernel).stored(both[0], both[1], where)

    @memoised
    def image_relation(self, image: Image, label: str, root_label: str) -> isl.Set:
        """``{ inames·label, inames·root_label of the origin : one executes the other }``.

        A superset where the image stands for several: see :meth:`instances`.
        """
        pairs = [(variable(i, root_label), self.new.named(e, label)) for i, e in image.values]
        bounds = self.bounds_from_data(image)
        pairs += [(variable(name, root_label), variable(name, label)) for name in bounds]
        return intersection(equal(origin, value) for origin, value in pairs)

    def bounds_from_data(self, image: Image) -> list[str]:
        """The loaded bounds of what an image stands for that are bounds of the image, too.

        What lasts through a loop stands in front of it, and is there whatever its bounds.
        """
        mine = self.root.bounds_from_data(image.origin)
        if not self.lineage.every(image):
            return [*mine]
        its = self.new.bounds_from_data(image.statement)
        return [name for name in mine if name in its]

    @memoised
    def instances(self, image: Image, label: str, root_label: str) -> isl.Set:
        """:meth:`image_relation` within the domain of the image's statement (a superset, too)."""
        if isinstance(image, Carried):
            return self.partial.relation(image, label, root_label)
        domain = self.new.domain(Instance(image.statement, label))
        return domain & self.executed(image, label, root_label)

    def executed(self, image: Image, label: str, root_label: str) -> isl.Set:
        """:meth:`image_relation` to instances that the origin has, where it names several."""
        relation = self.image_relation(image, label, root_label)
        if not self.lineage.every(image):
            return relation
        return relation & self.root.domain(Instance(image.origin, root_label))

    def cell(self, event: ReadEvent, access: Access) -> Cell:
        """The cell that an event touches; a name that has one value there is that number."""
        indices = self.new.indices(event.time, access[1])
        fixed = _sets.fixed_values(event.where, frozenset().union(*map(variable_names, indices)))
        indices = [substitute(i, fixed) for i in indices] if fixed else indices
        return self.new.cell(access[0], indices, event.time, dict(event.everywhere))

    def missing(self, event: ReadEvent, cell: Cell) -> None:
        """Report a read of a cell that nothing wrote."""
        self.report(event.violation("missing", event.where, cell))

    def images_writing(self, origin: str, array: str) -> tuple[Image, ...]:
        """The images of a statement that write ``array``."""
        images = self.lineage.images_from[origin]
        return tuple(i for i in images if self.new.statement[i.statement].written == array)

    def reaching(self, image: Image, array: str) -> tuple[Image, ...]:
        """An image that writes ``array``, or the flushes that bring there what it adds."""
        if self.new.statement[image.statement].written == array:
            return (image,)
        return self.partial.carried(image, array)

    def onto(self, where: isl.Set, like: isl.Set) -> isl.Set:
        """``where`` projected onto the names of ``like``, and the sizes."""
        sizes = (*self.new.kernel.sizes, *self.root.kernel.sizes)
        return _sets.project_onto(where, {*_sets.names_of(like), *sizes})

    def runs(self, at: Instance) -> tuple[isl.Set, dict[Axis, Expression]]:
        """``{ inames of an instance, sizes : it runs }``, and where on axes that it runs along."""
        bounds, everywhere = self.new.everywhere(at)
        return self.new.domain(at) & bounds & self.lineage.sizes, everywhere

    def moves(self, array: str) -> tuple[Statement, ...]:
        """The statements that write ``array`` but execute no instance of the text."""
        return tuple(w for w in self.new.writers(array) if w.id not in self.lineage.image_of)

    def copy_statements(self, array: str) -> tuple[Statement, ...]:
        """Those of :meth:`moves` that fill ``array``, and flush no partial sums to it."""
        return tuple(w for w in self.moves(array) if self.partial.flushed(w) is None)

    def is_copy(self, array: str) -> bool:
        """Whether only such statements write ``array``."""
        writers = self.new.writers(array)
        return bool(writers) and len(self.copy_statements(array)) == len(writers)
