"""Whether two instances without an order access one cell, one of them writing it.

These are Bernstein's conditions (1966): instances that execute at the same time must not write
what the other one reads or writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import sub

import islpy as isl

from loopkit._check.injectivity import Injectivity
from loopkit._check.schedule_check import Check, written_cells
from loopkit._check.violation import Violation
from loopkit._expression import variable_names
from loopkit._guarded import guarded_reads
from loopkit._hidden import BASE, OTHER
from loopkit._kernel import Statement
from loopkit._linear import NotAffineError, linear
from loopkit._poly.dataflow import is_update
from loopkit._poly.equal_values import value_key
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, nonempty
from loopkit._same import key_of


def check_races(check: Check, array: str) -> None:
    """Report unordered writes of one cell, unless they are known to store equal values.

    Updates of a reduction are checked where their sum is read, and writes that depend on data by
    their order.
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
    """Pairs of unordered writes of one cell: the two statements, why, and the cases.

    Statements whose writes are equivalent are checked once for all, but each with itself.
    """
    if all(axis[0] == "ilp" for axis in new.axes):
        return
    writers = [w for w in new.writers(array) if not is_update(w)]
    forms = {w.id: _form(new, w) for w in writers}
    known: set[tuple[object, ...]] = set()
    for number, first in enumerate(writers):
        form, constants = forms[first.id]
        for second in writers[number:]:
            its_form, its_constants = forms[second.id]
            # Where the two meet, the distance of their constants alone decides.
            distance = tuple(map(sub, constants, its_constants))
            meeting = (form, its_form, distance, first is second)
            if meeting in known or (first is second and _shows_its_threads(new, first)):
                continue
            one, two = Instance(first.id, BASE), Instance(second.id, OTHER)
            a = new.write_cell(one)
            if a.by_data or new.write_cell(two).by_data:
                continue
            values = tuple(value_key(new, s) for s in (first, second))
            key = (forms[first.id], forms[second.id], first is second, values)
            if key in known:
                continue
            pieces = new.unordered(one, two, array)
            found = [*nonempty(new.domain(one) & new.writing(two, a), pieces)] if pieces else []
            known.add(key if found else meeting)
            for how, bad in found:
                yield one, two, how, bad


def _form(model: Model, writer: Statement) -> tuple[object, tuple[int, ...]]:
    """A key on which a write's races depend: its indices without constants, and the constants."""
    indices = model.write_cell(Instance(writer.id, "")).indices
    form: object
    try:
        forms = [linear(i) for i in indices]
    except NotAffineError:
        form, constants = key_of(indices), (0,) * len(indices)
    else:
        form = tuple(frozenset(f.terms.items()) for f in forms)
        constants = tuple(f.constant for f in forms)
    place = model.order.launch(writer.id).number, writer.inames, key_of(writer.predicates)
    return (*place, form), constants


def _shows_its_threads(new: Model, statement: Statement) -> bool:
    """Whether the cell that a statement writes determines the blocks and threads."""
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
    """Report copies that read data which another block may be writing.

    The reads of the text's statements, and the copies they see, are checked one by one
    (:mod:`loopkit._check.read_check`). This covers copied data that no read uses, such as the
    corners of a box around a footprint. Cells and instances that depend on data are left to those
    checks.
    """
    new = check.new
    if not new.is_global(array) or not any(axis[0] == "g" for axis in new.axes):
        return
    writers = [w for w in new.writers(array) if new.is_exact(w)]
    for mover in new.kernel.readers.get(array, ()):
        if mover.id in check.lineage.image_of:
            continue
        if new.conditions_on_data(mover) or new.bounds_from_data(mover.id):
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
