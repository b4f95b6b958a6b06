"""Whether two instances write one cell in no order, whatever becomes of it."""

from __future__ import annotations

from loopkit._check.flow import Flow
from loopkit._check.model import Instance
from loopkit._check.sources import is_update
from loopkit._check.violation import Violation
from loopkit._kernel import Statement

_ONE, _TWO = "__b", "__x"


def check_races(flow: Flow, array: str) -> None:
    """Report writes of one cell that nothing orders.

    Updates of a reduction are judged where their sum is read, and writes that
    data decide by their order.
    """
    new = flow.new
    writers = [w for w in new.writers(array) if not is_update(w)]
    known: set[tuple[object, ...]] = set()
    for number, first in enumerate(writers):
        for second in writers[number:]:
            # Statements that write alike have one answer, but for each with itself.
            key = (_kind(first), _kind(second), first is second)
            if key in known:
                continue
            known.add(key)
            one, two = Instance(first.id, _ONE), Instance(second.id, _TWO)
            pieces = new.unordered(one, two, array)
            if not pieces:
                continue
            a, b = new.write_cell(one), new.write_cell(two)
            if a.by_data or b.by_data:
                continue
            both = new.domain(one) & new.domain(two) & new.same_cell(a, b)
            if both.is_empty():
                continue
            for how, piece in pieces:
                bad = both & piece
                if not bad.is_empty():
                    flow.report(
                        Violation(
                            "rewritten",
                            bad,
                            flow.side_of(two),
                            flow.side_of(one),
                            how=how,
                            array=array,
                            cell=b.indices,
                        )
                    )


def _kind(statement: Statement) -> tuple[object, ...]:
    """What decides which cells a statement writes, and where."""
    return statement.inames, statement.predicates, statement.write[1]
