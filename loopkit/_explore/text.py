"""An explorer as text, for terminals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from loopkit._display.style import ROLES
from loopkit._explore.outcome import Failure, Outcome
from loopkit._explore.panes import milliseconds
from loopkit._explore.table import verdict

if TYPE_CHECKING:
    from loopkit._explore.explorer import Explorer


def as_text(explorer: Explorer, outcome: Outcome) -> str:
    """The choice and what else there is, the nest or the refusal, proof, costs and time."""
    return "\n".join(_lines(explorer, outcome))


def _lines(explorer: Explorer, outcome: Outcome) -> Iterator[str]:
    for control, position in zip(explorer.controls, explorer.positions, strict=True):
        yield f"{control.name} = {control.label(position)}   of {control.words()}"
    role, words = verdict(outcome)
    told = f"{ROLES[role].mark} {words}, " if words else ""
    yield f"{told}made in {milliseconds(outcome.seconds)}"
    if outcome.printed.strip():
        yield from ("", "the function printed:", outcome.printed.rstrip())
    if outcome.kernel is not None:
        yield from ("", str(outcome.kernel))
    if outcome.failure is not None:
        yield from ("", *_failure(outcome.failure))
    if isinstance(outcome.source, Failure):
        yield from ("", *_failure(outcome.source))
    for found in (outcome.proof, outcome.costs, outcome.measurement):
        if isinstance(found, Failure):
            yield from ("", *_failure(found))
        elif found is not None:
            yield from ("", str(found))


def _failure(failure: Failure) -> Iterator[str]:
    if failure.at:
        yield failure.at
    if failure.picture is None:
        yield failure.said if failure.is_refusal else f"the function failed: {failure.said}"
        return
    # The picture says the rest of the message.
    yield getattr(failure.error, "asked", "")
    yield str(failure.picture)
    yield from failure.remedies
