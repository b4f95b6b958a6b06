"""The proof of a correspondence that the search found, by the checker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopkit._check.instance_maps import Image, Lineage
from loopkit._check.schedule_check import Check, ReadEvent
from loopkit._check.schedule_proof import ask, questions
from loopkit._check.statement_check import StatementCheck
from loopkit._check.value_types import ValueTypes
from loopkit._check.violation import Aim, Violation
from loopkit._expression import Access, is_constant, to_text, variable_names
from loopkit._hidden import BASE, OTHER, WRITER
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._poly.dataflow import commute
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, Undecided, without
from loopkit._promotion import RunTime
from loopkit._same import same
from loopkit._types import Kind, dtype_of


@dataclass(frozen=True, eq=False)
class ProofResult:
    """The checker's result for a correspondence: proven, violations, or why it is undecided.

    ``cheap``: the correspondence was rejected before the check.
    """

    violations: tuple[Violation, ...] = ()
    open: str = ""
    cheap: bool = False

    @property
    def holds(self) -> bool:
        """Whether the correspondence is proven."""
        return not self.violations and not self.open


def prove(new: Model, lineage: Lineage) -> ProofResult:
    """Check a correspondence; stops at the first violation."""
    check = Check(lineage, new, Aim.TRY)
    statements = _TypedStatementCheck(check)
    objection = next(_objections(statements, lineage), "")
    if objection:
        return ProofResult(open=objection, cheap=True)
    open_ = ask(check, questions(statements))
    return ProofResult(tuple(check.found), "" if open_ is None or check.found else open_.why)


class _TypedStatementCheck(StatementCheck):
    """Compares expressions through copies only where these change no types, all known here."""

    def __init__(self, check: Check) -> None:
        super().__init__(check)
        self.indexing = 0

    def same_indices(self, old: Expression, mine: Access, its: Access, event: ReadEvent) -> None:
        self.indexing += 1
        try:
            super().same_indices(old, mine, its, event)
        finally:
            self.indexing -= 1

    def same_parts(self, old: Expression, new: Expression, event: ReadEvent) -> None:
        # 2 and an iname that is always 2 are the same index, but x*2 and x*i have other types.
        constants = is_constant(old) and is_constant(new)
        are_values = not self.indexing and not constants and self.are_integers(old, new)
        if are_values and _type(old, self.root_types) != _type(new, self.new_types):
            raise Undecided(
                f"{to_text(new)} is of another type than {to_text(old)} in '{event.reader}'"
            )
        super().same_parts(old, new, event)

    def inline(self, mine: Access, new: Expression, event: ReadEvent) -> None:
        for statement in self.root.writers(mine[0]):
            if statement.operation is not None:
                raise Undecided(f"the reduction '{statement.id}' has no counterpart")
            if not self.root.is_exact(statement):
                raise Undecided(f"data decide what '{statement.id}' writes to '{mine[0]}'")
            _must_fit(self.root_types, statement)
        super().inline(mine, new, event)

    def hop(self, old: Expression, mine: Access | None, its: Access, event: ReadEvent) -> None:
        for statement in self.check.copy_statements(its[0]):
            _must_fit(self.new_types, statement)
        super().hop(old, mine, its, event)


def _type(expr: Expression, types: ValueTypes) -> Kind:
    return dtype_of(expr, types.known.__getitem__)


def _must_fit(types: ValueTypes, statement: Statement) -> None:
    """A statement's value has the type of the variable that it is stored in."""
    kind = _type(statement.rhs, types)
    if isinstance(kind, RunTime) or kind != types.known[statement.written]:
        raise Undecided(
            f"'{statement.written}' holds the value of '{statement.id}' in another type"
        )


