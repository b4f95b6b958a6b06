"""Barriers: where they stand, who waits at each, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._cached import memoised
from loopkit._frozen import dataclass
from loopkit._hidden import hidden
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._poly.integer_points import EndlessError, TooManyPointsError, systems
from loopkit._poly.projection import distinct
from loopkit._target import CUDA
from loopkit.codegen.hardware import Hardware
from loopkit.codegen.ir import Barrier, Code, Do, For, If, Let
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
        """Executions by each thread, where all threads pass it as often; else None."""
        if not isinstance(self.times, int):
            return None
        several = self.blocks * self.warps if self.of_warp else self.blocks
        return None if several == 0 or self.times % several else self.times // several

    @property
    def per_block(self) -> float | None:
        """Executions in each block, on average where blocks differ; None of open sizes, too."""
        if not isinstance(self.times, int):
            return None
        return self.times / self.blocks if self.blocks else 0.0


@dataclass(frozen=True)
class _Place:
    """A barrier, the statements around it, and the code it is in, from outside inwards."""

    barrier: Barrier
    after: str
    before: str
    around: tuple[For | Let | If, ...]


@memoised
def _places(kernel: Kernel) -> tuple[Hardware, tuple[_Place, ...]]:
    """All barriers of a kernel's program (memoised)."""
    nest = nest_of(prepare(kernel))
    return nest.hardware, tuple(_found(nest.code, (), "", ""))


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
    return [place.barrier.of_warp for place in _places(kernel)[1]]


def barriers_of(
    kernel: Kernel,
    sizes: Mapping[str, int],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
) -> tuple[BarrierCosts, ...]:
    """The barriers of a launch, in the order of the source."""
    hardware, places = _places(kernel)
    return tuple(
        BarrierCosts(
            place.after,
            place.before,
            tuple(node.iname for node in place.around if isinstance(node, For)),
            place.barrier.reason,
            place.barrier.of_warp,
            min(CUDA.warp, prod(block)) if place.barrier.of_warp else prod(block),
            _times(kernel, hardware, place, sizes, grid, block),
            prod(grid),
            -(-prod(block) // CUDA.warp),
        )
        for place in places
    )


def _times(
    kernel: Kernel,
    hardware: Hardware,
    place: _Place,
    sizes: Mapping[str, int],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
) -> int | None:
    """In how many blocks, or warps, and iterations a barrier is executed."""
    blocks = [hidden("block", axis) for axis in range(3)]
    threads = [hidden("thread", axis) for axis in range(3)]
    warp = hidden("warp")
    domain = kernel.assumptions.set
    for names, extents in ((blocks, grid), (threads, block)):
        for name, extent in zip(names, extents, strict=True):
            domain = domain & _between(name, 0, extent)
    index = zip((1, block[0], block[0] * block[1]), map(prim.Variable, threads), strict=True)
    number = prim.Sum(tuple(prim.Product(factors) for factors in index))
    domain = domain & _sets.equality(warp, prim.FloorDiv(number, CUDA.warp))
    inames = []
    for c in hardware.coordinates:
        place_on_axis = prim.Variable((blocks if c.kind == "g" else threads)[c.axis])
        domain = domain & _sets.equality(c.iname, prim.Sum((place_on_axis, c.lower)))
        inames.append(c.iname)
    loops: list[str] = []
    for node in place.around:
        parts = _conditions(node)
        if not all(map(_sets.is_condition, parts)):
            return None
        for part in parts:
            domain = domain & _sets.condition_set(part)
        if not isinstance(node, If):
            (loops if isinstance(node, For) else inames).append(node.iname)
    known = {*blocks, *threads, warp, *inames, *loops, *sizes}
    if _sets.involved_names(domain) - known:
        return None
    try:
        found = systems(domain, (*blocks, *loops, *threads, warp, *inames), sizes)
        return distinct(found, (*blocks, *loops, *([warp] if place.barrier.of_warp else [])))
    except (TooManyPointsError, EndlessError):
        return None


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


def _between(name: str, low: int, end: int) -> isl.Set:
    variable = prim.Variable(name)
    conditions = prim.Comparison(variable, ">=", low), prim.Comparison(variable, "<", end)
    return _sets.condition_set(conditions[0]) & _sets.condition_set(conditions[1])
