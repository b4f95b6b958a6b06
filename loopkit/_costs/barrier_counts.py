"""Barriers and combinations across threads: positions, participating threads, execution counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import memoised
from loopkit._collectives import TOGETHER
from loopkit._costs.combination_costs import Combination, combinations_in
from loopkit._costs.launch_counts import BLOCKS, ONCE, Calls
from loopkit._costs.traffic import WARP, with_warp
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._poly.integer_points import EndlessError, TooManyPointsError
from loopkit._poly.pairs import inside
from loopkit._poly.projection import distinct
from loopkit._target import CUDA
from loopkit.codegen.combinations import combination_note
from loopkit.codegen.hardware import Hardware
from loopkit.codegen.ir import Barrier, Code, Do, For, If, Let
from loopkit.codegen.lookback import tiles_of
from loopkit.codegen.nest import nest_of
from loopkit.codegen.prepare import prepare


@dataclass(frozen=True)
class BarrierCosts:
    """A barrier of the program.

    It stands between the statements ``after`` and ``before``, in ``loops``; the latter may be the
    first of a loop whose next iteration it lets begin.  ``reason`` is what the source says beside
    it.  ``waiting`` threads wait for each other each time: those of a block, or of a warp.  It is
    executed ``times`` in the launch, once for each block, or each warp, that does; None where data
    decide.  ``blocks`` are those of the launch, ``warps`` those of a block.
    Those of a combination count as one, which is executed more often.
    """

    after: str
    before: str
    loops: tuple[str, ...]
    reason: str
    of_warp: bool
    waiting: int
    times: int | None
    blocks: int
    warps: int = 1

    @property
    def per_thread(self) -> int | None:
        """Executions by each thread, where all threads pass it as often; else None.

        Without blocks there are 0.
        """
        if not isinstance(self.times, int):
            return None
        several = self.blocks * self.warps if self.of_warp else self.blocks
        if several == 0:
            return 0
        return None if self.times % several else self.times // several

    @property
    def per_block(self) -> float | None:
        """Executions in each block, on average where blocks differ; None of open sizes, too."""
        if not isinstance(self.times, int):
            return None
        return self.times / self.blocks if self.blocks else 0.0


@dataclass(frozen=True)
class _Place:
    """A barrier, the statements around it, and the code it is in, from outside inwards.

    Those of a combination, of which there may be none, have one place.
    """

    barrier: Barrier
    after: str
    before: str
    around: tuple[For | Let | If, ...]
    combination: str = ""


@memoised
def _places(kernel: Kernel) -> tuple[Hardware, tuple[_Place, ...]]:
    """All barriers of a kernel's program (memoised)."""
    kernel = prepare(kernel)
    nest = nest_of(kernel)
    found = tuple(_found(nest.code, (), "", ""))
    if tiles_of(kernel, nest.hardware) is not None:
        first = next(_statements(nest.code), "")
        found = (_Place(Barrier("the ticket of the block"), "", first, ()), *found)
    return nest.hardware, found


def _found(
    nodes: tuple[Code, ...], around: tuple[For | Let | If, ...], after: str, before: str
) -> Iterator[_Place]:
    """The barriers of a body; the statements around the body are given."""
    if around and isinstance(around[-1], For):
        before = next(_statements(nodes), before)
    for number, node in enumerate(nodes):
        last = next(_statements(tuple(reversed(nodes[:number])), last=True), after)
        following = next(_statements(nodes[number + 1 :]), before)
        if isinstance(node, Barrier):
            yield _Place(node, last, following, around)
        elif isinstance(node, Do) and node.statement.kind in TOGETHER:
            made_of = Barrier(f"{node.statement.written} combined")
            yield _Place(made_of, last, following, around, node.statement.id)
        elif isinstance(node, (For, Let, If)):
            yield from _found(node.body, (*around, node), last, following)


def _statements(nodes: tuple[Code, ...], *, last: bool = False) -> Iterator[str]:
    """The statements of nodes in their order; or from the last one, of nodes given in reverse."""
    for node in nodes:
        if isinstance(node, Do):
            yield node.statement.id
        elif isinstance(node, (For, Let, If)):
            body = tuple(reversed(node.body)) if last else node.body
            yield from _statements(body, last=last)


def kinds_of_barriers(kernel: Kernel) -> list[bool]:
    """For each barrier of the program: whether only warps wait at it."""
    return [place.barrier.of_warp for place in _places(kernel)[1] if _count(kernel, place)]


def _count(kernel: Kernel, place: _Place) -> int:
    """How many barriers are at a place."""
    return combinations_in(kernel)[place.combination].barriers if place.combination else 1


