"""Whether reads by copies are in bounds if their cells depend on data.

A copy of ``x[idx[i]]`` may execute where the text does not read ``x[idx[i]]``, for example before
the condition under which ``idx[i]`` is a valid index. It is in bounds if assertions or conditions
of its own show it, or if the text certainly reads the same cell.
"""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._assertions.asserted_cells import data_of, maybe_outside
from loopkit._assertions.assertion_values import Assertion, Within
from loopkit._check.copy_chains import CopyChains
from loopkit._check.schedule_check import Check
from loopkit._check.violation import Violation
from loopkit._expression import accesses, variable_names
from loopkit._guarded import Guarded, conjuncts, guarded_reads
from loopkit._hidden import BASE, SOURCE, instance, variable
from loopkit._kernel import Statement
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, equal_inames, parts_in, renamed


def accesses_by_data(model: Model, statement: Statement) -> list[Guarded]:
    """The arrays that a statement accesses at cells which depend on data, with the conditions."""
    own = (*statement.write, statement.predicates)
    return [
        (name, indices, guards)
        for name, indices, guards in (own, *guarded_reads(statement))
        if name in model.data and any(map(model.is_beyond_sets, indices))
    ]


def check_read_ahead(check: Check, statement_id: str) -> None:
    """Report accesses by a copy that may be out of bounds because of data."""
    new = check.new
    at = Instance(statement_id, BASE)
    used: isl.Set | None = None
    for access in accesses_by_data(new, new.statement[statement_id]):
        name, indices, guards = access
        where = new.domain(at) & check.lineage.sizes & new.where_evaluated(guards, BASE)
        open_ = where & _perhaps_outside(new, at, access, where)
        if open_.is_empty():
            continue
        if used is None:
            used = new.labelled(surely_used(check, statement_id), BASE)
        bad = open_ - used
        if not bad.is_empty():
            cell = tuple(new.named(i, BASE) for i in indices)
            settling = tuple(
                a
                for a in _candidates(new, at, access)
                if (bad & _perhaps_outside(new, at, access, where, a)).is_empty()
            )
            found = Violation(
                "bounds",
                bad,
                check.side_of(at),
                array=name,
                cell=cell,
                exact=False,
                settling=settling,
                detail="which may lie outside, and the text does not surely read that",
            )
            check.report(found)
            return


def _perhaps_outside(
    new: Model, at: Instance, access: Guarded, where: isl.Set, *more: Assertion
) -> isl.Set:
    """The part of ``where`` in which an access may leave its array (a superset of it).

    Conditions count that are not affine, but those on data that the kernel writes.
    """
    name, indices, guards = access
    shape = new.array(name).shape
    if shape is None:
        return where
    assertions = (*new.kernel.assertions, *more)
    parts = [part for g in new.indices(at, guards) for part in conjuncts(g)]
    data = data_of(new.kernel)
    given = [part for part in parts if not variable_names(part) & new.written]
    result = where - where
    for index, extent in zip(new.indices(at, indices), shape, strict=True):
        result = result | maybe_outside(where, assertions, index, extent, data, given)
    return result


def _candidates(new: Model, at: Instance, access: Guarded) -> Iterator[Assertion]:
    name, indices, _ = access
    for index, extent in zip(new.indices(at, indices), new.array(name).shape or (), strict=False):
        for array, inner in accesses(index):
            if inner and array in new.kernel.arg_by_name and array not in new.written:
                yield Within(array, 0, extent)


def surely_used(check: Check, statement_id: str, behind: frozenset[str] = frozenset()) -> isl.Set:
    """``{ inames of a copy, sizes : a statement of the text surely reads what it has written }``.

    A subset.  What reads may be a copy (not one ``behind`` it) that is surely used itself.
    """
    new = check.new
    copy = new.statement[statement_id]
    at, time = Instance(statement_id, SOURCE), Instance(None, BASE)
    where = new.domain(at) & check.lineage.sizes
    found = where - where
    if new.write_cell(at).by_data:
        return found
    behind = behind | {statement_id}
    for reader in new.kernel.readers.get(copy.written, ()):
        if reader.id in behind:
            continue
        time = Instance(reader.id, BASE)
        both = where & new.domain(time)
        if reader.id not in check.lineage.image_of:
            both = both & new.labelled(surely_used(check, reader.id, behind), BASE)
        for read in guarded_reads(reader):
            if read[0] == copy.written and not both.is_empty():
                found = found | _read_by(check, at, time, read, both)
    return renamed(found.coalesce(), {SOURCE: ""})


def _read_by(check: Check, at: Instance, time: Instance, read: Guarded, both: isl.Set) -> isl.Set:
    """``{ names of a copy : a read surely sees it }``, of instances ``both`` of the two."""
    new, chains, (array, indices, guards) = check.new, CopyChains(check), read
    assert at.statement is not None and time.statement is not None
    nowhere = check.onto(both - both, new.domain(at))
    cell, its = new.write_cell(at), new.cell(array, new.indices(time, indices), time)
    bounds = new.bounds_from_data(time.statement)
    asked = [part for g in guards for part in conjuncts(g) if new.condition(part) is None]
    held = [part for g in new.statement[at.statement].predicates for part in conjuncts(g)]
    same = [*asked, *map(prim.Variable, bounds)]
    if (
        its.by_data
        or any(part not in held for part in asked)
        or set(bounds) - set(new.bounds_from_data(at.statement))
    ):
        return nowhere
    # Conditions on data have the same outcome for both where these inames are equal.
    inames = frozenset().union(*map(variable_names, same)) & {*new.kernel.all_inames}
    both = both & equal_inames(inames, at.label, time.label)
    for name in bounds:
        both = both & _sets.equality(instance(name, at.label), variable(name, time.label))
    both = both & new.where_evaluated(guards, time.label) & new.same_cell(cell, its)
    found = nowhere
    for part in parts_in(both, new.order.before(at, time)):
        for writer in new.writers(array):
            if writer.operation is None:
                part = chains.not_replaced(part, at, writer, cell, time)
        if all(chains.is_unchanged(s, at, time, part) for s in same):
            found = found | check.onto(part, found)
    return found
