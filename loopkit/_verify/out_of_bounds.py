"""Accesses out of bounds.

Their effect is undefined, so a kernel with one is not equal to a kernel without, whether or not
the value is used. The checker covers the accesses of statements that a schedule adds; this module
covers all.
"""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import ValueArg
from loopkit._errors import OutOfBoundsError
from loopkit._hidden import hidden
from loopkit._kernel import Kernel
from loopkit._make.check_bounds import Outside, error_for, outside_accesses
from loopkit._rules import expand_rules
from loopkit._verify.verdict import Difference, Verdict


def out_of_bounds(before: Kernel, after: Kernel) -> Verdict | None:
    """The verdict if one or both kernels access arrays out of bounds; None if neither does.

    Both have the same assumptions.
    """
    before, after = expand_rules(before), expand_rules(after)
    mine, its = _first(before), _first(after)
    if mine is not None and its is not None:
        return Verdict("undecided", f"neither kernel stays inside of its arrays: {its.why}")
    found = mine or its
    if found is None:
        return _perhaps(before, after)
    witness = found.witness
    assert witness is not None and witness.array is not None and witness.sink is not None
    point = ", ".join(f"{n}={v}" for n, v in witness.sink.inames.items())
    who = f"'{witness.sink.statement}'" + (f" ({point})" if point else "")
    words = f"{who} touches it", "nothing outside of an array is touched"
    one, two = words if found is mine else words[::-1]
    difference = Difference(
        dict(witness.parameters), witness.array, witness.cell or (), one, two, outside=True
    )
    return Verdict("different", "", difference)


def _perhaps(before: Kernel, after: Kernel) -> Verdict | None:
    """The verdict where data decide which cells outside of arrays a kernel touches.

    None where the kernels touch the same, if any.
    """
    mine, its = (list(_found(kernel, whatever_data_hold=False)) for kernel in (before, after))
    if not mine and not its:
        return None
    one, two = _cells(before, mine), _cells(after, its)
    if one.keys() == two.keys() and all(one[name].is_equal(two[name]) for name in one):
        return None
    which, kernel, found = ("after", after, its) if its else ("before", before, mine)
    why = error_for(kernel, found[0]).why
    return Verdict("undecided", f"data decide whether '{which}' stays inside of its arrays: {why}")


def _cells(kernel: Kernel, found: list[Outside]) -> dict[str, isl.Set]:
    """``{ cell, sizes }`` of each array: the cells accessed out of bounds; a superset."""
    cells: dict[str, isl.Set] = {}
    for access in found:
        where = access.where
        for axis, index in enumerate(access.indices):
            if _sets.is_affine(index):
                cell = prim.Variable(hidden("cell", axis))
                where = where & _sets.condition_set(prim.Comparison(cell, "==", index))
        inames = [i for i in kernel.all_inames if i in _sets.names_of(where)]
        where = _sets.project_out(where, inames)
        cells[access.array] = cells[access.array] | where if access.array in cells else where
    return cells


def _found(kernel: Kernel, *, whatever_data_hold: bool = True) -> Iterator[Outside]:
    """The accesses outside of arrays, by instances that run whatever data hold or not."""
    arrays = [a for a in (*kernel.args, *kernel.temporaries) if not isinstance(a, ValueArg)]
    names = frozenset(a.name for a in arrays)
    return outside_accesses(kernel, names, whatever_data_hold=whatever_data_hold)


def _first(kernel: Kernel) -> OutOfBoundsError | None:
    found = next(_found(kernel), None)
    return None if found is None else error_for(kernel, found)
