"""Which cells of a box a copy is filled with: those that are used, and that are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain, repeat

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _footprint, _sets
from loopkit._assertions.cells import data_of, may_hold
from loopkit._expression import variable_names
from loopkit._footprint import Axis, Use
from loopkit._guarded import Guards, guarded_accesses, where_all_hold
from loopkit._hidden import BASE, OTHER, labelled
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._poly.model import model_of
from loopkit._poly.pairs import Instance, inside
from loopkit._rules import reduced_inames
from loopkit.transforms._placement import Place
from loopkit.transforms._uses import Indices

Names = Mapping[int, str]
"""What positions along the axes of a box are called, by the axis."""


def cells_in_use(
    kernel: Kernel,
    uses: Sequence[Use],
    box: Sequence[Axis],
    positions: Sequence[str | None],
    place: Place,
    *,
    exact: bool = False,
    whole_box: bool = False,
) -> isl.Set:
    """The positions to move: a convex set around those that are used, or these exactly."""
    kept = [(n, a.extent) for n, a in zip(positions, box, strict=True) if n is not None]
    full = _footprint.box_set([n for n, _ in kept], [e for _, e in kept])
    if whole_box:
        return full
    keep = place.inames | frozenset(kernel.sizes)
    cells = _footprint.touched_cells(uses, box, positions, keep, exact=exact)
    return (cells.coalesce() if exact else _footprint.hull(cells)) & full


def where_in_bounds(kernel: Kernel, value: Expression, cells: Indices, *, is_open: bool) -> isl.Set:
    """``{ names of the cells }``: where all that a function of ``cells`` accesses is in bounds.

    Exact for affine subscripts and shapes; of others nothing is said. Where it ``is_open`` which
    cells are used, those of temporaries are left out that nothing ever writes.
    """
    integers = kernel.integers.union(*map(variable_names, cells))
    result = _sets.universe()
    bound = reduced_inames(value)
    terms = kernel.domain_of(bound) if bound else None
    for name, indices, guards in guarded_accesses(value):
        if indices and kernel.is_array(name):
            inside = inside_array(kernel.array(name).shape, indices)
            if is_open:
                inside = inside & where_written(kernel, name, indices)
            if guards:
                inside = inside | where_all_hold(guards, integers).complement()
            if terms is not None and not bound.isdisjoint(_sets.names_of(inside)):
                outside = _sets.project_out(terms & inside.complement(), sorted(bound))
                inside = outside.complement()
            result = result & inside
    return result


def where_written(kernel: Kernel, name: str, indices: Indices) -> isl.Set:
    """``{ names in indices, sizes }``: where a temporary's cell may ever be written."""
    held, writers = kernel.temporary_by_name.get(name), kernel.writers.get(name, ())
    if held is None or held.initializer is not None or not writers:
        return _sets.universe()
    model = model_of(kernel)
    cell = model.cell(name, indices, Instance(None, BASE))
    writing = (model.writing(Instance(w.id, OTHER), cell) for w in writers)
    found = reduce(isl.Set.union, writing)
    return _sets.project_out(found, labelled(_sets.names_of(found), OTHER))


def inside_array(shape: Sequence[Expression] | None, cells: Sequence[Expression]) -> isl.Set:
    """``{ names of the cells }``: where these are in an array, as far as that can be said."""
    if shape is None or len(shape) != len(cells):
        return _sets.universe()
    known = (pair for pair in zip(cells, shape, strict=True) if all(map(_sets.is_pw_affine, pair)))
    return _sets.intersection(inside(cell, extent) for cell, extent in known)


def limits_left(
    kernel: Kernel, value: Expression, where: isl.Set, positions: Iterable[str]
) -> Guards | None:
    """Conditions beyond ``where`` under which what an expression of ``positions`` reads is there.

    Of affine subscripts sets know all (:func:`where_in_bounds`).  None where data decide.
    """
    data = replace(data_of(kernel), integers=kernel.integers.union(positions))
    known = where, kernel.assertions
    found: list[Expression] = []
    accessed = [(n, i) for n, i, _ in guarded_accesses(value) if i and kernel.is_array(n)]
    pairs = (zip(i, kernel.array(n).shape or repeat(None), strict=False) for n, i in accessed)
    for index, extent in chain.from_iterable(pairs):
        by_data = any(map(kernel.is_array, variable_names(index)))
        if _sets.is_pw_affine(index) and not by_data:
            continue
        if extent is None:
            return None
        limits = prim.Comparison(index, ">=", 0), prim.Comparison(index, "<", extent)
        against = [(limit, [prim.LogicalNot(limit)]) for limit in limits]
        left = [limit for limit, no in against if not may_hold(*known, no, data).is_empty()]
        if left and by_data:
            return None
        found += left
    return tuple(found)


def are_beyond_sets(kernel: Kernel, uses: Iterable[Use]) -> bool:
    """Whether statements run under conditions of inames and sizes that no set holds."""
    guards = [p for use in uses for p in use.statement.predicates]
    return any(variable_names(p) <= kernel.integers and not _sets.is_condition(p) for p in guards)


def cells_to_fill(
    kernel: Kernel,
    uses: Sequence[Use],
    box: Sequence[Axis],
    names: Names,
    place: Place,
    value: Callable[[Indices], Expression] | None,
    *,
    whole_box: bool,
) -> tuple[isl.Set, Guards]:
    """The positions to move in a box, called ``names``, and conditions that no set holds.

    Without ``value`` exactly those that ``uses`` touch.  With it, what is to be in each cell, those
    around them where all that it accesses is in bounds.
    """
    positions = [names.get(axis) for axis in range(len(box))]
    used = partial(cells_in_use, kernel, uses, box, positions, place)
    if value is None:
        return used(exact=True), ()
    at = tuple(
        axis.lower.expression if name is None else axis.cell_at(name)
        for axis, name in zip(box, positions, strict=True)
    )
    held, is_open = value(at), whole_box or any(use.chosen for use in uses)
    there = where_in_bounds(kernel, held, at, is_open=is_open)
    cells = used(whole_box=whole_box) & there
    around = cells & kernel.domain_around(place.inames) & kernel.assumptions.set
    left = partial(limits_left, kernel, held, positions=names.values())
    if left(around) == ():
        return cells, ()
    cells = used(exact=True, whole_box=whole_box) & there
    return cells, (left(around & cells) or ()) if are_beyond_sets(kernel, uses) else ()
