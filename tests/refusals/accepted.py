"""Schedules that look suspicious and are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import loopkit as lk
from refusals import kernels as k
from refusals.case import Sizes, Step, do

N = ({"n": 1}, {"n": 2}, {"n": 7}, {"n": 45})
NM = ({"n": 1, "m": 1}, {"n": 2, "m": 3}, {"n": 7, "m": 33}, {"n": 20, "m": 5})
LINES = ({"steps": 1, "n": 2}, {"steps": 3, "n": 7}, {"steps": 6, "n": 21})
BLOCKS = do("split_iname", "i", 8, outer_tag="g.0", inner_tag="l.0")


@dataclass(frozen=True)
class Accepted:
    """A legal schedule."""

    name: str
    kernel: Callable[[], lk.Kernel]
    legal: tuple[Step, ...]
    sizes: tuple[Sizes, ...]


SCHEDULES = (
    # One iname heads two loops, with a dependence between them that no single loop keeps.
    Accepted(
        "one iname, two loops, and a neighbour's value between them",
        k.twice_in_turn,
        (do("split_iname", "i", 8, inner_tag="l.0"),),
        N,
    ),
    # One iname is summed over twice, the second time after the first sum was used.
    Accepted(
        "a value of the row before, between two sums over it",
        k.center,
        (do("tag_inames", "i:g.0"), do("split_iname", "j", 4), do("split_iname", "q", 4)),
        NM,
    ),
    Accepted(
        "the row before staged inside of the time loop",
        k.history,
        (
            do("split_iname", "i", 8, inner_tag="l.0"),
            do("add_prefetch", "u", "i_inner", fetch_bounding_box=False),
        ),
        LINES,
    ),
    Accepted(
        "two steps apart, two at once, unrolled",
        k.every_other,
        (do("split_iname", "i", 2, inner_tag="ilp"),),
        N,
    ),
    Accepted(
        "a sum in another order",
        k.row_dots,
        (do("map_domain", "{ [j] -> [p]: p = -j }"), do("tag_inames", "i:g.0")),
        NM[:2],
    ),
    Accepted(
        "a sum in tiles, tiles first",
        k.row_dots,
        (
            do("split_iname", "j", 4),
            do("prioritize_loops", "j_inner, j_outer"),
            BLOCKS,
        ),
        NM[:2],
    ),
    Accepted(
        "tiles with and without a full end",
        k.copied_shift,
        (do("split_iname", "i", 8, outer_tag="g.0", inner_tag="l.0", slabs=(0, 1)),),
        N,
    ),
    Accepted(
        "first and last iterations apart",
        k.recurrence,
        (do("peel_iname", "i", first=1, last=2),),
        ({"n": 4}, {"n": 9}),
    ),
    Accepted(
        "chunks of a recurrence, unrolled",
        k.recurrence_16,
        (do("chunk_iname", "i", 5, inner_tag="unr"),),
        ({},),
    ),
    Accepted(
        "columns joined and dealt out",
        k.rows_16,
        (
            do("join_inames", "i, j"),
            do("split_iname", "j_and_i", 32, outer_tag="g.0", inner_tag="l.0"),
        ),
        N,
    ),
    Accepted(
        "a triangle copied to the other side, in place",
        k.mirrored,
        (
            do("split_iname", "i", 4, outer_tag="g.0", inner_tag="l.0"),
            do("split_iname", "j", 4, outer_tag="g.1", inner_tag="l.1"),
        ),
        N,
    ),
    Accepted(
        "a value of the first thread for all others",
        k.first_for_all,
        (do("tag_inames", "i:l.0"),),
        N,
    ),
    Accepted(
        "a shift by as much as is moved",
        k.shift_by,
        (do("assume", "d >= n"), BLOCKS),
        ({"n": 7, "d": 7}, {"n": 20, "d": 31}),
    ),
    Accepted(
        "a tile in shared memory, given an axis for the rows of a block",
        k.turned_rows,
        (
            do("split_iname", "r", 2, outer_tag="g.0", inner_tag="l.1"),
            do("privatize_temporaries_with_inames", "r_inner", "t"),
            do("tag_inames", "i:l.0, j:l.0"),
        ),
        ({"n": 1}, {"n": 5}),
    ),
    Accepted(
        "a producer computed again for each of its users",
        k.three_point,
        (
            do("assignment_to_subst", "t"),
            BLOCKS,
            do("precompute", "t_subst", "i_inner"),
        ),
        N,
    ),
    Accepted(
        "a polynomial's terms by degree",
        k.polynomials,
        (
            do("map_domain", "{ [i, j] -> [d, i]: d = i + j }"),
            do("split_iname", "d", 8, outer_tag="g.0", inner_tag="l.0"),
        ),
        NM[:3],
    ),
)
