"""The proof of a step over kernels that mean the same, where those as written leave it open."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pymbolic.primitives as prim

from loopkit._check.instance_maps import Lineage, descend, lineage_of, own_lineage
from loopkit._collectives import combined_axes
from loopkit._expression import variable_names
from loopkit._poly.dataflow import dataflow_of
from loopkit._poly.model import model_of
from loopkit._poly.rows import kernels_in_rows

if TYPE_CHECKING:
    from loopkit._change import Change
    from loopkit._kernel import Kernel, Statement


def retold(before: Kernel, change: Change) -> Iterator[tuple[Kernel, Change]]:
    """The same step of kernels that are written in another way.

    It is legal if one of these is.  They have arrays of rows in place of flat ones, or writes
    that keep what a cell holds in place of those that data leave out.
    """
    if change.parts or change.claim is not None or change.arguments is not None:
        return
    lineage = lineage_of(before)
    kernels = lineage.root, before, change.kernel
    tellings = [None if change.fixed else kernels_in_rows(kernels, dict(lineage.fixed))]
    # Where threads combine, a condition may keep some of them away: that is asked as it is written.
    if (arrays := _kept_in(lineage.root)) and not combined_axes(change.kernel):
        texts = own_lineage(lineage.root), lineage, descend(lineage, before, change)
        tellings.append([_keeping(k, t, arrays) for k, t in zip(kernels, texts, strict=True)])
    for told in tellings:
        if told is not None:
            root, old, new = told
            old = old.recorded(old.history, replace(lineage, root=root))
            yield old, replace(change, kernel=new, wishes=())


def _kept_in(text: Kernel) -> frozenset[str]:
    """The arrays of which :func:`_keeping` keeps values that the text has written, or was given."""
    told = _keeping(text, own_lineage(text), text.writers)
    both = zip(told.statements, text.statements, strict=True)
    kept = [one for one, other in both if one is not other]
    flow, temporaries = dataflow_of(told), text.temporary_by_name
    inside = [s for s in kept if s.written in temporaries]
    lacking = {s.written for s in inside if not flow.of_read(s.id, s.write).untouched.is_empty()}
    return frozenset(s.written for s in kept) - lacking


def _keeping(kernel: Kernel, lineage: Lineage, arrays: Container[str]) -> Kernel:
    """A kernel whose writes under conditions on data store what is there if these do not hold.

    Those of statements that write some ``arrays`` in the text.
    """
    text = lineage.root.statement_by_id

    def kept(statement: Statement) -> Statement:
        by_data = [p for p in statement.predicates if not variable_names(p) <= kernel.integers]
        is_sum = statement.operation is not None or statement.kind == "init"
        image = lineage.image_of.get(statement.id)
        is_of_these = image is not None and text[image.origin].written in arrays
        if is_sum or not (by_data and is_of_these) or model_of(kernel).cells_by_data(statement):
            return statement
        value = prim.If(prim.LogicalAnd(tuple(by_data)), statement.rhs, statement.lhs)
        rest = tuple(p for p in statement.predicates if p not in by_data)
        return replace(statement, rhs=value, predicates=rest)

    return kernel.with_(statements=tuple(map(kept, kernel.statements)))
