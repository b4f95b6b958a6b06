"""Splitting of reductions into statements: initialization, update, and use of an accumulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._arrays import AddressSpace, DType, TemporaryVariable
from loopkit._expression import Mapped, mapped, nodes_of
from loopkit._frozen import dataclass
from loopkit._kernel import Statement
from loopkit._make.atomic_updates import atomic_update
from loopkit._make.free_names import fresh_names
from loopkit._make.making import Draft, Making, targets_of
from loopkit._make.operation import ReductionOperation
from loopkit._make.reduction_operations import ScalarOperation
from loopkit._nodes import Component, Expression, Record, Reduction, segments_of
from loopkit._rules import reductions_in
from loopkit._same import key_of
from loopkit._tree import Path


@dataclass(frozen=True, eq=False)
class Accumulator:
    """The accumulator of a reduction, and its operation, which may be segmented."""

    temporary: TemporaryVariable
    operation: ReductionOperation
    is_segmented: bool

    @property
    def value(self) -> prim.Variable:
        """The expression that reads its value."""
        return prim.Variable(self.temporary.name)

    def start(self, own: Statement, id_: str) -> Statement:
        """The statement that initializes it, with the loops and conditions of ``own``."""
        # What depends on an unknown type is set right when types are known.
        rhs = self.operation.start(self.temporary.dtype)
        return replace(own, id=id_, lhs=self.value, rhs=rhs, operation=None, kind="init")

    def update(
        self, start: Statement, id_: str, operand: Expression, inames: Iterable[str]
    ) -> Statement:
        """The statement that adds a term, in the loops of ``start`` and those over ``inames``."""
        name: str | None = self.operation.name
        if self.is_segmented:
            # In the order of the loop: whether a term counts hangs on those behind it.
            assert isinstance(self.operation, ScalarOperation)
            value, restart = operand.parts
            operand = prim.If(restart, value, self.operation.combine(self.value, value))
            name = None
        elif self.operation.is_ordered:
            operand, name = self.operation.applied(self.value, operand), None
        inner = start.inames.union(inames)
        return replace(start, id=id_, rhs=operand, inames=inner, operation=name, kind="update")


def accumulator_of(
    reduction: Reduction,
    operations: Mapping[str, ReductionOperation],
    name: str,
    dtype: DType | None,
) -> Accumulator:
    """An accumulator called ``name`` for a reduction."""
    segments = segments_of(reduction.operation)
    operation = operations[segments or reduction.operation]
    temporary = TemporaryVariable(
        name,
        dtype,
        address_space=AddressSpace.PRIVATE,
        accumulates=operation.name,
        made_by="reduction",
    )
    return Accumulator(temporary, operation, segments is not None)


Conditions = tuple[Expression, ...]


def _with_reductions(
    expr: Expression, replace: Callable[[Reduction, Conditions], Expression]
) -> Expression:
    """``expr`` with its outermost reductions replaced by the results of ``replace``.

    ``replace`` also gets the conditions of the branches around a reduction.
    """
    around: list[Expression] = []

    def reduction(expr: Reduction, inside: Mapped) -> Expression:
        return replace(expr, tuple(around))

    def choice(expr: prim.If, inside: Mapped) -> Expression:
        condition = inside(expr.condition)
        branches = []
        for known, branch in ((condition, expr.then), (prim.LogicalNot(condition), expr.else_)):
            around.append(known)
            branches.append(inside(branch))
            around.pop()
        return prim.If(condition, *branches)

    return mapped(expr, reduction=reduction, **{"if": choice})


Part = tuple[Statement, Path]
"""A statement with the reduction loops around it, inside the loops of its user."""


class Splitter:
    """Turns drafts into statements, with fresh ids, accumulators and loop numbers."""

    def __init__(self, making: Making, numbers: Iterator[int]) -> None:
        self.inames = making.inames
        self.operations = making.operations
        self.ids = making.ids
        self.numbers = numbers
        self.temporaries = frozenset(making.temporaries)
        self.accumulators: list[TemporaryVariable] = []
        self._names = fresh_names("acc", making.names)
        self._results_names = fresh_names("results", making.names)
        self._parts: list[Part] = []

    def split(self, draft: Draft) -> Sequence[Part]:
        """The statements of a draft, in order; the last one is the user's."""
        self._parts = []
        values = self._results(draft)
        parts = (draft.lhs, *draft.predicates, *values)
        if draft.reductions:
            parts = tuple(self._replaced(p, draft, draft.inames, ()) for p in parts)
        lhs, *predicates = parts[: -len(values)]
        values = parts[-len(values) :]
        rhs, operation = values[0], None
        if draft.item.atomic:
            operation, rhs = atomic_update(lhs, rhs, draft.item.position)
        statement = Statement(
            id=draft.id,
            lhs=targets_of(lhs)[0],
            rhs=rhs,
            operation=operation,
            kind="user" if operation is None else "atomic",
            inames=draft.inames,
            predicates=tuple(predicates),
            depends_on=draft.resolved,
            tags=frozenset(draft.item.tags),
            made_by=draft.made_by,
            position=draft.item.position,
        )
        if not isinstance(lhs, Record):
            return [*self._parts, (statement, ())]
        if not draft.reductions:
            values = (self._called(statement, rhs),)
        # From left to right, as Python assigns.
        uses = []
        for number, (target, result) in enumerate(zip(lhs.parts, draft.item.results, strict=True)):
            name, value = self._result(draft, result, values)
            id_ = draft.id if not number else next(fresh_names(f"{draft.id}_{name}", self.ids))
            uses.append((replace(statement, id=id_, lhs=target, rhs=value), ()))
        return [*self._parts, *uses]

    def _results(self, draft: Draft) -> tuple[Expression, ...]:
        """The values that a draft computes: one, or the pair of a segmented reduction.

        The second value of a pair says whether a segment starts.
        """
        rhs, whole = draft.rhs, draft.whole
        if not isinstance(draft.lhs, Record) or whole is None:
            return (rhs,)
        if segments_of(whole.operation) is None or 1 not in draft.item.results:
            return (rhs,)
        return rhs, Reduction("any", whole.inames, whole.operand.parts[1])

    def _called(self, statement: Statement, call: Expression) -> Expression:
        """A temporary with all results of a call, which a separate statement computes."""
        found = prim.Variable(next(self._results_names))
        self.accumulators.append(
            TemporaryVariable(found.name, address_space=AddressSpace.PRIVATE, made_by="call")
        )
        id_ = next(fresh_names(f"{statement.id}_call", self.ids))
        self._parts.append((replace(statement, id=id_, lhs=found, rhs=call), ()))
        return found

    def _result(
        self, draft: Draft, result: int, values: Sequence[Expression]
    ) -> tuple[str, Expression]:
        """The name and the value of one of several results."""
        whole = draft.whole
        if whole is None:
            name = draft.rhs.function.results[result]
            return name, Component(values[0], name)
        if segments_of(whole.operation) is not None:
            return ("value", "restart")[result], values[result]
        name = self.operations[whole.operation].components[result]
        return name, Component(values[0], name)

    def _replaced(
        self,
        expr: Expression,
        draft: Draft,
        inames: frozenset[str],
        loops: Path,
        conditions: Conditions = (),
    ) -> Expression:
        if not reductions_in(expr):
            return expr
        return _with_reductions(
            expr, lambda r, c: self._reduce(r, draft, inames, loops, conditions + c)
        )

    def _reduce(
        self,
        reduction: Reduction,
        draft: Draft,
        inames: frozenset[str],
        loops: Path,
        conditions: Conditions,
    ) -> Expression:
        held = accumulator_of(reduction, self.operations, next(self._names), reduction.dtype)
        self.accumulators.append(held.temporary)
        own = Statement(
            id=draft.id,
            lhs=held.value,
            rhs=held.value,
            inames=inames,
            predicates=draft.predicates,
            position=draft.item.position,
        )
        start = held.start(own, next(fresh_names(f"{draft.id}_init", self.ids)))
        self._parts.append((start, loops))
        nested = self.inames.nested(frozenset(reduction.inames), reduction.inames)
        inner_loops = (*loops, *((iname, next(self.numbers)) for iname in nested))
        inner = inames | frozenset(reduction.inames)
        operand = self._replaced(reduction.operand, draft, inner, inner_loops, conditions)
        id_ = next(fresh_names(f"{draft.id}_update", self.ids))
        update = held.update(start, id_, operand, reduction.inames)
        # A branch that is not taken may contain accesses that are out of bounds.
        known = {key_of(p) for p in update.predicates}
        new = dict.fromkeys(c for c in conditions if key_of(c) not in known)
        where = [c for c in new if self._is_plain(c)]
        update = replace(update, predicates=(*update.predicates, *where))
        self._parts.append((update, inner_loops))
        return held.value

    def _is_plain(self, condition: Expression) -> bool:
        """Whether a condition depends only on inames and scalar arguments."""
        nodes = list(nodes_of(condition))
        return not any(
            isinstance(node, (prim.Subscript, prim.Call))
            or (isinstance(node, prim.Variable) and node.name in self.temporaries)
            for node in nodes
        )
