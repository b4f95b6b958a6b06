"""Violations as messages that teach: what was asked, why it cannot be, what would make it possible."""

from __future__ import annotations

from collections.abc import Mapping

from loopkit._check.model import Model
from loopkit._check.violation import Violation
from loopkit._check.witness import Actor, Case, smallest_case
from loopkit._errors import (
    IllegalTransformError,
    Instance,
    LoopkitError,
    RaceError,
    UndecidedError,
    Witness,
)


def error_for(violation: Violation, root: Model, new: Model) -> LoopkitError:
    """The error for a violation, with its smallest case as the witness."""
    case = smallest_case(violation, root, new)
    why = "\n".join([_headline(violation, case, new), *_table(_rows(violation, case))])
    witness = Witness(
        kind=_kind(violation),
        array=violation.array,
        cell=_cell(case),
        source=_first(violation, case),
        sink=_second(violation, case),
        parameters=dict(case.sizes),
    )
    if not violation.exact:
        return UndecidedError(
            why.replace(" would ", " might ", 1), witness=witness, instead=_assertion(violation)
        )
    if _kind(violation) == "race":
        return RaceError(why, witness=witness)
    return IllegalTransformError(why, witness=witness)


def _kind(violation: Violation) -> str:
    unordered = violation.how in ("together", "blocks")
    if violation.kind == "updates":
        return "race"
    if violation.kind in ("order", "overwritten", "rewritten"):
        return "race" if unordered else violation.kind
    return violation.kind


def _cell(case: Case) -> tuple[int, ...] | None:
    if any(isinstance(i, str) for i in case.cell):
        return None
    return tuple(int(i) for i in case.cell)


def _first(violation: Violation, case: Case) -> Instance | None:
    """The instance that comes first in the text, or the one that writes."""
    if violation.kind == "overwritten":
        return case.other.instance if case.other else None
    return case.source.instance if case.source else None


def _second(violation: Violation, case: Case) -> Instance:
    return case.sink.instance


# {{{ words


def _name(violation: Violation, case: Case) -> str:
    if violation.array is None:
        return ""
    if not case.cell:
        return violation.array
    return f"{violation.array}[{', '.join(str(c) for c in case.cell)}]"


def _headline(violation: Violation, case: Case, new: Model) -> str:
    cell, sink = _name(violation, case), case.sink
    kind = violation.kind
    if kind == "order":
        if not sink.runs:
            return f"what {case.source} leaves in {cell} would not be there at the end"
        return (
            f"{sink} would read {cell} before {case.source} has surely written it"
            if (violation.how != "after")
            else f"{sink} would read {cell} before {case.source} has written it"
        )
    if kind == "overwritten":
        if not sink.runs:
            return f"{case.other} would overwrite {cell}, where {sink} writes last"
        return f"{case.other} would overwrite {cell} before {sink} has read it"
    if kind == "rewritten":
        return f"{case.source} and {sink} would write {cell} in another order"
    if kind == "place":
        return _place(violation, case, new)
    if kind == "missing":
        return f"{sink} would read {cell}, which nothing has written for it"
    if kind == "updates":
        return f"{case.other} and {sink} would both add to {cell} at the same time"
    if kind == "dropped":
        return f"{sink} would not be executed"
    if kind == "extra":
        return f"{sink} would be executed, which is no instance of the kernel"
    if kind == "repeated":
        return f"{sink} would be executed twice"
    detail = f": {violation.detail}" if violation.detail else ""
    return f"{sink} would compute something else{detail}"


def _place(violation: Violation, case: Case, new: Model) -> str:
    array, sink, source = violation.array or "", case.sink, case.source
    assert source is not None
    if array in new.kernel.temporary_by_name and new.rooms(array):
        private = any(axis[0] == "l" for axis in new.rooms(array))
        owner = "thread" if private else "block"
        mine = source.where() or f"another {owner}"
        return (
            f"{sink} would read '{array}' of its own {owner}, but the value it needs is "
            f"written by {source} on {mine}: every {owner} has an '{array}' of its own"
        )
    if not sink.runs:
        return f"what {source} leaves in '{array}' would end up in another cell"
    return f"{sink} would read {_name(violation, case)}, but {source} writes another cell"


Row = tuple[str, str]


def _rows(violation: Violation, case: Case) -> list[Row]:
    rows: list[Row] = []
    cell, sink = _name(violation, case), case.sink
    first, second = case.source, case.other
    kind = violation.kind
    if kind in ("order", "place") and first is not None:
        what = f"{sink} reads it" if sink.runs else "nothing writes it afterwards"
        rows.append(("in the text", f"{first} writes {cell}, then {what}"))
    elif kind == "overwritten" and second is not None:
        if not sink.runs:
            rows.append(("in the text", f"{second} writes {cell} first, {sink} after it"))
        elif sink.instance == second.instance:
            rows.append(("in the text", f"{sink} reads {cell} and then writes it"))
        else:
            rows.append(
                ("in the text", f"{sink} reads {cell} with no write of {second} in between")
            )
    elif kind == "rewritten" and first is not None:
        rows.append(("in the text", f"{first} writes {cell}, then {sink} does"))
    pair = [a for a in (first, second) if a is not None]
    if kind in ("order", "overwritten", "rewritten", "updates") and pair and sink.runs:
        rows.append(("scheduled", _scheduled(violation.how, pair[0], sink)))
    elif kind == "overwritten" and pair:
        rows.append(
            (
                "scheduled",
                "nothing brings the two writes into this order"
                if violation.how != "after"
                else f"{pair[0]} comes last",
            )
        )
    if case.sizes:
        rows.append(("for example", ", ".join(f"{n} = {v}" for n, v in case.sizes.items())))
    return rows


def _scheduled(how: str, first: Actor, sink: Actor) -> str:
    if how == "together":
        return (
            f"{first} runs on {first.where() or 'one thread'} and {sink} on "
            f"{sink.where() or 'another'}, in no order"
        )
    if how == "blocks":
        return (
            f"{first} runs in {first.where()} and {sink} in {sink.where()}: "
            "nothing orders blocks within one launch"
        )
    mine, its = dict(sink.loops), dict(first.loops)
    common = [n for n in mine if n in its]
    if common and any(mine[n] != its[n] for n in common):
        at = ", ".join(f"{n}={mine[n]}" for n in common)
        later = ", ".join(f"{n}={its[n]}" for n in common)
        return f"{sink} runs at {at}; {first} only at {later}"
    return f"{sink} runs first, {first} after it"


def _table(rows: list[Row]) -> list[str]:
    width = max((len(n) for n, _ in rows), default=0) + 1
    return [f"  {name + ':':<{width}} {text}" for name, text in rows]


def _assertion(violation: Violation) -> str:
    return (
        f"data decide which cells of '{violation.array}' are touched: an assertion about them "
        "can settle it (assume_injective, assume_disjoint), and unchecked=True trusts you"
    )


def sizes_of(case: Case) -> Mapping[str, int]:
    """The sizes of a case."""
    return case.sizes


# }}}
