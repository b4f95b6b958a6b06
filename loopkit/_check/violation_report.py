"""Violations as messages that teach: what goes wrong, in which case, and what would help."""

from __future__ import annotations

from collections.abc import Sequence

from loopkit import _budget
from loopkit._budget import SpentError, apart_from_kept
from loopkit._check.violation import Violation
from loopkit._check.witness import Actor, Case, smallest_case
from loopkit._errors import (
    IllegalTransformError,
    Instance,
    OutOfBoundsError,
    RaceError,
    UndecidedError,
    Witness,
    WitnessError,
)
from loopkit._expression import to_text
from loopkit._kernel import Statement
from loopkit._poly.model import Model
from loopkit._poly.smallest_case import cell_text

Row = tuple[str, str]

_SENTENCES = {
    "updates": "{other} and {sink} would both add to {cell} at the same time",
    "dropped": "{sink} would not be executed",
    "extra": "{sink} would be executed, which is no instance of the kernel",
    "repeated": "{sink} would be executed more than once",
    "bounds": "{sink} would access {cell}, {detail}",
}


def error_for(violations: Sequence[Violation], root: Model, new: Model) -> WitnessError:
    """The error for the smallest case of all that was found, with that as the witness.

    What is certain comes before what only some data bring about.
    """
    certain = [v for v in violations if v.exact] or violations
    cases: list[tuple[Violation, Case]] = []
    try:
        with apart_from_kept(_budget.REFUSAL):
            for one in certain:
                cases.append((one, smallest_case(one, one.text or root, new)))
    except SpentError:
        pass
    if not cases:
        return _without_case(certain[0])
    violation, case = min(cases, key=_preference)
    words = _Words(violation, case, violation.text or root, new)
    rows = words.rows()
    width = max((len(name) for name, _ in rows), default=0) + 1
    lines = (f"  {name + ':':<{width}} {text}" for name, text in rows)
    why = "\n".join([words.headline(), *lines])
    numbers = [i for i in words.indices if isinstance(i, int)]
    witness = Witness(
        kind=words.kind(),
        array=words.array,
        cell=tuple(numbers) if len(numbers) == len(words.indices) else None,
        source=words.first(),
        sink=case.sink.instance,
        parameters=dict(case.sizes),
    )
    if not violation.exact:
        return UndecidedError(why, witness=witness, instead=words.assertion())
    kinds: dict[str, type[WitnessError]] = {"race": RaceError, "bounds": OutOfBoundsError}
    return kinds.get(witness.kind, IllegalTransformError)(why, witness=witness)


def _without_case(violation: Violation) -> WitnessError:
    """The error where a case is known to exist, but none was written out in time."""
    names = dict.fromkeys(
        side.origin or (side.at.statement if side.at is not None else None)
        for side in (violation.source, violation.other, violation.sink)
        if side is not None
    )
    which = " and ".join(f"'{n}'" for n in names if n is not None)
    about = f" on '{violation.array}'" if violation.array else ""
    why = f"{which} would not do what the text says{about} ({violation.kind})"
    kind: type[WitnessError] = IllegalTransformError if violation.exact else UndecidedError
    return kind(why + f"; isl found no example of it within {_budget.REFUSAL:,} operations")


def _preference(pair: tuple[Violation, Case]) -> tuple[bool, tuple[int, ...]]:
    """What is told first: an order that is broken, then what follows from it; small cases first."""
    violation, case = pair
    return violation.detail == "stale" or violation.kind == "expression", case.rank


