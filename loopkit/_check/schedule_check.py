"""A schedule beside the text that it is to compute: what each check asks of both."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._assertions import Assertion, Increasing
from loopkit._check.instance_maps import Image, Lineage
from loopkit._check.read_event import ReadEvent
from loopkit._check.violation import Side, Violation
from loopkit._hidden import instance, plain, variable
from loopkit._kernel import Statement
from loopkit._poly.dataflow import Access, Dataflow
from loopkit._poly.model import Cell, Model
from loopkit._poly.pairs import Instance, equal


class Check:
    """One schedule compared with the text; ``found`` gathers what is wrong."""

    def __init__(self, root: Model, dataflow: Dataflow, new: Model, lineage: Lineage) -> None:
        self.root = root
        self.dataflow = dataflow
        self.new = new
        self.lineage = lineage
        self.found: list[Violation] = []
        self._relations: dict[tuple[str, str, str], isl.Set] = {}
        self._instances: dict[tuple[str, str, str], isl.Set] = {}

    def report(self, violation: Violation) -> None:
        """Note something wrong; the check goes on, so that the smallest case can be told."""
        names = _sets.involved_names(violation.where)
        bounds = [d for d in self.new.data if any(plain(n) == d for n in names)]
        if bounds:
            violation = replace(violation, exact=False, settling=self.about_bounds(bounds))
        self.found.append(violation)

    def about_bounds(self, names: list[str]) -> tuple[Assertion, ...]:
        """Assertions that may settle what depends on loop bounds held in some temporaries."""
        found: dict[Assertion, None] = {}
        for name in sorted(names):
            for writer in self.new.writers(name):
                for array, indices in writer.reads:
                    if indices and array in self.new.kernel.arg_by_name:
                        found[Increasing(array)] = None
        return tuple(found)

    def origin_side(self, image: Image, at: Instance) -> Side:
        """A schedule's instance as the text knows it."""
        values = {i: self.new.named(e, at.label) for i, e in image.values}
        return Side(at, image.origin, values)

    def side_of(self, at: Instance) -> Side:
        """Any instance of the schedule, a move too."""
        assert at.statement is not None
        image = self.lineage.image_of.get(at.statement)
        return Side(at, None) if image is None else self.origin_side(image, at)

    def image_relation(self, image: Image, label: str, root_label: str) -> isl.Set:
        """``{ inames·label, inames·root_label of the origin : one executes the other }``."""
        key = (image.statement, label, root_label)
        found = self._relations.get(key)
        if found is None:
            found = _sets.universe()
            for iname, value in image.values:
                named = self.new.named(value, label)
                found = found & equal(variable(iname, root_label), named)
            for name in self.root.bounds_from_data(image.origin):
                here, there = instance(name, label), instance(name, root_label)
                found = found & equal(prim.Variable(there), prim.Variable(here))
            self._relations[key] = found
        return found

    def instances(self, image: Image, label: str, root_label: str) -> isl.Set:
        """:meth:`image_relation` within the domain of the image's statement (a superset, too)."""
        key = (image.statement, label, root_label)
        found = self._instances.get(key)
        if found is None:
            domain = self.new.domain(Instance(image.statement, label))
            found = self._instances[key] = domain & self.image_relation(image, label, root_label)
        return found

    def cell(self, event: ReadEvent, access: Access) -> Cell:
        """The cell that an event touches."""
        indices = self.new.indices(event.time, access[1])
        return self.new.cell(access[0], indices, event.time, dict(event.everywhere))

    def missing(self, event: ReadEvent, cell: Cell) -> None:
        """Report a read of what nothing wrote."""
        self.report(event.violation("missing", event.where, cell))

    def images_writing(self, origin: str, array: str) -> tuple[list[Image], list[Image]]:
        """The images of a statement that write ``array``, and the others."""
        writing: list[Image] = []
        others: list[Image] = []
        for image in self.lineage.images_from[origin]:
            mine = self.new.statement[image.statement].written == array
            (writing if mine else others).append(image)
        return writing, others

    def event_names(self, where: isl.Set, event: ReadEvent) -> isl.Set:
        """``where`` projected onto the names of the event."""
        return self.onto(where, event.where)

    def onto(self, where: isl.Set, like: isl.Set) -> isl.Set:
        """``where`` projected onto the names of ``like``, and the sizes."""
        sizes = (*self.new.kernel.sizes, *self.root.kernel.sizes)
        return _sets.project_onto(where, {*_sets.names_of(like), *sizes})

    def copy_statements(self, array: str) -> tuple[Statement, ...]:
        """The statements that fill ``array`` but stand for nothing in the text."""
        return tuple(w for w in self.new.writers(array) if w.id not in self.lineage.image_of)

    def is_copy(self, array: str) -> bool:
        """Whether only such statements write ``array``."""
        writers = self.new.writers(array)
        return bool(writers) and len(self.copy_statements(array)) == len(writers)
