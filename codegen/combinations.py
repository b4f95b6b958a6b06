"""The combinations of a kernel: who combines, in which way, and the C of it."""

from __future__ import annotations

from loopkit._collectives import COMBINE, combined_axes, spread_inames
from loopkit._kernel import Kernel, Statement
from loopkit._tags import LocalAxis
from loopkit.codegen.c.tree import CExpression, Combine, Element, Name
from loopkit.codegen.combine import (
    Combining,
    Group,
    Operation,
    combined,
    described,
    groups,
    scratch_of,
    way_of,
)
from loopkit.codegen.values import ValueLowering

Block = tuple[int, int, int]


def chosen_ways(
    kernel: Kernel, statement: Statement, block: Block
) -> tuple[tuple[Group, str], ...]:
    """The groups that make a combination, one after another, each with the way in which it does."""
    temporary = kernel.temporary_by_name[statement.written]
    assert temporary.dtype is not None and temporary.accumulates is not None
    operation = Operation(temporary.accumulates, temporary.dtype)
    axes = combined_axes(kernel)[temporary.name]
    by = temporary.combined_by
    return tuple((group, way_of(group, operation, by)) for group in groups(block, axes))


def combination_note(kernel: Kernel, statement: Statement, block: Block) -> str:
    """Over what a combination is, who makes it, and how."""
    ways = tuple(way for _, way in chosen_ways(kernel, statement, block))
    name = statement.written
    axes = combined_axes(kernel)[name]
    inames = spread_inames(kernel)[name]
    mine = [i for i in inames if isinstance(kernel.iname_tags[i], LocalAxis)]
    operation = kernel.temporary_by_name[name].accumulates
    return f"{operation} over {', '.join(mine)}: {described(block, axes, ways)}"


def scratch_bytes(kernel: Kernel, block: Block) -> int:
    """The shared memory that all combinations of a block take."""
    total = 0
    for statement in kernel.statements:
        if statement.kind == COMBINE:
            dtype = kernel.temporary_by_name[statement.written].dtype
            assert dtype is not None
            for group, way in chosen_ways(kernel, statement, block):
                total += scratch_of(group, way) * dtype.itemsize
    return total


class CombinationLowering:
    """Lowers the combinations of a kernel."""

    def __init__(self, kernel: Kernel, block: Block, values: ValueLowering) -> None:
        self.kernel = kernel
        self.block = block
        self.values = values
        self.taken: list[str] = []

    def node(self, statement: Statement) -> Combine:
        """The node of one combination."""
        name, values = statement.written, self.values
        temporary = self.kernel.temporary_by_name[name]
        dtype, operation = values.dtype_of(name), temporary.accumulates or ""

        def update(place: Name | Element, value: CExpression) -> tuple[str, CExpression]:
            return values.combined(statement, operation, place, value)

        start = next(s for s in self.kernel.writers[name] if s.kind == "init")
        combining = Combining(
            values.access(*statement.write),
            Operation(operation, dtype),
            self.block,
            update,
            values(start.rhs, dtype),
            lambda word: self.fresh(f"{name}_{word}"),
            self.fresh(f"{name}_other"),
            bool(self.kernel.paths[statement.id]),
        )
        note = combination_note(self.kernel, statement, self.block)
        chosen = chosen_ways(self.kernel, statement, self.block)
        return combined(combining, chosen, statement.id, f"{statement.id}: {note}")

    def fresh(self, base: str) -> str:
        """A name that nothing has yet."""
        self.taken.append(self.kernel.fresh_name(base, self.taken))
        return self.taken[-1]
