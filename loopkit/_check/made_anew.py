"""Reductions that a schedule computes by new statements, which execute no instance of the text.

Such a reduction and one of the text both accumulate in a temporary of their own, directly before
it is read. They have equal values if they run over the same terms, compared term by term.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._arrays import AddressSpace, TemporaryVariable
from loopkit._check.schedule_check import Check, ReadEvent
from loopkit._expression import substitute
from loopkit._frozen import dataclass
from loopkit._hidden import READER, hidden, variable
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, Undecided, equal, without
from loopkit._same import key_of

Compare = Callable[[Expression, Expression, ReadEvent], None]


@dataclass(frozen=True, eq=False)
class Parts:
    """A reduction: its accumulator, its initial value, its terms, and its loops."""

    accumulator: TemporaryVariable
    start: Statement
    update: Statement
    loops: tuple[str, ...]

    @property
    def operation(self) -> object:
        """A key of the operation and its type."""
        held, start = self.accumulator, key_of(self.start.rhs)
        return self.update.operation, held.accumulates, held.dtype, start

    @property
    def term(self) -> Expression:
        """The term of an iteration; of a segmented reduction, the new value.

        That is in terms of the previous value, which has one name on both sides: by induction, it
        is equal.
        """
        if self.update.operation is not None:
            return self.update.rhs
        so_far = prim.Variable(hidden("so far"))
        return substitute(self.update.rhs, {self.accumulator.name: so_far})


def parts_of(model: Model, name: str, reader: str) -> Parts | None:
    """The reduction whose result a statement reads in ``name``.

    None for anything but an initialisation, the loops, and the reader after them, in one iteration
    of common loops. A segmented reduction has a single loop, which gives the order of its terms.
    """
    kernel = model.kernel
    accumulator = kernel.temporary_by_name.get(name)
    writers = {s.kind: s for s in model.writers(name)}
    if (
        accumulator is None
        or accumulator.shape
        or accumulator.address_space not in (AddressSpace.PRIVATE, AddressSpace.AUTO)
        or len(model.writers(name)) != 2
        or writers.keys() != {"init", "update"}
    ):
        return None
    start, update, own = writers["init"], writers["update"], model.statement[reader]
    order = list(kernel.paths)
    path = kernel.paths[reader]
    inner = kernel.paths[update.id]
    loops = tuple(iname for iname, _ in inner[len(path) :])
    is_segmented = update.operation is None and len(loops) == 1
    is_in_place = (
        kernel.paths[start.id] == path == inner[: len(path)]
        and order.index(start.id) < order.index(update.id) < order.index(reader)
        and start.inames == own.inames == update.inames.difference(loops)
        and update.inames.issuperset(loops)
        and key_of(start.predicates) == key_of(own.predicates) == key_of(update.predicates)
        and (update.operation == accumulator.accumulates or is_segmented)
        and not any(map(model.bounds_from_data, (start.id, update.id, reader)))
    )
    return Parts(accumulator, start, update, loops) if is_in_place else None


def is_result(model: Model, name: str) -> bool:
    """Whether reductions leave their results in a temporary."""
    temporary = model.kernel.temporary_by_name.get(name)
    return temporary is not None and temporary.accumulates is not None


def is_made_anew(check: Check, mine: str, its: str) -> bool:
    """Whether the text reads a reduction's result, and the schedule that of new statements."""
    if not (is_result(check.root, mine) and is_result(check.new, its)):
        return False
    return all(w.id not in check.lineage.image_of for w in check.new.writers(its))


def compare(check: Check, mine: str, its: str, event: ReadEvent, same: Compare) -> ReadEvent | None:
    """Compare a reduction of the text with a new one of the schedule, term by term with ``same``.

    Returns an event in which their terms differ, if there is one.
    """
    assert event.time.statement is not None
    old = parts_of(check.root, mine, event.reader)
    new = parts_of(check.new, its, event.time.statement)
    if old is None or new is None or len(old.loops) != len(new.loops):
        raise Undecided(f"what '{its}' adds up corresponds to nothing in the text")
    if old.operation != new.operation:
        return event
    at = Instance(new.update.id, event.time.label)
    values = dict(event.values)
    for iname, its_iname in zip(old.loops, new.loops, strict=True):
        values[iname] = variable(its_iname, at.label)
    terms = check.root.domain(Instance(old.update.id, READER)) & check.lineage.sizes
    for iname in old.update.inames:
        terms = terms & equal(variable(iname, READER), values[iname])
    due = event.where & without(terms, READER)
    made = event.where & check.new.domain(at)
    if not due.is_equal(made):
        return event.narrowed(check.onto((due - made) | (made - due), event.where))
    if not made.is_empty():
        _, everywhere = check.new.everywhere(at)
        inner = replace(
            event,
            where=made,
            time=at,
            reader=old.update.id,
            values={i: values[i] for i in old.update.inames},
            everywhere=everywhere,
            sources=None,
            access=None,
            depth=event.depth + 1,
        )
        same(old.term, new.term, inner)
    return None
