"""A product whose lanes hold the accumulator layout of an mma, and the steps that lead there.

Lane ``4*g + t`` of a warp holds rows ``g`` and ``g + 8`` and columns ``2*t`` and ``2*t + 1`` of
each tile of 16x8 (PTX ISA, matrix fragments for mma.m16n8k16).
"""

from __future__ import annotations

from collections.abc import Callable

import loopkit as lk

SIZES = (
    "n mod 64 = 0 and m mod 64 = 0 and l mod 32 = 0 and 64 <= n <= 32768 and 64 <= m <= 32768"
    " and 32 <= l <= 32768"
)
LOOPS = ["ko", "kk", "mi", "nj", "r1", "r0", "k16"]
FRAGMENT = (
    "{ [i16, j8] -> [lane, r1, r0]: 0 <= lane < 32 and 0 <= r1, r0 < 2"
    " and i16 = floor(lane/4) + 8*r1 and j8 = 2*(lane mod 4) + r0 }"
)
Step = Callable[[lk.Kernel], lk.Kernel]


def product() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions=SIZES,
    )


def split(iname: str, length: int, outer: str, inner: str, tag: str | None = None) -> Step:
    def step(knl: lk.Kernel) -> lk.Kernel:
        names = {"outer_iname": outer, "inner_iname": inner, "outer_tag": tag}
        return knl.split_iname(iname, length, **names)

    return step


TILES = [
    split("i", 64, "ib", "it", "g.1"),
    split("j", 64, "jb", "jt", "g.0"),
    split("it", 32, "wi", "iw"),
    split("jt", 32, "wj", "jw"),
    split("iw", 16, "mi", "i16"),
    split("jw", 8, "nj", "j8"),
]
DIGITS = [split("i16", 8, "r1", "gid"), split("j8", 2, "tig", "r0")]
ROUNDS = [split("k", 32, "ko", "kt"), split("kt", 16, "kk", "k16")]
ORDER: list[Step] = [lambda knl: knl.prioritize_loops(LOOPS)]
LANES: list[Step] = [
    lambda knl: knl.join_inames(["gid", "tig"], "lane"),
    lambda knl: knl.join_inames(["wi", "wj"], "warp"),
]
TAGS: list[Step] = [lambda knl: knl.tag_inames({"lane": "l.0", "warp": "l.1"})]
MAPPED: list[Step] = [
    lambda knl: knl.map_domain(FRAGMENT),
    lambda knl: knl.map_domain("{ [wi, wj] -> [warp]: warp = 2*wi + wj }"),
]
EARLY = [
    split("i", 8, "ir", "gid"),
    split("j", 8, "jr", "j8"),
    split("j8", 2, "tig", "r0"),
    LANES[0],
    split("ir", 8, "ib", "ir8", "g.1"),
    split("jr", 8, "jb", "jr8", "g.0"),
    split("ir8", 4, "wi", "ir4"),
    split("ir4", 2, "mi", "r1"),
    split("jr8", 4, "wj", "nj"),
    LANES[1],
]
STAGED: list[Step] = [
    lambda knl: knl.add_prefetch(
        "a", ["warp", "mi", "r1", "lane", "kk", "k16"], default_tag="l.auto"
    ),
    lambda knl: knl.add_prefetch(
        "b", ["kk", "k16", "warp", "nj", "r0", "lane"], default_tag="l.auto"
    ),
]

SCHEDULES: dict[str, list[Step]] = {
    "joined after eight splits": [*TILES, *DIGITS, *LANES, *TAGS, *ROUNDS, *ORDER],
    "joined last": [*TILES, *DIGITS, *ROUNDS, *ORDER, *LANES, *TAGS],
    "joined first": [*EARLY, *TAGS, *ROUNDS, *ORDER],
    "mapped": [*TILES, *MAPPED, *TAGS, *ROUNDS, *ORDER],
}
