"""Barriers judged by brute force: all instances of all threads, for sizes that are small.

Works on the kernel's tree and the instances that each statement executes.  Two
instances on different threads of a block *meet* if they touch one cell and one
of them writes it.  What cuts a pair that meets is every gap of the tree that
the block passes between the two.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from loop_instances import points, value
from seams import Barrier, Do, GuardedLoop, Loop, executed_instances, find_hardware
from seams import IrFor as For
from seams import IrIf as If
from seams import IrLet as Let
from seams import conflicts as conflicts_module

from loopkit import AddressSpace, Kernel, Statement

Sizes = dict[str, int]
Triple = tuple[int, int, int]
Time = tuple[float, ...]
Gap = tuple[int, ...]  # the positions of the loops around, and that of the gap
Cell = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Meeting:
    """What must be cut: the gaps that do it, and whether the threads are of two warps."""

    gaps: frozenset[Gap]
    across_warps: bool


class Launch:
    """Blocks, threads and instances of a kernel for some sizes."""

    def __init__(self, kernel: Kernel, sizes: Sizes) -> None:
        self.kernel = kernel
        self.sizes = sizes
        self.hardware = find_hardware(kernel)
        self.instances = executed_instances(kernel, self.hardware)
        self.grid: Any = tuple(value(e, sizes, {}) for e in self.hardware.grid)
        self.block: Any = self.hardware.block

    def warp(self, thread: Triple) -> int:
        x, y, _ = self.block
        return (thread[0] + x * (thread[1] + y * thread[2])) // conflicts_module.CUDA.warp

    def places(self, statement: Statement, point: Sizes) -> Iterator[tuple[Triple, Triple]]:
        """The blocks and threads that execute an instance."""
        temporary = self.kernel.temporary_by_name.get(statement.written)
        space = temporary.address_space if temporary else AddressSpace.GLOBAL
        choices: list[Any] = []
        for kind, extents in (("g", self.grid), ("l", self.block)):
            alone = space is AddressSpace.GLOBAL or (space is AddressSpace.LOCAL and kind == "l")
            for axis in range(3):
                first = kind == "g" and self.only_first_block(statement.written, axis)
                own = self.own(statement, point, kind, axis)
                choices.append(own[:1] or ([0] if alone or first else range(extents[axis])))
        for where in itertools.product(*choices):
            yield where[:3], where[3:]

    def own(self, statement: Statement, point: Sizes, kind: str, axis: int) -> list[int]:
        """The index on an axis that an instance's inames give, if any."""
        return [
            point[c.iname] - c.lower
            for c in self.hardware.coordinates
            if (c.kind, c.axis) == (kind, axis) and c.iname in statement.inames
        ]

    def only_first_block(self, name: str, axis: int, known: frozenset[str] = frozenset()) -> bool:
        """Whether what a temporary holds ends up only with what block 0 computes."""
        if any(name in domain.parameters for domain in self.kernel.domains):
            return False
        for reader in self.kernel.readers.get(name, ()):
            on_axis = {
                c.iname for c in self.hardware.coordinates if (c.kind, c.axis) == ("g", axis)
            }
            if reader.inames & on_axis:
                return False
            target = self.kernel.temporary_by_name.get(reader.written)
            if target is None or target.address_space is AddressSpace.GLOBAL:
                continue
            again = target.name in known or target.name == name
            if not again and not self.only_first_block(target.name, axis, known | {name}):
                return False
        return True

    def cells(self, statement: Statement, point: Sizes) -> Iterator[tuple[Cell, bool]]:
        """The shared and global cells that an instance touches, and whether it writes them."""
        env = {**self.sizes, **point}
        for number, (name, indices) in enumerate((statement.write, *statement.reads)):
            temporary = self.kernel.temporary_by_name.get(name)
            private = temporary is not None and temporary.address_space is AddressSpace.PRIVATE
            if not private and self.kernel.is_array(name):
                yield (name, tuple(value(i, env, {}) for i in indices)), number == 0

    def runs(self, statement: Statement) -> Iterator[Sizes]:
        """The points at which a statement runs."""
        for point in self.runs_without_conditions(statement):
            env = {**self.sizes, **point}
            if all(value(p, env, {}) for p in statement.predicates):
                yield point

    def runs_without_conditions(self, statement: Statement) -> Iterator[Sizes]:
        """Like :meth:`runs`, conditions left aside that loops do not know."""
        yield from points(self.instances.of[statement.id], self.sizes, sorted(statement.inames))

    def crosses_blocks(self) -> bool:
        """Whether two blocks meet in a global cell."""
        touched: dict[Cell, dict[Triple, bool]] = {}
        for statement in self.kernel.statements:
            for point in self.runs(statement):
                for block, _ in self.places(statement, point):
                    for cell, writes in self.cells(statement, point):
                        temporary = self.kernel.temporary_by_name.get(cell[0])
                        if temporary is None or temporary.address_space is AddressSpace.GLOBAL:
                            blocks = touched.setdefault(cell, {})
                            blocks[block] = blocks.get(block, False) or writes
        return any(len(blocks) > 1 and any(blocks.values()) for blocks in touched.values())


