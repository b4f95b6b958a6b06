"""Whether every read of a schedule sees the writes that the text says.

Each read is checked by itself. An *event* is a set of executions of one read in the schedule,
together with the read of the text that it corresponds to. The sources of that read in the text
(see :mod:`loopkit._poly.dataflow`) must have written the cell before, and nothing else may have
written it since. If the schedule reads a copy, the event continues at the statement that made the
copy, and the question is asked there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl

from loopkit import _hidden, _sets
from loopkit._cached import once
from loopkit._check.instance_maps import Image
from loopkit._check.schedule_check import Check, ReadEvent
from loopkit._check.source_check import SourceCheck, SourceImage
from loopkit._check.violation import Violation
from loopkit._expression import Access
from loopkit._guarded import flags_of
from loopkit._kernel import Statement
from loopkit._poly.dataflow import commute, is_own_read, is_update
from loopkit._poly.model import Cell
from loopkit._poly.pairs import Instance, Undecided, ahead, nonempty, parts_in, renamed, without

_TEXT = (_hidden.READER, _hidden.WRITER, _hidden.SIBLING)
"""The labels of instances of the text."""


class ReadCheck(SourceCheck):
    """Compares the reads of a schedule with those of the text."""

    def __init__(self, check: Check) -> None:
        super().__init__(check)
        self._seen: dict[tuple[object, ...], isl.Set] = {}

    def direct(self, event: ReadEvent, old: Access, new: Access) -> None:
        """Check reads that see no copy: the text's sources must have written the cell.

        Reports a source that did not, and any other write of the cell after the source.
        """
        sources = event.sources or self.check.dataflow.of_read(event.reader, old)
        event = replace(event, access=old, sources=sources)
        cell = self.check.cell(event, new)
        if cell.by_data or any(
            self.new.write_cell(Instance(w.id, _hidden.OTHER)).by_data
            for w in self.new.writers_of(cell)
        ):
            raise Undecided(f"which cells of '{cell.array}' are touched would depend on data")
        found: list[SourceImage] = []
        again = False
        for origin, relation in sources.writes.items():
            related = event.bound & relation
            if related.is_empty():
                continue
            images = self.check.lineage.images_from[origin]
            mine: list[SourceImage] = []
            for image in images:
                reaching = self.check.reaching(image, cell.array)
                for one in reaching:
                    at = Instance(one.statement, _hidden.SOURCE)
                    pairs = related & self.check.instances(one, _hidden.SOURCE, _hidden.WRITER)
                    pairs = self.with_facts(pairs, event, at)
                    equal = self.equal_loops(pairs, at, event.time)
                    mine.append(SourceImage(one, at, pairs, equal))
                self.check_apart(event, image, related)
                if reaching:
                    continue
                at = Instance(image.statement, _hidden.SOURCE)
                pairs = related & self.check.instances(image, _hidden.SOURCE, _hidden.WRITER)
                if not pairs.is_empty():
                    side = self.check.origin_side(image, at)
                    self.check.report(event.violation("missing", pairs, cell, source=side))
            # Of several copies of a statement, an event may have some for sources, and others not.
            mine = [one for one in mine if not one.pairs.is_empty()] or mine
            serving = self.check_sources(event, mine, cell)
            again |= serving is not mine
            found += serving
            if not images:
                self.check.missing(event.narrowed(self.check.onto(related, event.where)), cell)
        untouched = event.bound & sources.untouched
        # A temporary has no value before the kernel: conditions on data must exclude the read.
        if not (untouched.is_empty() or old[0] in self.root.kernel.temporary_by_name):
            if cell.array != old[0]:
                self.check.missing(event.narrowed(self.check.onto(untouched, event.where)), cell)
            self.check_untouched(event, untouched, cell)
        if found:
            complete = bool(untouched.is_empty())
            self.check_between(event, found if complete else [], cell, again)

    def check_apart(self, event: ReadEvent, image: Image, related: isl.Set) -> None:
        """Report updates of the text, both seen by one event, that one update executes now.

        ``related`` is ``{ names of the event, inames·WRITER of the update }``.
        """
        every = self.check.lineage.every(image)
        if not every or not is_update(self.new.statement[image.statement]):
            return
        at = Instance(image.statement, _hidden.UPDATE)
        both = related & self.check.instances(image, _hidden.UPDATE, _hidden.WRITER)
        both = both & renamed(both, {_hidden.WRITER: _hidden.SIBLING})
        for bad in parts_in(both, ahead(every, _hidden.WRITER, _hidden.SIBLING)):
            sink = self.check.origin_side(image, at, _hidden.SIBLING)
            source = self.check.origin_side(image, at)
            self.check.report(Violation("merged", bad, sink, source, text=self.root))

    def check_untouched(self, event: ReadEvent, untouched: isl.Set, cell: Cell) -> None:
        """Check that a read of a value from before the kernel precedes all writes of the cell.

        ``untouched`` is ``{ names of event.bound }``.
        """
        for writer in self.new.writers_of(cell):
            at = Instance(writer.id, _hidden.OTHER)
            both = self.with_facts(untouched & self.new.writing(at, cell), event, at)
            if not both.is_empty():
                # Where data decide whether a write happens, its reader may see both. To subtract
                # nothing would write the set otherwise, and a suggestion with it.
                family = self.family(event, writer)
                both = both if family.is_empty() else both - family
            if event.seen.choices is not None:
                likely = self.possible(both, event, at)
                both = _sets.project_onto(likely, _sets.names_of(both))
            if both.is_empty():
                continue
            early = self.new.not_before(event.time, at, cell.array, itself=False)
            for how, bad in nonempty(both, early):
                side = self.check.side_of(at)
                self.check.report(event.violation("overwritten", bad, cell, other=side, how=how))

    def check_between(
        self,
        event: ReadEvent,
        found: list[SourceImage],
        cell: Cell,
        again: bool = False,
    ) -> None:
        """Check that nothing else writes the cell between its sources and the event.

        ``found`` are all sources where each case of the event has one; ``again``: some of what
        executes a source comes late, or writes elsewhere.
        """
        sure = [f for f in found if f.image.origin in event.seen.certain]
        for writer in self.new.writers_of(cell):
            at = Instance(writer.id, _hidden.OTHER)
            renewed = self.renewed_levels(event.time, at, sure)
            pieces = self.new.unordered(event.time, at, cell.array)
            earlier = self.new.order.before_by_loop(at, event.time)
            if not pieces and renewed.issuperset(dict(earlier)):
                continue
            same = self.new.same_cell(self.new.write_cell(at), cell)
            family: isl.Set | None = None
            parts = [(how, piece & same, 0) for how, piece in pieces]
            parts += [("after", piece & same, key) for key, piece in earlier if key not in renewed]
            for how, part, level in parts:
                # Which cell it is says most, and what is known of it spares isl the rest.
                bad = event.where & part
                bad = bad & self.new.domain_beside(at, (event.time, level))
                bad = self.with_facts(bad, event, at)
                if bad.is_empty():
                    continue
                if family is None:
                    family = self.family(event, writer)
                is_racing = how != "after" and is_update(writer) and not self.meets(event, writer)
                if is_racing and not (bad & family).is_empty():
                    mine, side = bad & family, self.check.side_of(at)
                    if self.is_update_of(event):
                        race = event.violation("updates", mine, cell, other=side, how=how)
                    else:
                        race = event.violation("order", mine, cell, source=side, how=how)
                    self.check.report(race)
                bad = (bad - family).coalesce()
                if not bad.is_empty():
                    bad = self.not_replaced(bad, event, at, cell, again)
                if how == "after" and not bad.is_empty():
                    bad = self.not_cleared(bad, event, at)
                    bad = self.check.not_equal(bad, event, at)
                if not bad.is_empty():
                    self.check.report(self.overwritten(bad, event, at, cell, how))

    def renewed_levels(
        self, time: Instance, at: Instance, sure: Sequence[SourceImage]
    ) -> frozenset[int]:
        """The loops that may carry ``at`` before a reader so that a source sets the cell later.

        Levels are numbered as in :meth:`ProgramOrder.before_by_loop`. If every source is in the
        reader's iteration of that loop, it comes after all writes of earlier iterations.
        """
        if not sure or time.statement is None or at.statement is None:
            return frozenset()
        if any(self.new.unordered(at, f.at, self.new.write_cell(at).array) for f in sure):
            return frozenset()
        depth = len(self.new.order.shared_loops(at.statement, time.statement))
        equal = min(f.equal for f in sure)
        levels = set(range(min(depth, equal)))
        if depth <= equal and all(
            self.new.order.is_above(at.statement, f.image.statement)
            and len(self.new.order.shared_loops(at.statement, f.image.statement)) == depth
            for f in sure
        ):
            levels.add(depth)
        return frozenset(levels)

    def seen(self, event: ReadEvent, image: Image, relation: isl.Set, how: str) -> isl.Set:
        """``{ names of the event, image·SURE, origin·WRITER : the event is to see the write }``.

        Exact.  The text's ``relation`` of the two has a name, ``how`` (memoised).
        """

        def find() -> isl.Set:
            instances = self.check.instances(image, _hidden.SURE, _hidden.WRITER)
            return (instances & (event.reading & relation)).coalesce()

        return once(self._seen, (event, image.statement, how), find)

    def overwritten(
        self, bad: isl.Set, event: ReadEvent, at: Instance, cell: Cell, how: str
    ) -> Violation:
        """The violation that an event may see another write, ``at``, in the cases ``bad``.

        That write may be unordered with the right one, come after it, or be older and not
        replaced.
        """
        other = self.check.side_of(at)
        for origin, relation in event.seen.writes.items():
            if is_update(self.root.statement[origin]):
                continue
            for image in self.check.images_writing(origin, cell.array):
                sure = Instance(image.statement, _hidden.SURE)
                both = bad & self.seen(event, image, relation, "perhaps")
                for kind, race in nonempty(both, self.new.unordered(at, sure, cell.array)):
                    found = event.violation("rewritten", race, cell, source=other)
                    return replace(found, sink=self.check.origin_side(image, sure), how=kind)
        image_of_other = self.check.lineage.image_of.get(at.statement or "")
        if image_of_other is not None and event.reader in self.root.statement:
            reader = Instance(event.reader, _hidden.READER)
            origin_at = Instance(image_of_other.origin, _hidden.SIBLING)
            tied = (
                bad
                & event.bound
                & self.check.executed(image_of_other, _hidden.OTHER, _hidden.SIBLING)
            )
            for later in parts_in(tied, self.root.order.before(reader, origin_at)):
                if event.base is not None:
                    return event.violation("overwritten", later, cell, other=other, how=how)
        return event.violation("overwritten", bad, cell, other=other, how=how, detail="stale")

    def family(self, event: ReadEvent, writer: Statement) -> isl.Set:
        """Where a writer is itself a source of the event, or a sibling update of it.

        ``{ names of the event, inames·OTHER of the writer }``, as exact as the sources are.
        """
        image = self.check.lineage.image_of.get(writer.id)
        if image is not None:
            return self.family_of(event, image)
        nobody = event.where - event.where
        carried = self.check.partial.carried_by(writer)
        if not carried:
            return nobody
        # All that a flush carries is of the family, or it is not.
        result = event.where & self.new.domain(Instance(writer.id, _hidden.OTHER))
        for one in carried:
            update = one.update
            paths = self.check.partial.between(one, _hidden.UPDATE, _hidden.OTHER)
            every = event.where & paths
            mine = self.family_of(event, update, _hidden.UPDATE)
            result = result - without(every - mine, _hidden.UPDATE)
        return result

    def family_of(self, event: ReadEvent, image: Image, label: str = _hidden.OTHER) -> isl.Set:
        """Where an image is a source of the event, or a sibling update of it.

        ``{ names of the event, inames·label of the image }``.
        """
        result = event.where - event.where
        if image.origin in event.seen.writes:
            itself = self.check.image_relation(image, label, _hidden.WRITER)
            related = event.reading & event.seen.writes[image.origin] & itself
            result = result | without(related, *_TEXT)
        origin = self.root.statement[image.origin]
        reader = self.root.statement.get(event.reader)
        if reader is None or origin.write[0] != reader.write[0] or not commute(origin, reader):
            return result
        if event.access is None or not is_own_read(reader, event.access):
            return result
        theirs = self.check.dataflow.of_read(image.origin, origin.write)
        before = [
            (relation, theirs.writes[start])
            for start, relation in event.seen.writes.items()
            if start in theirs.writes and not commute(self.root.statement[start], reader)
        ]
        for mine, its in (*before, (event.seen.untouched, theirs.untouched)):
            both = event.bound & mine & renamed(its, {_hidden.READER: _hidden.SIBLING})
            both = both & self.check.image_relation(image, label, _hidden.SIBLING)
            result = result | without(both, *_TEXT)
        return result

    def not_cleared(self, bad: isl.Set, event: ReadEvent, at: Instance) -> isl.Set:
        """The cases of ``bad`` but those in which an instance finds that it has cleared its flag.

        It ran before, for the same instance of the text.  Not to run again is as good.
        """
        image, reader = self.check.lineage.image_of.get(at.statement or ""), event.reader
        flag = flags_of(self.root.kernel).get(event.access[0]) if event.access else None
        if (
            image is None
            or flag is None
            or image.origin != reader
            or self.check.lineage.every(image)
        ):
            return bad
        if reader not in [s.id for s in flag.stops if flag.guards(s)]:
            return bad
        itself = self.check.image_relation(image, at.label, _hidden.READER)
        return bad - self.check.onto(bad & (event.reading & itself), bad)

    def is_update_of(self, event: ReadEvent) -> bool:
        """Whether an event is an update's read of the cell that it changes."""
        origin = self.root.statement.get(event.reader)
        if origin is None or event.access is None:
            return False
        return is_own_read(origin, event.access)

    def meets(self, event: ReadEvent, writer: Statement) -> bool:
        """Whether an event is an atomic update's own read, and the writer one that it may meet."""
        mine = self.new.statement.get(event.time.statement or "")
        if mine is None or not self.is_update_of(event):
            return False
        return mine.is_atomic and writer.is_atomic and commute(mine, writer)

    def possible(self, where: isl.Set, event: ReadEvent, at: Instance) -> isl.Set:
        """The part of ``where`` in which a write is not known to be left out if the event happens.

        Over the names of ``where`` and the choices of what the event is to see.
        """
        image = self.check.lineage.image_of.get(at.statement or "")
        never = None if image is None else event.seen.never.get(image.origin)
        if event.seen.choices is not None:
            where = where & event.seen.choices
        if image is None or never is None or self.check.lineage.every(image):
            return where
        itself = self.check.image_relation(image, at.label, _hidden.WRITER)
        return where - self.check.onto(where & (event.reading & never & itself), where)

    def not_replaced(
        self,
        bad: isl.Set,
        event: ReadEvent,
        at: Instance,
        cell: Cell,
        again: bool,
    ) -> isl.Set:
        """The cases of ``bad`` in which no source sets the cell after the foreign write ``at``.

        A superset: only writes that surely happen replace another one.
        """
        names = _sets.names_of(bad)
        bad = self.possible(bad, event, at)
        for origin, relation in event.seen.writes.items():
            relation = event.seen.sure.get(origin, relation - relation)
            if relation.is_empty():
                continue
            for image in self.check.images_writing(origin, cell.array):
                sure = Instance(image.statement, _hidden.SURE)
                after = bad & self.seen(event, image, relation, "surely")
                for _, piece in self.new.unordered(at, sure, cell.array):
                    after = after - piece
                if again:
                    after = self.serving(after, event, sure, cell)
                for late in parts_in(after, self.new.order.before(at, sure)):
                    bad = bad - self.check.onto(late, bad)
                if bad.is_empty():
                    return bad
        return _sets.project_onto(bad, names) if event.seen.choices is not None else bad
