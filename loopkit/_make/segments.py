"""Segmented reductions across threads, as an associative operation on pairs.

A pair holds a value, and whether a segment starts anywhere in the part of the sequence that it
covers.  Adjacent pairs combine associatively (Schwartz, Ultracomputers, 1980), so that threads can
scan them like any other operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pymbolic.primitives as prim

from loopkit._arrays import TemporaryVariable
from loopkit._collectives import adds_to, thread_scans
from loopkit._errors import IllegalTransformError
from loopkit._expression import replace_accesses
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._make.operation import Parts, RecordOperation, operands
from loopkit._make.reduction_operations import ScalarOperation, operations_of
from loopkit._nodes import Component, Expression, Record
from loopkit._promotion import BOOL, DType, record_of

_PARTS = ("value", "restart")


@dataclass(frozen=True, eq=False, kw_only=True)
class Segments(RecordOperation):
    """The associative operation on pairs of a segmented reduction; the left operand comes first."""

    components: tuple[str, ...] = _PARTS
    is_ordered: bool = True
    whole: ScalarOperation

    @property
    def shown(self) -> str:
        """The name of the segmented operation."""
        return f"segmented {self.whole.name}"

    def neutral(self, kinds: Sequence[DType]) -> tuple[Any, ...]:
        """The pair of an empty part: the neutral element, without a segment start."""
        return self.whole.start(kinds[0]), False

    def joined(self, dtype: DType) -> Parts:
        """The second value if a segment starts in its part, else both combined."""
        (a, first), (b, second) = operands(self.components)
        return prim.If(second, b, self.whole.combine(a, b)), prim.LogicalOr((first, second))


def with_segments(kernel: Kernel) -> Kernel:
    """The kernel whose threads scan segmented or ordered reductions by an associative operation.

    Until then, the updates of both read their accumulator like any variable.  Types and address
    spaces must have been decided.  Raises :class:`IllegalTransformError` where an update no longer
    shows where a segment starts.
    """
    names = {name for scan in thread_scans(kernel) for name in scan.accumulators}
    for name in sorted(names):  # each of them once: a loop that is peeled has several scans
        if any(adds_to(s, name) and s.operation is None for s in kernel.writers[name]):
            kernel = _with_parts(kernel, kernel.temporary_by_name[name])
    return kernel


def _with_parts(kernel: Kernel, temporary: TemporaryVariable) -> Kernel:
    name, dtype = temporary.name, temporary.dtype
    operations = operations_of(kernel.reductions)
    whole = operations[temporary.accumulates or ""]
    updates = [s for s in kernel.writers[name] if adds_to(s, name)]
    terms = {s.id: whole.term(s.lhs, s.rhs) for s in updates}
    if all(term is not None for term in terms.values()):
        return kernel.with_(
            statements=tuple(
                replace(s, rhs=terms[s.id], operation=whole.name) if s.id in terms else s
                for s in kernel.statements
            )
        )
    assert isinstance(whole, ScalarOperation) and dtype is not None
    known = {o.shown: o for o in kernel.reductions}
    own = known.get(f"segmented {whole.name}")
    if not isinstance(own, Segments):
        called = kernel.fresh_name(f"{whole.name}_of_segments", operations)
        own = Segments(called, whole=whole)
    parts = replace(
        temporary, dtype=record_of({"value": dtype, "restart": BOOL}), accumulates=own.name
    )

    def access(array: str, indices: tuple[Expression, ...]) -> Expression | None:
        if array != name:
            return None
        place = prim.Variable(name)
        return Component(prim.Subscript(place, indices) if indices else place, "value")

    def changed(statement: Statement) -> Statement:
        if statement.written != name:
            return statement.map_expressions(lambda e: replace_accesses(e, access))
        if statement.kind == "init":
            return replace(statement, rhs=Record(_PARTS, (statement.rhs, False)))
        found = statement.rhs
        if not isinstance(found, prim.If):
            raise IllegalTransformError(
                f"'{statement.id}' does not say where '{name}' restarts, so threads cannot "
                "compute its running results together",
                instead="the thread axis a sequential loop",
            )
        term = Record(_PARTS, (found.then, found.condition))
        return replace(statement, rhs=term, operation=own.name)

    users = {s.id for s in kernel.users(name)}
    return kernel.with_(
        statements=tuple(changed(s) if s.id in users else s for s in kernel.statements),
        temporaries=tuple(parts if t is temporary else t for t in kernel.temporaries),
        reductions=(*(o for o in kernel.reductions if o is not own), own),
    )