def _objections(check: StatementCheck, lineage: Lineage) -> Iterator[str]:
    """Why the checker's assumptions do not hold for a correspondence.

    The checker assumes of transforms that they change no types, that added statements only copy,
    and that reductions start from the same value.
    """
    root, new = check.root, check.new
    partial, flushes = _partial_sums(check.check)
    for image in lineage.images:
        old, its = root.statement[image.origin], new.statement[image.statement]
        kinds = check.root_types.known[old.written], check.new_types.known[its.written]
        if kinds[0] != kinds[1]:
            yield f"'{old.written}' is {kinds[0]}, '{its.written}' is {kinds[1]}"
        if set(root.bounds_from_data(old.id)) != set(new.bounds_from_data(its.id)):
            yield f"data decide how often '{its.id}' runs, and not alike for '{old.id}'"
        if old.kind == "init" and not _same_initial_value(old.rhs, its.rhs, kinds[0]):
            yield f"'{old.id}' and '{its.id}' start from different values"
        if not root.is_exact(old) and old.written != its.written and its.id not in partial:
            yield f"data decide what '{old.id}' writes to '{old.written}'"
        if _is_stray(check.check, image):
            yield f"'{its.id}' writes other cells of '{its.written}' than '{old.id}'"
    for model, paired in ((root, {i.origin for i in lineage.images}), (new, lineage.image_of)):
        for statement in model.kernel.statements:
            is_flush = model is new and statement.id in flushes
            if statement.id not in paired and statement.operation is not None and not is_flush:
                yield f"the reduction '{statement.id}' has no counterpart"
            if statement.id not in paired and not model.is_exact(statement):
                yield f"data decide about '{statement.id}', which has no counterpart"
            for name, indices in statement.accesses:
                if model is new and partial.get(statement.id) == name:
                    continue
                # No check compares such cells.
                is_temporary = name in model.kernel.temporary_by_name
                if is_temporary and any(map(model.is_beyond_sets, indices)):
                    yield f"data decide which cells of '{name}' are touched in '{statement.id}'"


def _is_stray(check: Check, image: Image) -> bool:
    """Whether a statement writes cells of an argument that the text may leave unchanged.

    Cells that the text certainly writes are compared anyway.
    """
    old, its = check.root.statement[image.origin], check.new.statement[image.statement]
    if its.written not in check.new.kernel.arg_by_name:
        return False
    cell = check.new.write_cell(Instance(its.id, BASE))
    left = check.instances(image, BASE, WRITER)
    if old.written == its.written:
        theirs = check.root.write_cell(Instance(old.id, WRITER))
        left = left - check.new.same_cell(cell, theirs)
    left = without(left, WRITER)
    for writer in check.root.writers(its.written) if not cell.by_data else ():
        if check.root.is_exact(writer) and not left.is_empty():
            left = left - without(check.root.writing(Instance(writer.id, OTHER), cell), OTHER)
    return not left.is_empty()


def _partial_sums(check: Check) -> tuple[dict[str, str], frozenset[str]]:
    """The updates of temporaries that are flushed to arguments, with these; and all flushes.

    What is flushed is proven to reach the cell that the text updates, once, from the neutral
    element; an update that itself reads its temporary is none of these.
    """
    updates, flushes = dict[str, str](), set[str]()
    for image in check.lineage.images:
        array, its = (
            check.root.statement[image.origin].written,
            check.new.statement[image.statement],
        )
        carried = check.partial.carried(image, array)
        read = variable_names((its.rhs, *its.predicates, *its.write[1]))
        if not carried or its.written in read:
            continue
        flushes |= {flush.statement for one in carried for flush in one.flushes}
        if array in check.root.kernel.arg_by_name:
            updates[its.id] = its.written
    return updates, frozenset(flushes)


def data_dependent_race(model: Model) -> str:
    """Two accesses that nothing orders and that may meet, as data decide; empty if there are none.

    The checker asks whether such accesses keep the order of the text; a kernel
    with threads that is its own text gives them none.
    """
    for writer in model.kernel.statements:
        array, one = writer.written, Instance(writer.id, BASE)
        for other in model.kernel.statements:
            two = Instance(other.id, OTHER)
            for name, indices in other.accesses:
                if name != array or _is_free(writer, other, indices):
                    continue
                cell = model.cell(name, [model.named(i, OTHER) for i in indices], two)
                if not cell.by_data and model.is_exact(writer) and model.is_exact(other):
                    continue
                both = model.domain(one) & model.domain(two)
                for _, piece in model.unordered(one, two, array):
                    meeting = both & model.same_cell(model.write_cell(one), cell) & piece
                    if not meeting.is_empty():
                        return (
                            f"'{writer.id}' and '{other.id}' may touch one cell of '{array}', "
                            "as data decide, and nothing orders the two"
                        )
    return ""


def _is_free(writer: Statement, other: Statement, indices: tuple[Expression, ...]) -> bool:
    """Whether ``other`` only updates that cell, which is atomic as what ``writer`` does is."""
    if not (writer.is_atomic and other.is_atomic and commute(writer, other)):
        return False
    is_read = other.written in variable_names((other.rhs, *other.predicates))
    return indices == other.write[1] and not is_read


def _same_initial_value(a: Expression, b: Expression, dtype: Any) -> bool:
    """Whether two values that reductions start from are the same once they are stored."""
    if is_constant(a) and is_constant(b):
        a, b = (np.asarray(v).astype(dtype)[()] for v in (a, b))
    return same(a, b)
