"""The combinations of a kernel: the threads that combine, the method they use, and its C."""

from __future__ import annotations

from functools import partial

from loopkit._cached import memoised
from loopkit._collectives import (
    CARRY,
    COMBINE,
    SCAN,
    TOGETHER,
    adds_to,
    combined_axes,
    operation_text,
    scanned_blocks,
    scans_of,
    spread_inames,
)
from loopkit._kernel import Kernel, Statement
from loopkit._make.reduction_operations import operations_of
from loopkit._tags import LocalAxis
from loopkit.codegen.c.tree import CExpression, Combine, Element, Name, Node
from loopkit.codegen.combine import WAYS, Group, described, groups, way_of, words_of
from loopkit.codegen.combining import Combining, Operation, combined
from loopkit.codegen.lookback import Tiles
from loopkit.codegen.scan_ways import CARRIES, SCANS, elements_of, scan_way_of
from loopkit.codegen.values import ValueLowering

Block = tuple[int, int, int]


@memoised
def chosen_ways(
    kernel: Kernel, statement: Statement, block: Block
) -> tuple[tuple[Group, str], ...]:
    """The groups of threads that combine or scan, in sequence, each with its method."""
    temporary = kernel.temporary_by_name[statement.written]
    assert temporary.dtype is not None and temporary.accumulates is not None
    operation = Operation(temporary.accumulates, temporary.dtype)
    axes = combined_axes(kernel)[temporary.name]
    by = temporary.combined_by
    found = groups(block, axes)
    if statement.kind != COMBINE and found:
        return ((found[0], scan_way_of(found, operation, by)),)
    return tuple((group, way_of(group, operation, by)) for group in found)


def is_shuffled(kernel: Kernel, statement: Statement, block: Block) -> bool:
    """Whether threads of a warp exchange their results by shuffles in a statement."""
    if statement.kind not in TOGETHER:
        return False
    return any(way in ("lanes", "warps") for _, way in chosen_ways(kernel, statement, block))


def is_combined(kernel: Kernel, statement: Statement, block: Block) -> bool:
    """Whether threads of a block exchange results in a statement, in whatever way."""
    return statement.kind in TOGETHER and bool(chosen_ways(kernel, statement, block))


def combination_note(kernel: Kernel, statement: Statement, block: Block) -> str:
    """The comment on a combination: its axes, its threads and its method."""
    ways = tuple(way for _, way in chosen_ways(kernel, statement, block))
    name = statement.written
    axes = combined_axes(kernel)[name]
    inames = spread_inames(kernel)[name]
    mine = [i for i in inames if isinstance(kernel.iname_tags[i], LocalAxis)]
    if statement.kind != COMBINE:
        path = kernel.paths[statement.id]
        mine = [
            *dict.fromkeys(i for s in scans_of(kernel, name) if s.path == path for i in s.inames)
        ]
    shown = operation_text(kernel, next(s for s in kernel.writers[name] if adds_to(s, name)))
    if statement.kind == CARRY:
        return f"what all threads along {', '.join(mine)} have, to the first"
    running = "" if statement.kind == COMBINE else "running "
    blocks = ", blocks by look-back" * bool(scanned_blocks(kernel, name))
    return f"{running}{shown} over {', '.join(mine)}: {described(block, axes, ways)}{blocks}"


def scratch_bytes(kernel: Kernel, block: Block) -> int:
    """The shared memory that all combinations of a block take."""
    total, is_drawn = 0, False
    for statement in kernel.statements:
        if statement.kind in TOGETHER:
            dtype = kernel.temporary_by_name[statement.written].dtype
            assert dtype is not None
            for group, way in chosen_ways(kernel, statement, block):
                total += elements_of(group, way, statement.kind) * dtype.itemsize
            if scanned_blocks(kernel, statement.written):
                total += dtype.itemsize
                is_drawn = True
    return total + 4 * is_drawn


class CombinationLowering:
    """Lowers the combinations of a kernel."""

    def __init__(
        self, kernel: Kernel, block: Block, values: ValueLowering, tiles: Tiles | None
    ) -> None:
        self.kernel = kernel
        self.block = block
        self.values = values
        self.tiles = tiles
        self.fresh = kernel.fresh_names(tiles.names if tiles is not None else ())

    def node(self, statement: Statement) -> Combine:
        """The node of one combination."""
        name, values = statement.written, self.values
        temporary = self.kernel.temporary_by_name[name]
        dtype, operation = values.dtype_of(name), temporary.accumulates or ""

        def update(place: Name | Element, value: CExpression) -> tuple[str, CExpression]:
            return values.combined(statement, operation, place, value)

        start = next(s for s in self.kernel.writers[name] if s.kind == "init")
        # What carries on keeps those who read in a scan from those who write in the next.
        kinds = {s.kind for s in self.kernel.writers[name]}
        is_repeated = bool(self.kernel.paths[statement.id]) and CARRY not in kinds
        combining = Combining(
            values.access(*statement.write),
            Operation(operation, dtype),
            self.block,
            update,
            values(start.rhs, dtype),
            lambda word: self.fresh(f"{name}_{word}"),
            self.fresh(f"{name}_other"),
            is_repeated,
            operations_of(self.kernel.reductions)[operation].is_ordered,
        )
        note = combination_note(self.kernel, statement, self.block)
        ways = {COMBINE: WAYS, CARRY: CARRIES}.get(statement.kind, SCANS)

        def by_group(group: Group, way: str, number: CExpression) -> tuple[Node, ...]:
            text = ways[way](combining, group)
            return combining.nodes(text, words_of(group, number, text))

        parts = [
            partial(by_group, *chosen) for chosen in chosen_ways(self.kernel, statement, self.block)
        ]
        if self.tiles is not None and name in self.tiles.states and statement.kind == SCAN:
            parts.append(partial(self.tiles.looked_back, combining, name))
        return combined(combining, parts, statement.id, f"{statement.id}: {note}")
