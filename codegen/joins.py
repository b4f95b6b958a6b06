"""Device functions that join two records: operations on several values, such as argmax."""

from __future__ import annotations

from loopkit import _promotion as dt
from loopkit._kernel import Kernel
from loopkit._make.operation import ReductionOperation, operands
from loopkit._make.reduction_operations import operations_of
from loopkit._nodes import Expression
from loopkit.codegen import operands as op
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.types import C_TYPES
from loopkit.codegen.expressions import ExpressionLowering


def joins_of(kernel: Kernel) -> tuple[c.Join, ...]:
    """The functions that join records, one per operation and type of the kernel's updates."""
    operations = operations_of(kernel.reductions)
    found: dict[tuple[str, dt.DType], c.Join] = {}
    for statement in kernel.statements:
        if statement.operation is None:
            continue
        operation = operations[statement.operation]
        dtype = kernel.array(statement.written).dtype
        if operation.components and dtype is not None and (operation.name, dtype) not in found:
            value = JoinLowering(operation, dtype).value()
            found[operation.name, dtype] = c.Join(
                c.join_name(operation.name), C_TYPES[dtype], value
            )
    return tuple(found.values())


class JoinLowering(ExpressionLowering):
    """Lowers the expression that joins the records ``a`` and ``b`` by one operation."""

    def __init__(self, operation: ReductionOperation, dtype: dt.DType) -> None:
        self.parts = operation.joined(dtype)
        self.dtype = dtype
        self.kinds = dt.components_of(dtype)
        sides = dict(zip("ab", operands(operation.components), strict=True))
        self.places = {
            variable.name: (side, name)
            for side, variables in sides.items()
            for variable, name in zip(variables, self.kinds, strict=True)
        }

    def value(self) -> c.CExpression:
        """One of the two records if all components come from the same one; else each component."""
        kinds = self.kinds.values()
        values = [
            op.of_type(self.rec(part), kind) for part, kind in zip(self.parts, kinds, strict=True)
        ]
        chosen = [v for v in values if isinstance(v, c.Choice)]
        if len(chosen) == len(values) and len({v.condition for v in chosen}) == 1:
            sides = [self.whole([v.then for v in chosen]), self.whole([v.other for v in chosen])]
            if None not in sides:
                return c.Choice(chosen[0].condition, *sides)  # type: ignore[arg-type]
        return c.Braces(C_TYPES[self.dtype], tuple(values))

    def whole(self, values: list[c.CExpression]) -> c.Name | None:
        """``a`` or ``b`` if the values are exactly its components."""
        for side in "ab":
            if values == [c.Member(c.Name(side), name) for name in self.kinds]:
                return c.Name(side)
        return None

    def dtype_of(self, name: str) -> dt.DType:
        return self.kinds[self.places[name][1]]

    def named(self, name: str, indices: tuple[Expression, ...] = ()) -> c.CExpression:
        side, component = self.places[name]
        return c.Member(c.Name(side), component)
