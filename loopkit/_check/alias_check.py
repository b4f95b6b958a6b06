"""Whether temporaries that share storage never overwrite each other's live values.

A proven schedule remains correct with arrays in common storage if no read sees a value written to
another array: each write to the same bytes comes after the read, or between it and the read the
cell itself is written again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import strides_of
from loopkit._cached import memoised
from loopkit._check.instance_maps import own_lineage
from loopkit._check.schedule_check import Check
from loopkit._check.violation import Violation
from loopkit._expression import Access
from loopkit._frozen import dataclass
from loopkit._guarded import Guards, all_guarded_reads
from loopkit._hidden import BASE, OTHER, SURE
from loopkit._kernel import Kernel, Statement
from loopkit._linear import NotAffineError
from loopkit._nodes import Expression
from loopkit._places import shared_storage
from loopkit._poly.model import Cell, Model, model_of
from loopkit._poly.pairs import FLAT, Instance, Undecided
from loopkit._poly.places import places_of


def check_aliases(check: Check) -> None:
    """Report reads that see a value written to another array of the same storage.

    Arrays for which that is so in the text already, and was accepted unchecked, are left out.
    """
    known = {(found.array, found.detail) for found in overlaid(check.lineage.root)}
    for array, other in _pairs(check.new.kernel):
        if (array, other) not in known:
            _check_arrays(check, array, other)


def _pairs(kernel: Kernel) -> Iterator[tuple[str, str]]:
    for names in dict.fromkeys(shared_storage(kernel).values()):
        yield from permutations(names, 2)


@memoised
def overlaid(kernel: Kernel) -> tuple[Violation, ...]:
    """Reads of a kernel that see a value written to another array of the same storage.

    There are none, unless the storage was shared without a check.
    """
    check = Check(own_lineage(kernel), model_of(kernel))
    for pair in _pairs(kernel):
        _check_arrays(check, *pair)
    return tuple(check.found)


def _check_arrays(check: Check, array: str, other: str) -> None:
    for reader in check.new.kernel.readers.get(array, ()):
        for name, indices, guards in dict.fromkeys(all_guarded_reads(check.new.kernel, reader)):
            for writer in check.new.writers(other) if name == array else ():
                _check_pair(check, reader, (name, indices), guards, writer)


def _check_pair(
    check: Check, reader: Statement, access: Access, guards: Guards, writer: Statement
) -> None:
    new, array = check.new, access[0]
    read, at = Instance(reader.id, BASE), Instance(writer.id, OTHER)
    bounds, everywhere = new.everywhere(read)
    cell = new.cell(array, new.indices(read, access[1]), read, everywhere)
    written = new.write_cell(at)
    both = new.domain(read) & bounds & new.where_evaluated(guards, BASE) & check.lineage.sizes
    both = both & new.domain(at) & _in_one_place(new, cell, written)
    pieces = [] if both.is_empty() else new.not_before(read, at, array, itself=False)
    bad = both - both
    for _, piece in pieces:
        bad = bad | (both & piece)
    for own in new.writers(array):
        if bad.is_empty():
            return
        if new.is_exact(own):
            bad = bad - _replaced(new, bad, at, Instance(own.id, SURE), read, cell)
    if bad.is_empty():
        return
    is_exact = new.is_exact(writer) and not (cell.by_data or new.conditions_on_data(reader))
    check.report(
        Violation(
            "aliased",
            bad,
            check.side_of(read),
            other=check.side_of(at),
            array=array,
            cell=cell.indices,
            written=written.indices,
            detail=written.array,
            exact=is_exact,
        )
    )


def _replaced(
    new: Model, bad: isl.Set, at: Instance, own: Instance, read: Instance, cell: Cell
) -> isl.Set:
    """The cases of ``bad`` in which ``own`` writes the cell after ``at``, and before the read."""
    found = bad & new.writing(own, cell)
    for _, piece in (*new.not_before(at, own, cell.array), *new.not_before(own, read, cell.array)):
        found = found - piece
    return _sets.project_onto(found, {*_sets.names_of(bad)})


def _in_one_place(new: Model, a: Cell, b: Cell) -> isl.Set:
    """``{ names of both cells : they share bytes }``; a superset if data decide."""
    result = new.same_copy(a, b)
    if not all(map(_sets.is_affine, (*a.indices, *b.indices))):
        return result
    first, second = _bytes(new, a, BASE), _bytes(new, b, OTHER)
    try:
        for one, two in ((first, second), (second, first)):
            end = prim.Sum((two.begin, two.size))
            result = result & _sets.condition_set(prim.Comparison(one.begin, "<", end))
    except NotAffineError:
        raise Undecided(f"where '{a.array}' and '{b.array}' lie is beyond sets", FLAT) from None
    result = result & first.tied & second.tied
    return _sets.project_out(result, [*first.digits, *second.digits])


@dataclass(frozen=True, eq=False)
class _Bytes:
    """Where a cell begins in the storage, over digits that are tied to its indices; its size."""

    begin: Expression
    size: int
    digits: tuple[str, ...]
    tied: isl.Set


def _bytes(new: Model, cell: Cell, label: str) -> _Bytes:
    array = new.array(cell.array)
    size = 4 if array.dtype is None else array.dtype.itemsize
    places = places_of(array, cell.indices, label)
    steps = zip(strides_of(array), places.along, strict=True)
    begin = prim.Sum((0, *(prim.Product((size, stride, index)) for stride, index in steps)))
    return _Bytes(begin, size, places.digits, places.tied)
