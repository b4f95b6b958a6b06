"""The correspondence of two kernels whose statements have the same ids.

This is the usual case of two schedules of one text, or of steps taken apart. If it is right, no
search is needed, however many statements lie between inputs and outputs. If one kernel may be the
result of a step on the other, it is enough to check that step (:mod:`loopkit._check.step_proof`),
without following values, even where they depend on data.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import islpy as isl

from loopkit import _sets
from loopkit._change import Change, InstanceMap
from loopkit._check.checker import obligations_of
from loopkit._check.instance_maps import Lineage
from loopkit._collectives import combined_axes
from loopkit._expression import variable_names
from loopkit._hidden import NEW, OLD, variable
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._places import shared_storage
from loopkit._poly.model import model_of
from loopkit._poly.pairs import equal
from loopkit._verify.search_state import SearchContext
from loopkit._verify.solve_images import Pair, by_name, in_one_place

Values = Mapping[str, Expression]


def by_names(context: SearchContext, root: Kernel) -> Lineage | None:
    """The correspondence of statements with equal ids; None if some statement has no partner.

    The new kernel may have additional copying statements. The relation of inames follows from the
    cells that a statement accesses, else from those of other statements, else from names.
    """
    olds, pairs = context.root.model.statement, []
    for statement in context.new.kernel.statements:
        if statement.id in olds:
            if not context.may_be_pair(olds[statement.id], statement):
                return None
            both = context.both(statement.id, statement.id)
            pair = Pair(context, statement, statement.id, both)
            pairs.append(replace(pair, where=in_one_place(pair)))
    if len(pairs) != len(olds):
        return None
    told: dict[str, Expression] = {}
    for pair in pairs:
        image, free = pair.image()
        if image is not None:
            told = {i: v for i, v in image.values if i not in free} | told
    found = []
    for open_ in pairs:
        pair = _narrowed(open_, told)
        image, _ = pair.image()
        if image is None:
            return None
        # Equal values get one spelling.
        values = {i: told[i] if _is_always(pair, i, told) else v for i, v in image.values}
        told = values | told
        found.append(replace(image, values=tuple(values.items())))
    return Lineage(root, tuple(found))


def _narrowed(pair: Pair, told: Values) -> Pair:
    """A pair whose open inames get values from other statements, or from equal names."""
    _, free = pair.image()
    for iname in free:
        same = pair.where & (_where_told(pair, iname, told) or pair.where)
        pair = pair if same.is_empty() else replace(pair, where=same)
    if free:
        _, free = pair.image()
    with suppress(_sets.UnboundedError):
        return replace(pair, where=by_name(pair, free))
    return pair


def _where_told(pair: Pair, iname: str, told: Values) -> isl.Set | None:
    """Where an iname of the origin has the given value; None if it is none of these inames."""
    value = told.get(iname)
    known = {*pair.statement.inames, *pair.context.sizes}
    if value is None or not variable_names(value) <= known:
        return None
    return equal(variable(iname, OLD), pair.context.new.model.named(value, NEW))


def _is_always(pair: Pair, iname: str, told: Values) -> bool:
    """Whether an iname of the origin can have no other than the given value."""
    where = _where_told(pair, iname, told)
    return where is not None and bool(pair.where.is_subset(where))


def may_be_step(root: Kernel, new: Kernel) -> bool:
    """Whether two kernels have the same statements, by name and order, and the same temporaries."""
    ids = [[s.id for s in kernel.statements] for kernel in (root, new)]
    return ids[0] == ids[1] and root.temporaries == new.temporaries


def is_step(lineage: Lineage, new: Kernel) -> bool:
    """Whether ``new`` computes what the root of a correspondence does, as the result of a step."""
    if lineage.fixed or any(map(lineage.every, lineage.images)) or shared_storage(new):
        return False
    if combined_axes(model_of(new).kernel):
        return False  # who comes to where threads combine is asked elsewhere
    maps = tuple(InstanceMap(i.statement, i.origin, i.value_of) for i in lineage.images)
    found = obligations_of(lineage.root, Change(new, maps), lineage)
    return found is not None and found.is_empty
