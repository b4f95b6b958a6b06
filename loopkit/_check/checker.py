"""The check of every step: does the new kernel still compute what the text says?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING

import islpy as isl

from loopkit import _budget
from loopkit._budget import SpentError, turn, within
from loopkit._change import Factored
from loopkit._check.instance_maps import Lineage, descend, lineage_of, own_lineage
from loopkit._check.kept_declarations import broken_declaration, broken_structure, moved_cell
from loopkit._check.step_proof import ALL_TOUCHED, NOTHING, Obligations, StepProof
from loopkit._check.violation import Aim, Violation
from loopkit._collectives import combined_axes
from loopkit._combined import with_combinations
from loopkit._deal_out import check_waiting
from loopkit._errors import IllegalTransformError, UndecidedError
from loopkit._places import shared_storage
from loopkit._poly.pairs import Undecided

if TYPE_CHECKING:
    from loopkit._change import Change, Renumbered
    from loopkit._kernel import Kernel


def check_change(
    before: Kernel,
    change: Change,
    suggest: Callable[[Callable[[], Sequence[Violation]]], Sequence[str]] | None = None,
) -> Lineage:
    """Prove that a changed kernel computes what the text says; returns its lineage.

    Raises :class:`~loopkit.IllegalTransformError` with a witness if it does not, and
    :class:`~loopkit.UndecidedError` if that is open. ``suggest`` proposes legal alternatives.

    The kind of error follows from the first violation that is certain. Further violations of that
    kind, and the smallest case, are computed when the error's message is read.
    """
    if change.parts:
        for part in change.parts:
            lineage = check_change(before, part, suggest)
            before = part.kernel.recorded(part.kernel.history, lineage)
        return lineage
    try:
        lineage, found = examine(before, change, aim=Aim.DECIDE)
    except UndecidedError:
        if not _holds_retold(before, change):
            raise
        return descend(lineage_of(before), before, change)
    if found and _holds_retold(before, change):
        return lineage
    if found:
        # Most steps are legal, and need no report.
        from loopkit._check.replay import Replay, reproduced
        from loopkit._check.violation_report import refusal

        every = cache(partial(_every, before, change, found))
        replay = Replay(lineage, change.kernel)
        error = refusal(reproduced(replay, found, every), every, replay)
        error.refuse(lineage, change.kernel)
        if suggest is not None:
            error.suggest(suggest(every))
        raise error
    return lineage


def _holds_retold(before: Kernel, change: Change) -> bool:
    """Whether an undecided step is proven for equivalent kernels that are written differently."""
    from loopkit._check.retold import retold

    with suppress(IllegalTransformError, UndecidedError, Undecided, SpentError, isl.Error):
        # A condition may keep some threads away from where they meet: that is asked as written.
        if _parted(descend(lineage_of(before), before, change), change.kernel):
            return False
        for told in within(_budget.CHANGE, lambda: list(retold(before, change))):
            with suppress(IllegalTransformError, UndecidedError):
                if not examine(*told, aim=Aim.DECIDE)[1]:
                    return True
    return False


def _every(before: Kernel, change: Change, known: Sequence[Violation]) -> Sequence[Violation]:
    """All violations of a change for which some are known."""
    with turn():
        try:
            return examine(before, change)[1] or known
        except UndecidedError:
            return known


def examine(
    before: Kernel, change: Change, budget: int | None = None, aim: Aim = Aim.TELL
) -> tuple[Lineage, list[Violation]]:
    """The lineage of a changed kernel, and what is wrong with it; no message is made.

    Raises :class:`~loopkit.IllegalTransformError` where a declaration changed, or the
    tree and the statements do not fit each other, and :class:`~loopkit.UndecidedError`
    where isl does not answer within ``budget`` operations, or a question has no
    violation and no answer.
    """
    for part in change.parts:
        lineage, found = examine(before, part, budget, aim)
        if found or part is change.parts[-1]:
            return lineage, found
        before = part.kernel.recorded(part.kernel.history, lineage)
    if change.arguments is not None:
        from loopkit._check.argument_names import descend_with_names

        return descend_with_names(lineage_of(before), before, change), []
    broken = broken_structure(change.kernel)
    if change.claim is None:
        broken = broken_declaration(before, change) or broken
    if broken:
        raise IllegalTransformError(broken, witness=moved_cell(before, change.kernel))
    with_combinations(change.kernel)  # there is a place for each
    check_waiting(change.kernel)  # there are threads or loops
    allowed = budget
    if allowed is None:
        allowed = _budget.for_statements(_budget.STEP, len(change.kernel.statements))
    without = "unchecked=True skips the proof, and shows in the history"
    try:
        if change.claim is not None:
            within(allowed, partial(_read_back, before, change.kernel, change.claim))
            return own_lineage(change.kernel), []
        return within(allowed, partial(_examined, before, change, aim))
    except Undecided as open_:
        raise UndecidedError(open_.why, instead=open_.instead) from None
    except SpentError:
        why = f"isl did not decide whether this is legal within {allowed:,} operations"
        raise UndecidedError(why, instead=without) from None
    except isl.Error as error:
        raise UndecidedError(f"isl gave up: {error}", instead=without) from None


def _read_back(before: Kernel, after: Kernel, claim: Renumbered | Factored) -> None:
    """Raise if a step differs from what it claims to do."""
    from loopkit._check.read_back import not_factored, not_renumbered

    if isinstance(claim, Factored):
        if why := not_factored(before, after, claim):
            raise IllegalTransformError(f"no factor can leave '{claim.name}': {why}")
    elif why := not_renumbered(before, after, claim):
        raise IllegalTransformError(f"the loops cannot be counted in another way: {why}")


def _examined(before: Kernel, change: Change, aim: Aim) -> tuple[Lineage, list[Violation]]:
    known = lineage_of(before)
    lineage = descend(known, before, change)
    if apart := _parted(lineage, change.kernel):
        return lineage, apart
    obligations = obligations_of(before, change, lineage)
    if obligations is not None and obligations.is_empty and not shared_storage(change.kernel):
        return lineage, []
    from loopkit._check import schedule_proof as whole

    if obligations is not None:
        return lineage, whole.check_obligations(lineage, change.kernel, obligations, aim)
    # If one instance executes several, they are compared with the text, not the last step.
    last_step = None if change.merges else whole.last_step(before, change, aim)
    untouched = ALL_TOUCHED
    with suppress(Undecided):
        untouched = StepProof(before, change, lineage).untouched()
    return lineage, whole.violations_of(lineage, change.kernel, aim, last_step, untouched)


def _parted(lineage: Lineage, kernel: Kernel) -> list[Violation]:
    """Violations: threads that must combine or scan together but may not all arrive."""
    if not combined_axes(kernel):
        return []
    from loopkit._check.meeting_check import crossed_scans, missed_meetings

    return [*missed_meetings(lineage, kernel)] or crossed_scans(lineage, kernel)


def obligations_of(before: Kernel, change: Change, lineage: Lineage) -> Obligations | None:
    """What remains to be proven of a step from a proven kernel; None if it is everything."""
    try:
        step = StepProof(before, change, lineage)
        found = step.obligations()
        if found is None and step.may_be_in_pieces():
            from loopkit._check.step_pieces import Pieces

            found = NOTHING if Pieces(step).keep_all() else None
        return found
    except Undecided:
        return None
