"""Whether two instances meet in one cell in no order, whatever becomes of it.

These are Bernstein's conditions (1966): what runs at once may not write what the other one
writes or reads.
"""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from loopkit._check.injectivity import Injectivity
from loopkit._check.schedule_check import Check, written_cells
from loopkit._check.violation import Violation
from loopkit._expression import variable_names
from loopkit._guarded import guarded_reads
from loopkit._hidden import BASE, OTHER
from loopkit._kernel import Statement
from loopkit._poly.dataflow import is_update
from loopkit._poly.equal_values import value_key
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, nonempty


def check_races(check: Check, array: str) -> None:
    """Report writes of one cell that nothing orders, unless they are known to be of one value.

    Updates of a reduction are judged where their sum is read, and writes that
    data decide by their order.
    """
    check_carriers(check, array)
    for one, two, how, bad in unordered_writes(check.new, array):
        bad = bad - check.equal_writes(one, two, bad)
        if bad.is_empty():
            continue
        sides = check.side_of(two), check.side_of(one)
        indices = check.new.write_cell(two).indices
        check.report(Violation("rewritten", bad, *sides, None, how, array, indices))


def unordered_writes(new: Model, array: str) -> Iterator[tuple[Instance, Instance, str, isl.Set]]:
    """Where two writes meet in one cell and nothing orders them: the two, how, and the cases.

    Statements that write alike have one answer, but for each with itself.
    """
    writers = [w for w in new.writers(array) if not is_update(w)]
    known: set[tuple[object, ...]] = set()
    for number, first in enumerate(writers):
        for second in writers[number:]:
            if first is second and _shows_its_threads(new, first):
                continue
            one, two = Instance(first.id, BASE), Instance(second.id, OTHER)
            pieces = new.unordered(one, two, array)
            a, b = new.write_cell(one), new.write_cell(two)
            if not pieces or a.by_data or b.by_data:
                continue
            launches = tuple(new.order.launch(s.id).number for s in (first, second))
            values = tuple(value_key(new, s) for s in (first, second))
            key = (written_cells(first), written_cells(second), first is second, launches, values)
            if key in known:
                continue
            known.add(key)
            both = new.domain(one) & new.writing(two, a)
            for how, bad in nonempty(both, pieces):
                yield one, two, how, bad


def _shows_its_threads(new: Model, statement: Statement) -> bool:
    """Whether the cell that a statement writes says on which blocks and threads it ran."""
    array, indices = statement.write
    known = Injectivity(new).determined_by(indices)
    at = Instance(statement.id, "")
    copied = new.copy_axes(array)
    for axis in new.axes:
        if axis in copied or axis[0] == "ilp":
            continue
        index = new.coordinate(at, axis)
        if index is None or not variable_names(index) <= known:
            return False
    return True


def check_carriers(check: Check, array: str) -> None:
    """Report statements that carry data which another block may be writing.

    What reads of the text's statements see, and what stands behind them, is asked
    of each (see :mod:`loopkit._check.read_check`).  Some of what is carried nobody looks
    at, the corners of a box around a footprint, say.  Cells and instances that data
    decide are left to those questions.
    """
    new = check.new
    if not new.is_global(array) or not any(axis[0] == "g" for axis in new.axes):
        return
    writers = [w for w in new.writers(array) if new.is_exact(w)]
    for mover in new.kernel.readers.get(array, ()):
        if mover.id in check.lineage.image_of:
            continue
        if new.depends_on_data(mover) or new.bounds_from_data(mover.id):
            continue  # data decide when it runs
        one = Instance(mover.id, BASE)
        known: set[tuple[object, ...]] = set()
        for writer in writers:
            two = Instance(writer.id, OTHER)
            pieces = [(how, p) for how, p in new.unordered(one, two, array) if how == "blocks"]
            if not pieces or written_cells(writer) in known:
                continue
            known.add(written_cells(writer))
            runs = new.domain(one) & new.everywhere(one)[0]
            for name, indices, guards in dict.fromkeys(guarded_reads(mover)):
                if name != array:
                    continue
                read = new.cell(array, new.indices(one, indices), one)
                if read.by_data:
                    continue
                both = runs & new.where_evaluated(guards, BASE) & new.writing(two, read)
                for how, bad in nonempty(both, pieces):
                    sides = check.side_of(one), None, check.side_of(two)
                    found = Violation("overwritten", bad, *sides, how, array, read.indices)
                    check.report(found)