class _Words:
    """The sentences of one message."""

    def __init__(self, violation: Violation, case: Case, root: Model, new: Model) -> None:
        self.violation = violation
        self.case = case
        self.root = root
        self.new = new
        self.sink = case.sink
        meant = violation.meant
        self.array = violation.array if meant is None else meant[0]
        self.indices = case.cell if meant is None else case.meant
        self.cell = cell_text(self.array or "", self.indices)
        self.unordered = violation.how in ("together", "blocks")

    def kind(self) -> str:
        """The witness's kind."""
        kind = self.violation.kind
        ordered = kind not in ("order", "overwritten", "rewritten", "updates")
        return kind if ordered or not self.unordered else "race"

    def first(self) -> Instance | None:
        """The instance that comes first in the text, or that writes."""
        case, kind = self.case, self.violation.kind
        if kind in ("overwritten", "updates"):
            return case.other.instance if case.other else None
        return case.source.instance if case.source else None

    def headline(self) -> str:
        """What is wrong, in one sentence."""
        kind, detail = self.violation.kind, self.violation.detail
        if kind in _SENTENCES:
            actors = {"sink": self.sink, "other": self.case.other}
            return _SENTENCES[kind].format(cell=self.cell, detail=detail, **actors)
        return getattr(self, f"_say_{kind}")()  # type: ignore[no-any-return]

    def _may(self) -> str:
        return "would" if self.violation.exact else "might"

    def _say_order(self) -> str:
        source = self.case.source
        if self.sink.place is None:
            return f"what {source} leaves in {self.cell} {self._may()} not be there at the end"
        if self.unordered:
            return self._meeting(source)
        return f"{self.sink} {self._may()} read {self.cell} before {source} has written it"

    def _meeting(self, writer: Actor | None) -> str:
        reads, writes = "reads", "writes"
        if not self.violation.exact:
            reads, writes = "may read", "may write"
        cell = self.cell
        return f"{self.sink} {reads} {cell}, which {writer} {writes}, and nothing orders the two"

    def _say_overwritten(self) -> str:
        other = self.case.other
        if self.sink.place is None:
            return f"{other} {self._may()} overwrite {self.cell}, where {self.sink} writes last"
        if self.unordered:
            return self._meeting(other)
        if self.violation.detail == "stale":
            return f"{self.sink} {self._may()} read from {self.cell} what {other} wrote"
        return f"{other} {self._may()} overwrite {self.cell} before {self.sink} has read it"

    def _say_rewritten(self) -> str:
        source = self.case.source
        if self.unordered:
            both = "both write" if self.violation.exact else "may both write"
            return f"{source} and {self.sink} {both} {self.cell}, and nothing orders the two"
        return f"{source} and {self.sink} {self._may()} write {self.cell} in another order"

    def _say_place(self) -> str:
        source = self.case.source
        owner = self._owner()
        if owner and self.case.written == self.case.cell:
            array = self.violation.array
            return (
                f"{self.sink} would not see what {source} writes to '{array}': "
                f"each {owner} has its own '{array}'"
            )
        if self.sink.place is None:
            return f"what {source} leaves in {self.cell} would end up in another cell"
        return f"{self.sink} would look for the value of {source} in the wrong cell"

    def _owner(self) -> str:
        """What has a copy of the array of its own."""
        axes = self.new.copy_axes(self.violation.array or "")
        if not axes:
            return ""
        copies = [str(axis[1]) for axis in axes if axis[0] == "ilp"]
        if copies and not any(axis[0] == "l" for axis in axes):
            return f"value of '{copies[0]}' (tagged ilp)"
        return "thread" if any(axis[0] == "l" for axis in axes) else "block"

    def _say_missing(self) -> str:
        cell = cell_text(self.violation.array or "", self.case.cell)
        if self.sink.place is None:
            return f"what {self.sink} leaves in {self.cell} would not be there at the end"
        if self.case.source is not None:
            return f"{self.sink} would not find what {self.case.source} writes in {cell}"
        return f"{self.sink} would read {cell}, which nothing has written for it"

    def _say_expression(self) -> str:
        detail = f": {self.violation.detail}" if self.violation.detail else ""
        return f"{self.sink} would compute something else{detail}"

    def _say_overlap(self) -> str:
        array = self.violation.array or ""
        one, two = cell_text(array, self.case.cell), cell_text(array, self.case.written)
        return f"{one} and {two} would lie in the same place"

    def rows(self) -> list[Row]:
        """The order in the text, that of the schedule, the sizes, and the statements."""
        rows = [
            ("in the text", self._in_the_text()),
            ("scheduled", self._scheduled()),
            ("for example", ", ".join(f"{n} = {v}" for n, v in self.case.sizes.items())),
        ]
        return [row for row in rows if row[1]] + self._statements()

    def _in_the_text(self) -> str:
        kind, cell, sink = self.violation.kind, self.cell, self.sink
        source, other = self.case.source, self.case.other
        if kind == "overwritten" and self.violation.sink.origin is None:
            # What only carries data is not in the text.
            return ""
        if kind in ("order", "place", "missing") and source is not None:
            then = f"{sink} reads it" if sink.place else "nothing changes it"
            return f"{source} writes {cell}, then {then}"
        if kind == "overwritten" and other is not None:
            if sink.place is None:
                return f"{other} writes {cell}, later {sink} does"
            if self.violation.detail == "stale":
                return f"{other} writes {cell}; what {sink} reads there is written later"
            return f"{sink} reads {cell}, then {other} writes it"
        if kind == "rewritten" and source is not None and not self.unordered:
            return f"{source} writes {cell}, then {sink} does"
        return ""

    def _scheduled(self) -> str:
        kind, sink = self.violation.kind, self.sink
        if kind == "place" and self.case.source is not None:
            if self._owner() and self.case.written == self.case.cell:
                return self._on_different(self.case.source, sink)
            array = self.violation.array or ""
            mine, its = cell_text(array, self.case.written), cell_text(array, self.case.cell)
            return f"{self.case.source} writes {mine}, {sink} reads {its}"
        if kind == "missing" and self.case.source is not None:
            written = self.new.statement[self.case.source.place or ""].written
            return f"{self.case.source} writes to '{written}' instead"
        if kind not in ("order", "overwritten", "rewritten", "updates") or sink.place is None:
            return ""
        first = self.case.source or self.case.other
        if first is None:
            return ""
        if self.violation.how == "blocks":
            return self._on_different(first, sink, "; nothing orders blocks within one launch")
        if self.violation.how == "together":
            return self._on_different(first, sink, ", at the same time")
        if kind == "overwritten":
            if self.violation.detail == "stale":
                return ""
            return _in_order(first, sink, self.new)
        return _in_order(sink, first, self.new)

    def _on_different(self, a: Actor, b: Actor, why: str = "") -> str:
        if not (a.where() or b.where()):
            return ""
        return f"{a} runs {a.where() or 'once'}, {b} {b.where() or 'on every thread'}{why}"

    def _statements(self) -> list[Row]:
        shown: dict[str, None] = {}
        for actor in (self.case.source, self.case.other, self.sink):
            if actor is not None:
                shown[actor.instance.statement] = None
        rows = []
        for name in shown:
            statement = self.root.statement.get(name) or self.new.statement.get(name)
            if statement is not None:
                rows.append((f"'{name}'", statement_text(statement)))
        return rows

    def assertion(self) -> str:
        """What would settle an open question."""
        if self.violation.settling:
            calls = " or ".join(a.call for a in self.violation.settling)
            return f"if the data allows it, say so first: {calls}"
        return (
            f"data decide which cells of '{self.array}' are touched; an assertion about them may "
            "settle it, and unchecked=True trusts you"
        )


def statement_text(statement: Statement) -> str:
    """A statement in one line."""
    sign = "=" if statement.operation is None else f"= {statement.operation} of itself and"
    text = f"{to_text(statement.lhs)} {sign} {to_text(statement.rhs)}"
    if statement.predicates:
        text += f"   if {' and '.join(to_text(p) for p in statement.predicates)}"
    return text


def _in_order(first: Actor, second: Actor, new: Model) -> str:
    """Why one instance runs before another: the loop that decides, or the place in the nest."""
    mine, its = dict(first.loops), dict(second.loops)
    shared: tuple[str, ...] = ()
    if first.place is not None and second.place is not None:
        shared = new.order.shared_loops(first.place, second.place)
    for number, name in enumerate(shared):
        if mine[name] != its[name]:
            at = ", ".join(f"{n}={mine[n]}" for n in shared[: number + 1])
            later = ", ".join(f"{n}={its[n]}" for n in shared[: number + 1])
            return f"{first} runs at {at}, {second} at {later}"
    if first.instance.statement != second.instance.statement:
        return f"{first} runs before {second}, which stands below it"
    return f"{first} runs before {second}"