# {{{ the tree


def gaps_of(tree: Any, around: Gap = ()) -> Iterator[Gap]:
    """All gaps of a tree."""
    for position in range(len(tree) + 1):
        yield (*around, position)
    for position, node in enumerate(tree):
        if isinstance(node, Loop):
            yield from gaps_of(node.body, (*around, position))


def barriers_of(placed: Any, around: Gap = ()) -> Iterator[tuple[Gap, bool]]:
    """The gaps that hold a barrier, and whether it is one of a warp."""
    position = 0
    for node in placed:
        if isinstance(node, Barrier):
            yield (*around, position), node.of_warp
            continue
        if isinstance(node, GuardedLoop):
            yield from barriers_of(node.body, (*around, position))
        position += 1


def _paths(tree: Any, around: tuple[int | str, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for position, node in enumerate(tree):
        if isinstance(node, Loop):
            yield from _paths(node.body, (*around, position, node.iname))
        else:
            yield node, (*around, position)


def meetings(launch: Launch) -> tuple[set[Meeting], bool]:
    """All that must be cut in any block, and whether something meets that nothing can cut."""
    kernel = launch.kernel
    paths = dict(_paths(kernel.tree))
    touched: dict[tuple[Triple, Cell], dict[Time, dict[Triple, bool]]] = {}
    passed: dict[Triple, dict[Gap, set[Time]]] = {}
    all_gaps = list(gaps_of(kernel.tree))
    for statement in kernel.statements:
        path = paths[statement.id]
        for point in launch.runs_without_conditions(statement):
            time = tuple(float(point[p]) if isinstance(p, str) else float(p) for p in path)
            for block, _ in launch.places(statement, point):
                of_block = passed.setdefault(block, {})
                for depth in range(0, len(path), 2):
                    around = tuple(p for p in path[:depth] if not isinstance(p, str))
                    # Loops around the statement run in this iteration: their gaps are passed.
                    of_block.setdefault(around, set()).add(time[:depth])
        for point in launch.runs(statement):
            time = tuple(float(point[p]) if isinstance(p, str) else float(p) for p in path)
            for block, thread in launch.places(statement, point):
                for cell, writes in launch.cells(statement, point):
                    threads = touched.setdefault((block, cell), {}).setdefault(time, {})
                    threads[thread] = threads.get(thread, False) or writes
    times = {
        (block, gap): sorted((*t, gap[-1] - 0.5) for t in of_block.get(gap[:-1], ()))
        for block, of_block in passed.items()
        for gap in all_gaps
    }
    found: set[Meeting] = set()
    hopeless = False
    known: dict[tuple[Triple, Time, Time], frozenset[Gap]] = {}
    for (block, _), by_time in touched.items():
        order = sorted(by_time)
        for number, first in enumerate(order):
            for second in order[number:]:
                kinds = _kinds(launch, by_time[first], by_time[second])
                if not kinds:
                    continue
                if first == second:
                    hopeless = True
                    continue
                cutting = known.get((block, first, second))
                if cutting is None:
                    cutting = known[block, first, second] = frozenset(
                        gap for gap in all_gaps if _between(times[block, gap], first, second)
                    )
                found |= {Meeting(cutting, across) for across in kinds}
    return found, hopeless


def _between(times: Sequence[Time], first: Time, second: Time) -> bool:
    return bisect_right(times, first) < bisect_left(times, second)


def _kinds(launch: Launch, one: dict[Triple, bool], two: dict[Triple, bool]) -> set[bool]:
    """Whether threads of one warp and of two warps meet."""
    return {
        launch.warp(a) != launch.warp(b)
        for a, a_writes in one.items()
        for b, b_writes in two.items()
        if a != b and (a_writes or b_writes)
    }


# }}}

# {{{ judging a placement


def uncut(found: set[Meeting], barriers: dict[Gap, bool]) -> list[Meeting]:
    """What barriers leave uncut; True says that one is of a warp."""
    strong = {gap for gap, of_warp in barriers.items() if not of_warp}
    return [m for m in found if not m.gaps & (strong if m.across_warps else barriers.keys())]


def cost(barriers: dict[Gap, bool]) -> tuple[int, ...]:
    """How many there are in the innermost loops, ..., outside of all; how many of the block."""
    depths = range(8, -1, -1)
    strong = [gap for gap, of_warp in barriers.items() if not of_warp]
    return (
        *(sum(len(gap) - 1 == depth for gap in barriers) for depth in depths),
        *(sum(len(gap) - 1 == depth for gap in strong) for depth in depths),
    )


def least_cost(found: set[Meeting], candidates: Sequence[Gap]) -> tuple[int, ...]:
    """The cost of the cheapest placement of all."""
    best: tuple[int, ...] | None = None
    for count in range(len(candidates) + 1):
        for chosen in itertools.combinations(candidates, count):
            barriers = dict.fromkeys(chosen, False)
            if best is not None and cost(barriers)[:9] > best[:9]:
                continue
            if uncut(found, barriers):
                continue
            for weak in itertools.product((False, True), repeat=count):
                barriers = dict(zip(chosen, weak, strict=True))
                if not uncut(found, barriers):
                    price = cost(barriers)
                    best = price if best is None else min(best, price)
    assert best is not None
    return best


# }}}

# {{{ running the code


@dataclass
class Run:
    """What one thread does: its barriers in order, and the cells it touches between them."""

    barriers: list[tuple[int, tuple[int, ...]]]
    touched: list[tuple[int, int, Cell, bool]]  # barriers of the block, of the warp, cell, writes


class Interpreter:
    """Runs the code of a nest, thread by thread."""

    def __init__(self, launch: Launch, nest: Any) -> None:
        self.launch = launch
        self.nest = nest

    def run(self, block: Triple, thread: Triple) -> Run:
        env = dict(self.launch.sizes)
        for c in self.nest.hardware.coordinates:
            env[c.iname] = (block if c.kind == "g" else thread)[c.axis] + c.lower
        for axis, letter in enumerate("xyz"):
            env[f"threadIdx.{letter}"] = thread[axis]
            env[f"blockIdx.{letter}"] = block[axis]
        run = Run([], [])
        counts = {False: 0, True: 0}

        def visit(nodes: tuple[Any, ...], env: Sizes, loops: tuple[int, ...]) -> None:
            for node in nodes:
                if isinstance(node, For):
                    low, high = value(node.lower, env, {}), value(node.upper, env, {})
                    for i in range(low, high, node.step):
                        visit(node.body, {**env, node.iname: i}, (*loops, i))
                elif isinstance(node, Let):
                    i = value(node.value, env, {})
                    visit(node.body, {**env, node.iname: i}, loops)
                elif isinstance(node, If):
                    if value(node.condition, env, {}):
                        visit(node.body, env, loops)
                elif isinstance(node, Barrier):
                    counts[node.of_warp] += 1
                    run.barriers.append((id(node), loops))
                elif isinstance(node, Do):
                    for cell, writes in self.launch.cells(node.statement, env):
                        run.touched.append((counts[False], counts[True], cell, writes))

        visit(self.nest.code, env, ())
        return run

    def check(self) -> None:
        """All threads come to the same barriers, and never meet in between."""
        for block in itertools.product(*map(range, self.launch.grid)):
            threads = list(itertools.product(*map(range, self.launch.block)))
            runs = {thread: self.run(block, thread) for thread in threads}
            expected = runs[threads[0]].barriers
            assert all(run.barriers == expected for run in runs.values())
            seen: dict[tuple[int, Cell], list[tuple[Triple, int, bool]]] = {}
            for thread, run in runs.items():
                for phase, of_warp, cell, writes in run.touched:
                    others = seen.setdefault((phase, cell), [])
                    for other, its_phase, its_writes in others:
                        if other == thread or not (writes or its_writes):
                            continue
                        alone = self.launch.warp(other) == self.launch.warp(thread)
                        assert alone and its_phase != of_warp, (cell, other, thread)
                    others.append((thread, of_warp, writes))


# }}}
