"""The classic texts of GPU programming, scheduled step by step: what must be quick to prove."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import block_kernels as block
import lane_kernels as lanes

import loopkit as lk

Step = Callable[[lk.Kernel], lk.Kernel]
SIZE = block.SIZE


def _tags(knl: lk.Kernel, **axes: str) -> Iterator[Step]:
    """A step for each iname: on the axis that is given for it, or a thread of its own."""
    for iname in sorted(knl.all_inames):
        tag = axes.get(iname, "l.0")
        if tag:
            yield lambda k, i=iname, t=tag: k.tag_inames({i: t})  # type: ignore[misc]


def _in_a_block(knl: lk.Kernel) -> tuple[lk.Kernel, Sequence[Step]]:
    return knl, [*_tags(knl, b="g.0", level="")]


def bitonic_in_launches(form: str) -> tuple[lk.Kernel, Sequence[Step]]:
    """A sorting network of one stage a launch: pairs in global memory."""
    knl = block.bitonic_in_launches(form, SIZE)
    stages = sorted(knl.all_inames, key=lambda t: int(t[1:]))
    return knl, [
        lambda k, t=t: k.split_iname(t, 128, outer_tag="g.0", inner_tag="l.0")  # type: ignore[misc]
        for t in stages
    ]


def _double_buffer() -> tuple[lk.Kernel, Sequence[Step]]:
    tags = {"io": "g.1", "jo": "g.0", "ii": "l.1", "jj": "l.0"}
    return block.double_buffer(), [lambda k: k.tag_inames(tags)]


def _lanes(name: str) -> tuple[lk.Kernel, Sequence[Step]]:
    return lanes.product(), [*lanes.SCHEDULES[name], *lanes.STAGED]


CLASSICS: dict[str, Callable[[], tuple[lk.Kernel, Sequence[Step]]]] = {
    "tree, halves": lambda: _in_a_block(block.tree("halves")),
    "tree, doubled steps": lambda: _in_a_block(block.tree("doubled")),
    "tree in a loop": lambda: _in_a_block(block.tree_in_a_loop()),
    "Hillis-Steele, one line": lambda: _in_a_block(block.hillis_steele("one")),
    "Hillis-Steele, two lines": lambda: _in_a_block(block.hillis_steele("two")),
    "Blelloch, products": lambda: _in_a_block(block.blelloch("products")),
    "Blelloch, remainders": lambda: _in_a_block(block.blelloch("remainders")),
    "bitonic sort, bits": lambda: _in_a_block(block.bitonic("bits", SIZE)),
    "bitonic sort, remainders": lambda: _in_a_block(block.bitonic("remainders", SIZE)),
    "bitonic launches, bits": lambda: bitonic_in_launches("bits"),
    "bitonic launches, remainders": lambda: bitonic_in_launches("remainders"),
    "double buffer": _double_buffer,
    "histogram of a block": lambda: _in_a_block(block.histogram()),
    "gather": lambda: (block.gather(), block.IN_BLOCKS),
    "scatter": lambda: (block.scatter(), block.IN_BLOCKS),
    **{f"lanes, {name}": lambda name=name: _lanes(name) for name in lanes.SCHEDULES},  # type: ignore[misc]
}


def scheduled(name: str) -> lk.Kernel:
    """A classic text with all its steps."""
    knl, steps = CLASSICS[name]()
    for step in steps:
        knl = step(knl)
    return knl
