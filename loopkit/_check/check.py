"""The check that every transform goes through: is the new kernel still the text's?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import islpy as isl

from loopkit._check.align import Aligner
from loopkit._check.flow import Flow
from loopkit._check.instances import check_instances
from loopkit._check.lineage import Lineage, descend, origin
from loopkit._check.model import Model
from loopkit._check.report import error_for
from loopkit._check.sources import TextOrder
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
        check(lineage, change.kernel)
    except Violation as violation:
        isl.DEFAULT_CONTEXT.set_max_operations(0)
        raise error_for(violation, text_of(lineage.root).model, Model(change.kernel)) from None
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
    return lineage


def check(lineage: Lineage, kernel: Kernel) -> None:
    """Prove that ``kernel`` computes what the root of its lineage says."""
    text = text_of(lineage.root)
    flow = Flow(text.model, text.order, Model(kernel), lineage)
    aligner = Aligner(flow)
    for statement in text.model.kernel.statements:
        check_instances(flow, statement.id)
    for image in lineage.images:
        aligner.statement(image)
    temporaries = text.model.kernel.temporary_by_name
    for array in text.model.kernel.writers:
        if array not in temporaries:
            aligner.ends(array)
        elif aligner.order.is_inexact(array):
            aligner.order.writes(array)
