"""The check that every transform goes through: is the new kernel still the text's?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import islpy as isl

from loopkit._check.align import Aligner
from loopkit._check.bounds import check_bounds
from loopkit._check.flow import Flow
from loopkit._check.instances import check_instances
from loopkit._check.lineage import Lineage, descend, origin
from loopkit._check.model import Model
from loopkit._check.races import check_races
from loopkit._check.report import error_for
from loopkit._check.sources import TextOrder
from loopkit._check.storage import check_storage
from loopkit._check.violation import Undecided, Violation
from loopkit._errors import UndecidedError

if TYPE_CHECKING:
    from loopkit._kernel import Kernel
    from loopkit._transform import Change


@dataclass(frozen=True, eq=False)
class Text:
    """The kernel that says what is meant, prepared for questions."""

    model: Model
    order: TextOrder


def text_of(kernel: Kernel) -> Text:
    """The prepared form of a root kernel (memoised on it)."""
    found = kernel.__dict__.get("_checked_text")
    if found is None:
        model = Model(kernel)
        found = kernel.__dict__["_checked_text"] = Text(model, TextOrder(model))
    return found


def lineage_of(kernel: Kernel) -> Lineage:
    """Where a kernel comes from; a kernel without history is its own text."""
    return kernel.lineage if kernel.lineage is not None else origin(kernel)


BUDGET = 20_000_000
"""Operations that isl may spend on one step, about ten seconds."""


def check_change(before: Kernel, change: Change) -> Lineage:
    """Prove that a changed kernel computes what the text says; returns its lineage.

    Raises :class:`~loopkit.IllegalTransformError` with a witness where it does
    not, :class:`~loopkit.UndecidedError` where that is open.
    """
    lineage = descend(
        before, lineage_of(before), change.kernel, change.instances, change.moves, change.fixed
    )
    isl.DEFAULT_CONTEXT.reset_operations()
    isl.DEFAULT_CONTEXT.set_max_operations(BUDGET)
    try:
        found = check(lineage, change.kernel)
    except Undecided as open_:
        raise UndecidedError(open_.why, instead=open_.instead) from None
    except isl.Error as error:
        if "operations exceeded" not in str(error):
            raise
        raise UndecidedError(
            f"isl did not decide whether this is legal within {BUDGET:,} operations",
            instead="unchecked=True skips the proof, and shows in the history",
        ) from None
    finally:
        isl.DEFAULT_CONTEXT.set_max_operations(0)
    if found:
        raise error_for(found, text_of(lineage.root).model, Model(change.kernel))
    return lineage


def check(lineage: Lineage, kernel: Kernel) -> list[Violation]:
    """What is wrong with ``kernel`` as a schedule of the root of its lineage.

    Raises :class:`Undecided` where nothing is wrong that is known, and a
    question remains open.
    """
    text = text_of(lineage.root)
    flow = Flow(text.model, text.order, Model(kernel), lineage)
    aligner = Aligner(flow)
    open_: Undecided | None = None
    for question in questions(aligner):
        try:
            question()
        except Undecided as undecided:
            open_ = open_ or undecided
        if len(flow.found) >= ENOUGH:
            break
    if open_ is not None and not flow.found:
        raise open_
    return flow.found


ENOUGH = 40
"""As many violations are gathered at most before the smallest is told."""


def questions(aligner: Aligner) -> Iterator[Callable[[], None]]:
    """All that is asked of a schedule, one question after the other."""
    flow = aligner.flow
    for data in (*flow.new.kernel.args, *flow.new.kernel.temporaries):
        yield partial(check_storage, flow, data.name)
    for statement in flow.root.kernel.statements:
        yield partial(check_instances, flow, statement.id)
    for statement in flow.new.kernel.statements:
        yield partial(check_bounds, flow, statement.id)
    for array in flow.new.kernel.writers:
        yield partial(check_races, flow, array)
    for image in flow.lineage.images:
        yield partial(aligner.statement, image)
    temporaries = flow.root.kernel.temporary_by_name
    for array in flow.root.kernel.writers:
        if array not in temporaries:
            yield partial(aligner.ends, array)
        elif aligner.order.is_inexact(array):
            yield partial(aligner.order.writes, array)
