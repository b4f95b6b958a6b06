"""The classic texts of GPU programming, and the steps that schedule them, in any order.

What must be decided, and soon: the tests and ``benchmarks/checker.py`` take the steps in several
orders.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import block_kernels as block
import lane_kernels as lanes
import sparse_kernels as sparse

import loopkit as lk

Step = Callable[[lk.Kernel], lk.Kernel]
ORDERS = ("as listed", "backwards", "shuffled")


@dataclass(frozen=True)
class Classic:
    """A kernel, and steps made for it; each may come before each that makes none of its names.

    ``last`` are steps for which the loops must have their order.
    """

    make: Callable[[], lk.Kernel]
    steps: Callable[[lk.Kernel], Sequence[Step]]
    last: Sequence[Step] = ()

    def orders(self, knl: lk.Kernel, seed: str) -> dict[str, list[Step]]:
        """The steps in their order, backwards and shuffled, as far as these differ."""
        steps = [*self.steps(knl)]
        shuffled = random.Random(seed).sample(steps, len(steps))
        found: dict[str, list[Step]] = {}
        for name, order in zip(ORDERS, (steps, steps[::-1], shuffled), strict=True):
            if order not in found.values():
                found[name] = order
        return {name: [*order, *self.last] for name, order in found.items()}


def listed(make: Callable[[], lk.Kernel], steps: Sequence[Step]) -> Classic:
    """A kernel, and steps that need not be made for it."""
    return Classic(make, lambda _: steps)


def in_order(knl: lk.Kernel, steps: Sequence[Step]) -> Iterator[lk.Kernel]:
    """The kernel after each of the steps; one whose names a later one makes waits for it."""
    left = [*steps]
    while left:
        for step in left:
            with warnings.catch_warnings():
                warnings.simplefilter("error", lk.LoopkitWarning)
                try:
                    knl = step(knl)
                except (lk.UnknownNameError, lk.LoopkitWarning):
                    continue
            left.remove(step)
            yield knl
            break
        else:
            raise AssertionError("no step makes the names that these need")


def split(iname: str, length: int, outer: str | None = None, inner: str | None = None) -> Step:
    return lambda k: k.split_iname(iname, length, outer_tag=outer, inner_tag=inner)


def tag(tags: str) -> Step:
    return lambda k: k.tag_inames(tags)


def in_a_block(knl: lk.Kernel) -> list[Step]:
    """A block for each row, and a thread for each of its elements: a step for each iname."""
    inames = sorted({*knl.all_inames} - {"level"})
    return [tag(f"{i}: {'g.0' if i == 'b' else 'l.0'}") for i in inames]


def in_launches(knl: lk.Kernel) -> list[Step]:
    """Blocks of threads for each stage, which is a launch of its own."""
    return [split(t, 128, "g.0", "l.0") for t in sorted(knl.all_inames, key=lambda t: int(t[1:]))]


def in_blocks(iname: str) -> list[Step]:
    """Blocks of threads."""
    return [split(iname, 128), tag(f"{iname}_outer: g.0"), tag(f"{iname}_inner: l.0")]


def sorts(size: int) -> dict[str, Classic]:
    """Sorting networks, in one block and in launches."""
    found: dict[str, Classic] = {}
    for form in ("bits", "remainders"):
        found[f"bitonic sort, {form}"] = Classic(
            lambda form=form: block.bitonic(form, size),  # type: ignore[misc]
            in_a_block,
        )
        found[f"bitonic launches, {form}"] = Classic(
            lambda form=form: block.bitonic_in_launches(form, size),  # type: ignore[misc]
            in_launches,
        )
    return found


BUFFERED = ("io: g.1", "jo: g.0", "ii: l.1", "jj: l.0")
IN_FOURS = [*in_blocks("i"), split("j", 4), tag("j_inner: unr")]
LANES = [tag("lane: l.0"), tag("warp: l.1")]

OTHERS: dict[str, Classic] = {
    "tree, halves": Classic(lambda: block.tree("halves"), in_a_block),
    "tree, doubled steps": Classic(lambda: block.tree("doubled"), in_a_block),
    "tree in a loop": Classic(block.tree_in_a_loop, in_a_block),
    "Hillis-Steele, one line": Classic(lambda: block.hillis_steele("one"), in_a_block),
    "Hillis-Steele, two lines": Classic(lambda: block.hillis_steele("two"), in_a_block),
    "Blelloch, products": Classic(lambda: block.blelloch("products"), in_a_block),
    "Blelloch, remainders": Classic(lambda: block.blelloch("remainders"), in_a_block),
    "double buffer, one call": listed(block.double_buffer, [tag(", ".join(BUFFERED))]),
    "double buffer": listed(block.double_buffer, [*map(tag, BUFFERED)]),
    "histogram of a block": Classic(block.histogram, in_a_block),
    "gather": listed(block.gather, in_blocks("i")),
    "scatter": listed(block.scatter, in_blocks("i")),
    "CSR": listed(lambda: sparse.kernel("csr"), IN_FOURS),
    "COO": listed(lambda: sparse.kernel("coo"), in_blocks("e")),
    "jagged loops": listed(lambda: sparse.kernel("jagged"), IN_FOURS),
    **{
        f"lanes, {name}": Classic(
            lanes.product,
            lambda _, steps=steps: [s for s in steps if s not in lanes.TAGS] + LANES,  # type: ignore[misc]
            lanes.STAGED,
        )
        for name, steps in lanes.SCHEDULES.items()
    },
}
CLASSICS: dict[str, Classic] = {**OTHERS, **sorts(block.SIZE)}


def scheduled(name: str) -> lk.Kernel:
    """A classic text with all its steps."""
    knl = CLASSICS[name].make()
    for step in CLASSICS[name].orders(knl, name)[ORDERS[0]]:
        knl = step(knl)
    return knl
