"""The statements that a reduction stands for: one that starts an accumulator, and one per term."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._arrays import AddressSpace, DType, TemporaryVariable
from loopkit._frozen import dataclass
from loopkit._kernel import Statement
from loopkit._make.operation import ReductionOperation
from loopkit._make.reduction_operations import ScalarOperation
from loopkit._nodes import Expression, Reduction, segments_of


@dataclass(frozen=True, eq=False)
class Accumulator:
    """What a reduction accumulates in, and by which operation; a segmented one may start anew."""

    temporary: TemporaryVariable
    operation: ReductionOperation
    is_segmented: bool

    @property
    def value(self) -> prim.Variable:
        """What it holds."""
        return prim.Variable(self.temporary.name)

    def start(self, own: Statement, id_: str) -> Statement:
        """What starts it for a statement ``own``, with the loops and conditions of that."""
        # What depends on an unknown type is set right when types are known.
        rhs = self.operation.start(self.temporary.dtype)
        return replace(own, id=id_, lhs=self.value, rhs=rhs, operation=None, kind="init")

    def update(
        self, start: Statement, id_: str, operand: Expression, inames: Iterable[str]
    ) -> Statement:
        """What adds a term to it, in the loops of ``start`` and those over ``inames``."""
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