def barriers_of(
    kernel: Kernel, sizes: Mapping[str, int], grid: Sequence[Expression], calls: Calls = ONCE
) -> tuple[BarrierCosts, ...]:
    """The barriers of a launch, in the order of the source; ``grid`` may depend on its calls."""
    blocks, threads = calls.counted(grid, sizes)[1], prod(_places(kernel)[0].block)
    return tuple(
        BarrierCosts(
            place.after,
            place.before,
            tuple(node.iname for node in place.around if isinstance(node, For)),
            place.barrier.reason,
            place.barrier.of_warp,
            min(CUDA.warp, threads) if place.barrier.of_warp else threads,
            None if times is None else count * times,
            blocks,
            -(-threads // CUDA.warp),
        )
        for number, place in enumerate(_places(kernel)[1])
        if (count := _count(kernel, place))
        for times in (_times(kernel, number, sizes, grid, calls),)
    )


_THREADS = [hidden("thread", axis) for axis in range(3)]


def _times(
    kernel: Kernel, number: int, sizes: Mapping[str, int], grid: Sequence[Expression], calls: Calls
) -> int | None:
    """In how many blocks, or warps, iterations and calls a barrier is executed."""
    domain, loops, inames = _executed(kernel, number)
    known = {*calls.loops, *BLOCKS, *_THREADS, WARP, *inames, *loops, *sizes}
    if domain is None or _sets.involved_names(domain) - known:
        return None
    domain = domain & calls.in_grid(grid)
    of_warp = _places(kernel)[1][number].barrier.of_warp
    loops = (*calls.loops, *loops)
    try:
        return distinct(domain, (*BLOCKS, *loops, *([WARP] if of_warp else [])), sizes)
    except (TooManyPointsError, EndlessError):
        return None


@memoised
def _executed(
    kernel: Kernel, number: int
) -> tuple[isl.Set | None, tuple[str, ...], tuple[str, ...]]:
    """``{ blocks, threads, warp, loops, inames : a barrier is executed }``; loops and inames.

    Blocks are not bounded by the grid.  No set where data decide.
    """
    hardware, places = _places(kernel)
    block = hardware.block
    domain = kernel.assumptions.set
    for name, extent in zip(_THREADS, block, strict=True):
        domain = domain & inside(prim.Variable(name), extent)
    domain = with_warp(domain, tuple((name, 0) for name in _THREADS), block, CUDA.warp)
    inames: list[str] = []
    for c in hardware.coordinates:
        place_on_axis = prim.Variable((BLOCKS if c.kind == "g" else _THREADS)[c.axis])
        domain = domain & _sets.equality(c.iname, prim.Sum((place_on_axis, c.lower)))
        inames.append(c.iname)
    loops: list[str] = []
    for node in places[number].around:
        parts = _conditions(node)
        if not all(map(_sets.is_condition, parts)):
            return None, (), ()
        for part in parts:
            domain = domain & _sets.condition_set(part)
        if not isinstance(node, If):
            (loops if isinstance(node, For) else inames).append(node.iname)
    return domain, tuple(loops), tuple(inames)


def _conditions(node: For | Let | If) -> list[Expression]:
    """What holds inside of a node."""
    if isinstance(node, If):
        return [node.condition]
    iname = prim.Variable(node.iname)
    if isinstance(node, Let):
        return [prim.Comparison(iname, "==", node.value)]
    ends = [prim.Comparison(iname, ">=", node.lower), prim.Comparison(iname, "<", node.upper)]
    if node.step == 1:
        return ends
    steps = prim.Remainder(prim.Sum((iname, prim.Product((-1, node.lower)))), node.step)
    return [*ends, prim.Comparison(steps, "==", 0)]


@dataclass(frozen=True)
class CombinationCosts:
    """A combination of the program: its statement, who combines how, and what a launch does for it.

    ``times`` it is made, once for each block that does; None where data decide.  ``each`` is what
    one block does.
    """

    statement: str
    what: str
    times: int | None
    each: Combination

    def total(self, name: str) -> int | None:
        """One of the counts of :class:`Combination`, of the whole launch."""
        count: int = getattr(self.each, name)
        return None if self.times is None else count * self.times


def combinations_of(
    kernel: Kernel, sizes: Mapping[str, int], grid: Sequence[Expression], calls: Calls = ONCE
) -> tuple[CombinationCosts, ...]:
    """The combinations of a launch, in the order of the source."""
    each, made, block = combinations_in(kernel), prepare(kernel), kernel.program().block
    return tuple(
        CombinationCosts(
            name,
            combination_note(made, made.statement_by_id[name], block),
            _times(kernel, number, sizes, grid, calls),
            each[name],
        )
        for number, place in enumerate(_places(kernel)[1])
        if (name := place.combination)
    )
