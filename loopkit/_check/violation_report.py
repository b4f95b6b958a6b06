"""Violations as error messages: what goes wrong, in which case, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import pymbolic.primitives as prim

from loopkit import _budget, _sets
from loopkit._assertions.assertion_values import Assertion
from loopkit._budget import SpentError, apart_from_kept, turn
from loopkit._check.replay import Replay
from loopkit._check.violation import Actor, Case, Violation, smallest_case
from loopkit._errors import (
    IllegalTransformError,
    OutOfBoundsError,
    RaceError,
    UndecidedError,
    Witness,
    WitnessError,
)
from loopkit._expression import to_text, variable_names
from loopkit._hidden import plain
from loopkit._kernel import Kernel, Statement
from loopkit._make.atomic_updates import as_update
from loopkit._make.check_bounds import LATER, every_outside
from loopkit._poly.model import Model
from loopkit._poly.pairs import FLAT
from loopkit._poly.smallest_case import cell_text

Row = tuple[str, str]

_MEETING = "{sink} {reads} {cell}, which {%s} {writes}, and nothing orders the two"

# By kind of violation and by variant: see :meth:`_Words.said`.
_SENTENCES = {
    ("updates", ""): "{other} and {sink} would both add to {cell} at the same time",
    ("dropped", "partial"): "what {sink} adds up would not go where it belongs",
    ("dropped", ""): "{sink} would not be executed",
    ("extra", ""): "{sink} would be executed, which is no instance of the kernel",
    ("repeated", "partial"): "what {sink} adds up would be added more than once",
    ("repeated", ""): "{sink} would be executed more than once",
    ("merged", ""): "{source} and {sink} would be one update, and be added once",
    ("bounds", ""): "{sink} {would} access {cell}, {detail}",
    ("expression", ""): "{sink} would compute something else{why}",
    ("overlap", ""): "{here} and {there} would lie in the same place",
    ("outside", ""): "{here} would have no place: {detail}",
    ("divergent", ""): "{source} and {sink} would combine their parts of {array} {detail}: one may "
    "wait for the other, which never comes",
    ("aliased", ""): "{other} {would} write {there}, which lies in the place of {here}, before "
    "{sink} has read that",
    ("order", "at end"): "what {source} leaves in {cell} {would} not be there at the end",
    ("order", "unordered"): _MEETING % "source",
    ("order", ""): "{sink} {would} read {cell} before {source} has written it",
    ("overwritten", "at end"): "{other} {would} overwrite {cell}, where {sink} writes last",
    ("overwritten", "unordered"): _MEETING % "other",
    ("overwritten", "stale"): "{sink} {would} read from {cell} what {other} wrote",
    ("overwritten", ""): "{other} {would} overwrite {cell} before {sink} has read it",
    ("rewritten", "partial"): "{sink} would add to {cell} what {source} adds to another cell",
    ("rewritten", "unordered"): "{source} and {sink} {both} {cell}, and nothing orders the two",
    ("rewritten", ""): "{source} and {sink} {would} write {cell} in another order",
    ("place", "copies"): "{sink} would not see what {source} writes to '{array}': "
    "each {owner} has its own '{array}'",
    ("place", "at end"): "what {source} leaves in {cell} would end up in another cell",
    ("place", ""): "{sink} would look for the value of {source} in the wrong cell",
    ("missing", "at end"): "what {sink} leaves in {cell} would not be there at the end",
    ("missing", "written"): "{sink} would not find what {source} writes in {here}",
    ("missing", ""): "{sink} would read {here}, which nothing has written for it",
}
_READ = "{source} writes {cell}, then {sink} reads it"
_KEPT = "{source} writes {cell}, then nothing changes it"
_IN_THE_TEXT = {
    **dict.fromkeys(((kind, "") for kind in ("order", "place", "missing")), _READ),
    **dict.fromkeys(((kind, "at end") for kind in ("order", "place", "missing")), _KEPT),
    ("overwritten", "at end"): "{other} writes {cell}, later {sink} does",
    ("overwritten", "stale"): "{other} writes {cell}; what {sink} reads there is written later",
    ("overwritten", ""): "{sink} reads {cell}, then {other} writes it",
    ("rewritten", "unordered"): "",
    ("rewritten", ""): "{source} writes {cell}, then {sink} does",
}
_SCHEDULED = {
    ("place", ""): "{source} writes {there}, {sink} reads {here}",
    ("missing", ""): "{source} writes to '{instead}' instead",
}
_ORDERED = ("order", "overwritten", "rewritten", "updates")
_ON_DIFFERENT = {
    "blocks": "; nothing orders blocks within one launch",
    "together": ", at the same time",
}


def refusal(
    found: Sequence[Violation], every: Callable[[], Sequence[Violation]], replay: Replay
) -> WitnessError:
    """The error for some violations; its message describes the smallest case of all.

    ``every`` computes all violations, when the error is read.
    """
    kind = _class_of(next((v for v in found if v.exact), found[0]))

    def tell() -> WitnessError:
        with turn():
            for some in (every(), found) if found[0].seen else (found,):
                if mine := [v for v in some if _class_of(v) is kind]:
                    break
            return error_for(mine, replay.root, replay.new, replay)

    return kind.told_by(tell)


def _class_of(violation: Violation) -> type[WitnessError]:
    """The exception class for a violation."""
    if not violation.exact:
        return UndecidedError
    if violation.kind in _ORDERED and violation.how in _ON_DIFFERENT:
        return RaceError
    return OutOfBoundsError if violation.kind == "bounds" else IllegalTransformError


def error_for(
    violations: Sequence[Violation], root: Model, new: Model, replay: Replay | None = None
) -> WitnessError:
    """The error for the smallest case of all that was found, with that as the witness.

    What is certain comes before what only some data bring about, and an order that is broken
    before what follows from it; what a run does not show, though it could be run, comes last.
    """
    certain = [v for v in violations if v.exact] or [*violations]
    answer = "not run"
    while True:
        violation, case = _smallest(certain, root, new)
        if replay is not None and case is not None and violation.exact:
            answer = replay.shows(violation, _budget.REPLAY_CELLS_TOLD)
        if answer != "same" or len(certain) == 1:
            break
        certain.remove(violation)
    if case is None:
        return _without_case(violation)
    words = _Words(violation, case, violation.text or root, new, replay)
    rows = words.rows(is_run=answer != "too large")
    width = max((len(name) for name, _ in rows), default=0) + 1
    lines = (f"  {name + ':':<{width}} {text}" for name, text in rows)
    why = "\n".join([words.said(_SENTENCES), *lines])
    numbers = [i for i in words.indices if isinstance(i, int)]
    kind = _class_of(violation)
    is_race = violation.kind in _ORDERED and violation.how in _ON_DIFFERENT
    # What comes first in the text, or what writes.
    is_other = violation.kind in ("overwritten", "updates", "aliased")
    first = case.other if is_other else case.source
    witness = Witness(
        kind="race" if is_race else violation.kind,
        array=words.array,
        cell=tuple(numbers) if len(numbers) == len(words.indices) else None,
        source=first.instance if first else None,
        sink=case.sink.instance,
        parameters=dict(case.sizes),
    )
    if not violation.exact:
        instead = "\n".join(filter(None, (words.assertion(), words.marked())))
        return UndecidedError(why, witness=witness, instead=instead)
    instead = words.marked() if is_race else words.owed()
    return kind(why, witness=witness, instead=instead)


def _smallest(
    violations: Sequence[Violation], root: Model, new: Model
) -> tuple[Violation, Case | None]:
    """The violation to report first, and its smallest case."""
    violation: Violation = violations[0]
    case: Case | None = None
    with suppress(SpentError), apart_from_kept(_budget.REFUSAL):
        for one in sorted(violations, key=_follows):
            if case is not None and _follows(one) and not _follows(violation):
                break
            least = None if case is None else case.rank
            other = smallest_case(one, one.text or root, new, least)
            if other is not None and (case is None or other.rank < case.rank):
                violation, case = one, other
    return violation, case


def _without_case(violation: Violation) -> WitnessError:
    """The error if a case is known to exist, but was not computed within the budget."""
    names = dict.fromkeys(
        side.origin or (side.at.statement if side.at is not None else None)
        for side in (violation.source, violation.other, violation.sink)
        if side is not None
    )
    which = " and ".join(f"'{n}'" for n in names if n is not None)
    about = f" on '{violation.array}'" if violation.array else ""
    why = f"{which} would not do what the text says{about} ({violation.kind})"
    return _class_of(violation)(
        why + f"; isl found no example of it within {_budget.REFUSAL:,} operations"
    )


def _follows(violation: Violation) -> bool:
    """Whether a violation is a consequence of a broken order, which is reported first."""
    return violation.detail == "stale" or violation.kind == "expression"


class _Words:
    """The sentences of one message."""

    def __init__(
        self,
        violation: Violation,
        case: Case,
        root: Model,
        new: Model,
        replay: Replay | None,
    ) -> None:
        self.replay = replay
        self.violation = violation
        self.case = case
        self.root = root
        self.new = new
        self.sink = case.sink
        meant = violation.meant
        self.array = violation.array if meant is None else meant[0]
        self.indices = case.cell if meant is None else case.meant
        self.cell = cell_text(self.array or "", self.indices)
        array, exact = violation.array or "", violation.exact
        is_aliased = violation.kind == "aliased"
        self.words: dict[str, object] = {
            "sink": case.sink,
            "source": case.source,
            "other": case.other,
            "cell": cell_text(self.array or "", self.indices),
            "here": cell_text(array, case.cell),
            "there": cell_text(violation.detail if is_aliased else array, case.written),
            "array": array,
            "owner": self._owner(),
            "detail": violation.detail,
            "why": f": {violation.detail}" if violation.detail else "",
            "would": "would" if exact else "might",
            "reads": "reads" if exact else "may read",
            "writes": "writes" if exact else "may write",
            "both": "both write" if exact else "may both write",
        }
        if case.source is not None and case.source.place is not None:
            self.words["instead"] = new.statement[case.source.place].written
        self.has_copies = bool(self.words["owner"]) and case.written == case.cell

    def said(self, sentences: Mapping[tuple[str, str], str]) -> str:
        """The sentence of the first variant that there is, and that names nobody who is not there.

        ``copies``: each thread has its own array; ``at end``: it is about what is left;
        ``unordered``, ``stale``: as a violation says; ``written``: somebody wrote the value.
        """
        variants = {
            "copies": self.has_copies,
            "at end": self.sink.place is None,
            "unordered": self.violation.how in _ON_DIFFERENT,
            "stale": self.violation.detail == "stale",
            "partial": self.violation.detail == "partial",
            "written": True,
            "": True,
        }
        absent = [f"{{{name}}}" for name in ("source", "other") if self.words[name] is None]
        for variant, holds in variants.items():
            sentence = sentences.get((self.violation.kind, variant))
            if holds and sentence is not None and not any(a in sentence for a in absent):
                return sentence.format(**self.words)
        return ""

    def _owner(self) -> str:
        """What has a copy of the array of its own."""
        axes = self.new.copy_axes(self.violation.array or "")
        first = self.case.source or self.case.other
        if first is not None and self._other_launch(first):
            return "launch"
        if any(axis[0] == "l" for axis in axes):
            return "thread"
        copies = [str(axis[1]) for axis in axes if axis[0] == "ilp"]
        if copies:
            return f"value of '{copies[0]}' (tagged ilp)"
        return "block" if axes else ""

    def _other_launch(self, first: Actor) -> bool:
        """Whether an array that lasts as long as a launch is written in one, read in another."""
        if self.sink.place is None or first.place is None:
            return False
        axes = self.new.copy_axes(self.violation.array or "")
        loops = [str(axis[1]) for axis in axes if axis[0] == "launch" and axis[1] != 0]
        mine, its = dict(self.sink.loops), dict(first.loops)
        numbers = self.sink.launch != first.launch and ("launch", 0) in axes
        return numbers or any(mine.get(i) != its.get(i) for i in loops)

    def rows(self, *, is_run: bool = True) -> list[Row]:
        """The order in the text, that of the schedule, the sizes, and the statements."""
        sizes = ", ".join(f"{n} = {v}" for n, v in self.case.sizes.items())
        rows = [
            ("in the text", "" if self._is_carried() else self.said(_IN_THE_TEXT)),
            ("scheduled", self._scheduled()),
            ("for example", sizes),
            ("not replayed", "" if is_run else f"{sizes or 'the kernel'} is too large to run"),
        ]
        return [row for row in rows if row[1]] + self._statements()

    def _is_carried(self) -> bool:
        """Whether the reader only carries data, and is not in the text."""
        return self.violation.kind == "overwritten" and self.violation.sink.origin is None

    def _scheduled(self) -> str:
        kind, how, sink = self.violation.kind, self.violation.how, self.sink
        first = self.case.source or self.case.other
        apart = kind == "divergent" or (kind == "place" and self.has_copies)
        if apart and first is not None:
            return self._on_different(first, sink)
        if kind not in _ORDERED or sink.place is None or first is None:
            return self.said(_SCHEDULED)
        if how in _ON_DIFFERENT:
            return self._on_different(first, sink, _ON_DIFFERENT[how])
        if kind == "overwritten":
            is_stale = self.violation.detail == "stale"
            return "" if is_stale else _in_order(first, sink, self.new)
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

    def marked(self) -> str:
        """The mark with which the updates of two sides would need no order; empty for others."""
        if self.violation.how not in _ON_DIFFERENT or self.replay is None:
            return ""
        actors = (self.case.source, self.case.other, self.sink)
        names = dict.fromkeys(a.instance.statement for a in actors if a is not None)
        found = {n: s and as_update(s) for n, s in ((n, self.root.statement.get(n)) for n in names)}
        updates = {name: update for name, update in found.items() if update}
        if len(updates) < len(names) or len({s.operation for s, _ in updates.values()}) > 1:
            return ""
        origins = {i.statement: i.origin for i in self.replay.lineage.images}

        def mark(kernel: Kernel) -> Kernel:
            is_root = self.replay is not None and kernel is self.replay.lineage.root
            ids = {s.id: s.id if is_root else origins.get(s.id) for s in kernel.statements}
            return kernel.with_(
                statements=tuple(
                    (as_update(s) or (s, ""))[0] if ids[s.id] in updates else s
                    for s in kernel.statements
                )
            )

        if not self.replay.would_be_legal(mark):
            return ""
        text = next(iter(updates.values()))[1]
        return f"an update that any may make at any time is marked: {text}"

    def owed(self) -> str:
        """That an access of this case leaves its array, where a kernel owes that none does."""
        kernel, instance = self.root.kernel, self.sink.instance
        if not kernel.owes_bounds or self.violation.kind not in ("missing", "expression"):
            return ""  # what is out of order is so inside of arrays, too
        here = _sets.at({**self.case.sizes, **instance.inames})
        for found in sorted(every_outside(kernel), key=lambda f: f.array == f.statement.written):
            if found.statement.id == instance.statement and not (found.where & here).is_empty():
                cell = to_text(prim.Subscript(prim.Variable(found.array), found.indices))
                return (
                    f"{cell} lies outside of '{found.array}' there, and it is owed that it does "
                    f"not: {LATER}"
                )
        return ""

    def _is_enough(self, assertion: Assertion) -> bool:
        """Whether a schedule is proven once something is asserted of the data."""
        return self.replay is None or self.replay.would_be_legal(
            lambda kernel: kernel.with_(assertions=(*kernel.assertions, assertion))
        )

    def assertion(self) -> str:
        """The assertion that would decide an open question."""
        if not self.violation.seen:
            return (
                "a run of this case shows no difference: the values may be equal, which is not "
                "proven here, and unchecked=True trusts you"
            )
        if self.violation.settling:
            enough = [a for a in self.violation.settling if self._is_enough(a)]
            calls = " or ".join(a.call for a in enough)
            return f"if the data allows it, say so first: {calls}" if enough else ""
        indices = (*self.violation.cell, *self.violation.written)
        if not any({plain(n) for n in variable_names(i)} & self.new.data for i in indices):
            return f"{FLAT}, and unchecked=True trusts you"
        return (
            f"data decide which cells of '{self.array}' are touched; an assertion about them may "
            "decide it, or write to a separate array, and copy it after all reads; "
            "unchecked=True trusts you"
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
        both = new.order.shared_loops(first.place, second.place)
        shared = tuple(name for name in both if name in mine)  # not threads
    for number, name in enumerate(shared):
        if mine[name] != its[name]:
            at = ", ".join(f"{n}={mine[n]}" for n in shared[: number + 1])
            later = ", ".join(f"{n}={its[n]}" for n in shared[: number + 1])
            return f"{first} runs at {at}, {second} at {later}"
    if first.instance.statement != second.instance.statement:
        return f"{first} runs before {second}, which is below it"
    return f"{first} runs before {second}"
