"""Matrix product with register tiles: 128 by 128 a block, 8 by 8 a thread."""

from __future__ import annotations

from typing import Any

from matmul import expected, inputs, plain, threads, tiled

import loopkit as lk

#: Sizes for which every tile is full, and index arithmetic fits 32 bits.
FULL_TILES = (
    "n mod 128 = 0 and m mod 128 = 0 and l mod 16 = 0 and "
    "128 <= n <= 32768 and 128 <= m <= 32768 and 16 <= l <= 32768"
)


def blocked(depth: int = 8, *, full_tiles: bool = True) -> lk.Kernel:
    """Each thread's rows, and likewise its columns, are two groups of four, 64 apart.

    Without ``full_tiles`` sizes are free.
    """
    knl = plain()
    if full_tiles:
        knl = knl.assume(FULL_TILES)
    for iname, axis in (("i", 1), ("j", 0)):
        knl = (
            knl.split_iname(iname, 128, inner_iname=f"{iname}_tile", outer_tag=f"g.{axis}")
            .split_iname(
                f"{iname}_tile",
                64,
                outer_iname=f"{iname}_group",
                inner_iname=f"{iname}_part",
                outer_tag="unr",
            )
            .split_iname(
                f"{iname}_part",
                4,
                outer_iname=f"{iname}_thread",
                inner_iname=f"{iname}_one",
                outer_tag=f"l.{axis}",
                inner_tag="unr",
            )
        )
    mine = ["i_group", "i_one", "j_group", "j_one"]
    return knl.split_iname("k", depth, inner_tag="unr").prioritize_loops(
        ["k_outer", "k_inner", *mine]
    )


def staged(depth: int = 8, *, full_tiles: bool = True) -> lk.Kernel:
    """The tiles of both factors in shared memory."""
    return (
        blocked(depth, full_tiles=full_tiles)
        .add_prefetch("a", ["i_group", "i_thread", "i_one", "k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["k_inner", "j_group", "j_thread", "j_one"], default_tag="l.auto")
    )


def registers(depth: int = 8, *, full_tiles: bool = True) -> lk.Kernel:
    """Staged so that the loads of a warp meet in no bank of shared memory.

    Four neighbours are one load of 128 bits.  The tile of ``a`` is kept transposed for that,
    its rows padded so that writing it meets in no bank either.

    Without ``full_tiles`` tiles at the edges are fetched in part, and the last step along
    ``k``, which may be shorter, stands apart from the others.
    """
    knl = staged(depth, full_tiles=full_tiles).tag_array_axes("a_s", "f").pad_temporary("a_s", 0, 4)
    return knl if full_tiles else knl.peel_iname("k_outer", last=1)


def steps() -> dict[str, lk.Kernel]:
    """The way there: what is added to the schedule, one thing after the other."""
    return {
        "a thread an element": threads(),
        "+ tiles in shared memory": tiled(),
        "8 by 8 elements a thread": blocked(),
        "+ tiles in shared memory, of 8": staged(),
        "+ that of a transposed": staged().tag_array_axes("a_s", "f"),
        "+ padded": registers(),
    }


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {
        "plain": plain(),
        "full tiles": registers(),
        "any size": registers(16, full_tiles=False),
    }


def full_inputs(seed: int = 0) -> dict[str, Any]:
    """Random arguments of sizes for full tiles."""
    return inputs(256, 128, 48, seed)


if __name__ == "__main__":
    from _gallery import present

    present(make(), full_inputs(), expected(**full_inputs()))
