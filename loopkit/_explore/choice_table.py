"""A table of all choices evaluated so far."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from loopkit._costs.costs import Costs
from loopkit._costs.texts import bytes_text, lines_of, number_text, seconds_text
from loopkit._display.markup import Part, inline, marked, output, table
from loopkit._display.style import role_of
from loopkit._errors import LoopkitError
from loopkit._explore.controls import label
from loopkit._explore.outcome import Failure, Outcome
from loopkit._frozen import dataclass
from loopkit._history_costs import StepCosts
from loopkit._printed import Printed

_NUMBERS = ("blocks x threads", "bytes moved", "wavefronts", "shared", "at least", "measured")


@dataclass(frozen=True)
class Tried(Printed):
    """A table of results, in the order in which the choices were made.

    ``current`` is the place of the one that is chosen, ``forgotten`` counts older ones.
    """

    outcomes: tuple[Outcome, ...]
    current: int | None = None
    forgotten: int = 0

    def rows(self) -> list[tuple[str, ...]]:
        """A row of text for each outcome, under :meth:`columns`."""
        return [
            ("▸" if place == self.current else "", *_choice(one), verdict(one)[1], *_numbers(one))
            for place, one in enumerate(self.outcomes)
        ]

    def columns(self) -> tuple[str, ...]:
        """The heads of the columns: each argument of the function has one."""
        names = [name for name, _ in self.outcomes[0].choice] if self.outcomes else []
        return "", *names, "verdict", *_NUMBERS

    def _shown(self) -> tuple[tuple[str, ...], list[tuple[str, ...]], int]:
        """Columns that hold something, their rows, and how many of them are names."""
        columns, rows = self.columns(), self.rows()
        names = len(columns) - len(_NUMBERS)
        full = [n for n in range(len(columns)) if n < names or any(row[n] for row in rows)]
        return (
            tuple(columns[n] for n in full),
            [tuple(row[n] for n in full) for row in rows],
            names,
        )

    def __str__(self) -> str:
        columns, rows, names = self._shown()
        return "\n".join([*lines_of([columns, *rows], names), *self._more()])

    def _more(self) -> list[str]:
        return [f"{self.forgotten} older ones are forgotten"] if self.forgotten else []

    def output(self) -> Element:
        """The table as a notebook shows it."""
        columns, rows, names = self._shown()
        cells: list[list[Part]] = [list(row) for row in rows]
        for row, one in zip(cells, self.outcomes, strict=True):
            role, words = verdict(one)
            row[names - 1] = marked(role, words) if words else ""
        found = table(columns, cells, numbers=range(names, len(columns)))
        return output(found, [inline("comment", text) for text in self._more()])

    _html = output


def _choice(outcome: Outcome) -> tuple[str, ...]:
    return tuple(label(value) for _, value in outcome.choice)


def verdict(outcome: Outcome) -> tuple[str, str]:
    """The role and the words of what is known of an outcome: how its steps and its proof went."""
    for failure in (outcome.failure, outcome.source):
        if isinstance(failure, Failure):
            return failure.role, failure.kind
    if outcome.kernel is None:
        return "comment", ""
    role = role_of({step.verdict for step in outcome.kernel.history})
    proof = outcome.proof
    if isinstance(proof, Failure):
        return "undecided", f"the source: {proof.kind}"
    if proof is not None and not proof.ok:
        return ("refused", "the source is wrong") if proof.refuted else (
            "undecided", "the source is not proven"
        )  # fmt: skip
    if role == "refused":
        return role, "not all steps checked"
    words = "steps and source proven" if proof is not None else "steps proven"
    return role, words + ", with assumptions" * (role == "undecided")


def figures(outcome: Outcome) -> dict[str, tuple[float | None, str]]:
    """The numbers of an outcome, each with its text; what is not known is left out."""
    costs, found = outcome.costs, dict[str, tuple[float | None, str]]()
    if isinstance(costs, Costs):
        known = StepCosts(None, costs)
        found["blocks x threads"] = None, costs.grids
        if known.moved is not None:
            found["bytes moved"] = known.moved, bytes_text(known.moved)
        if known.wavefronts:
            found["wavefronts"] = known.wavefronts, number_text(known.wavefronts)
        if costs.shared_bytes:
            found["shared"] = costs.shared_bytes, bytes_text(costs.shared_bytes)
        if costs.asked is not None:
            try:
                bound = costs.roofline
            except LoopkitError:
                pass
            else:
                found["at least"] = bound.seconds, seconds_text(bound.seconds)
    if outcome.measurement is not None and not isinstance(outcome.measurement, Failure):
        seconds = outcome.measurement.seconds
        found["measured"] = seconds, seconds_text(seconds)
    return found


def _numbers(outcome: Outcome) -> tuple[str, ...]:
    known = figures(outcome)
    return tuple(known[name][1] if name in known else "" for name in _NUMBERS)
