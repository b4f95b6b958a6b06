"""Proof of a step on equivalent kernels, if the kernels as written leave it undecided."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace
from typing import TYPE_CHECKING

import pymbolic.primitives as prim

from loopkit._check.compare_statements import ANYTHING
from loopkit._check.instance_maps import Lineage, descend, lineage_of, own_lineage
from loopkit._hidden import hidden
from loopkit._poly.dataflow import Dataflow, dataflow_of
from loopkit._poly.model import Model, model_of
from loopkit._poly.rows import kernels_in_rows

if TYPE_CHECKING:
    from loopkit._change import Change
    from loopkit._kernel import Kernel, Statement


def retold(before: Kernel, change: Change) -> Iterator[tuple[Kernel, Change]]:
    """The same step on equivalent kernels that are written differently.

    The step is legal if it is for one of these. Flat arrays become arrays of rows, or writes under
    conditions on data become writes that otherwise store the old value of the cell.
    """
    if change.parts or change.claim is not None or change.arguments is not None:
        return
    lineage = lineage_of(before)
    kernels = lineage.root, before, change.kernel
    tellings = [None if change.fixed else kernels_in_rows(kernels, dict(lineage.fixed))]
    after = descend(lineage, before, change)
    if out := _left_out(after, model_of(change.kernel)):
        root = _keeping(lineage.root, own_lineage(lineage.root), out, dataflow_of(lineage.root))
        tellings.append([root, _keeping(before, lineage, out), _keeping(change.kernel, after, out)])
    for told in tellings:
        if told is not None:
            root, old, new = told
            old = old.recorded(old.history, replace(lineage, root=root))
            yield old, replace(change, kernel=new, wishes=())


def _left_out(lineage: Lineage, new: Model) -> set[tuple[str, int]]:
    """Conditions on data that are rewritten: the statement of the text, and the condition's
    number.

    They guard writes to arrays that are copied whether or not the conditions hold.
    """
    moves = [s for s in new.kernel.statements if s.id not in lineage.image_of]
    return {
        (image.origin, number)
        for image in lineage.images
        for number, condition in enumerate(new.conditions_on_data(new.statement[image.statement]))
        for move in moves
        if new.statement[image.statement].written in move.names and condition not in move.predicates
    }


def _keeping(
    kernel: Kernel, lineage: Lineage, left: Set[tuple[str, int]], flow: Dataflow | None = None
) -> Kernel:
    """A kernel without the conditions ``left``: writes store the old value where these are false.

    Updates then add the neutral element. In a text with a ``flow``, writes that nobody sees where
    the condition is false may store anything.
    """
    model = model_of(kernel)

    def kept(statement: Statement) -> Statement:
        image, by_data = lineage.image_of.get(statement.id), model.conditions_on_data(statement)
        gone = [p for n, p in enumerate(by_data) if image and (image.origin, n) in left]
        if not gone or model.cells_by_data(statement):
            return statement
        other = statement.lhs if statement.operation is None else _NOTHING
        if flow is not None and flow.is_replacing(statement.id):
            other = ANYTHING
        value = prim.If(prim.LogicalAnd(tuple(gone)), statement.rhs, other)
        rest = tuple(p for p in statement.predicates if p not in gone)
        return replace(statement, rhs=value, predicates=rest)

    return kernel.with_(statements=tuple(map(kept, model.kernel.statements)))


_NOTHING = prim.Variable(hidden("nothing"))
"""What an update adds that changes nothing."""
