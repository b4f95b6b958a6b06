"""Running sums of a long vector in three launches: sums of pieces, their running sums, and all.

A block adds up its piece, one thread runs through what the blocks have found, and then each block
runs through its piece from what stands before it: within a launch, blocks wait for nobody.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain(threads: int = 128, items: int = 16) -> lk.Kernel:
    """The text of the three launches: a piece holds so many numbers of each of so many threads."""
    piece = threads * items
    first = f"{piece}*d + {items}*t"
    return lk.make_kernel(
        [
            f"{{ [b, c, d]: 0 <= b, c, d and {piece}*b < n and {piece}*c < n and {piece}*d < n }}",
            f"[b, n] -> {{ [h]: {piece}*b <= h < {piece}*b + {piece} and h < n }}",
            "[c] -> { [e]: 0 <= e < c }",
            f"{{ [t]: 0 <= t < {threads} }}",
            f"[d, t, n] -> {{ [k]: 0 <= k < {items} and {first} + k < n }}",
            "[t] -> { [u]: 0 <= u < t }",
            "[k] -> { [l]: 0 <= l <= k }",
        ],
        f"""
        total[b] = sum(h, x[h]) {{id=totals}}
        ... gbarrier
        before[c] = sum(e, total[e]) {{id=run_totals}}
        ... gbarrier
        for d, t
            part[t] = sum(k, x[{first} + k]) {{id=parts}}
            ahead = before[d] + sum(u, part[u]) {{id=ahead}}
            for k
                y[{first} + k] = ahead + sum(l, x[{first} + l]) {{id=run}}
            end
        end
        """,
        [
            lk.GlobalArg("x", "float32", shape="n"),
            lk.GlobalArg("y", "float32", shape="n"),
            *(
                lk.TemporaryVariable(t, "float32", shape=f"n // {piece} + 1")
                for t in ("total", "before")
            ),
            lk.TemporaryVariable("part", "float32", threads, lk.AddressSpace.LOCAL),
            lk.TemporaryVariable("ahead", "float32"),
            ...,
        ],
        name="scan",
        assumptions="n >= 1",
    )


def by_three_launches(threads: int = 128, items: int = 16) -> lk.Kernel:
    """A block for each piece; one thread for what the blocks leave; a block for each piece again.

    A thread's numbers lie side by side: pieces pass through shared memory, there and back, and
    swizzles put what threads touch at the same time into different banks.
    """
    knl = (
        plain(threads, items)
        .realize_reduction("id:run*", force_scan=True)
        .split_iname("h", threads, inner_tag="l.0")
        .tag_inames("b: g.0, d: g.0, t: l.0")
        .add_prefetch("x", ["t", "k"], default_tag="l.auto", within="id:parts* or id:run*")
        .buffer_array("y", ["t", "k"], default_tag="l.auto")
    )
    return knl.swizzle_array("x_s", bits=4, skip=5).swizzle_array("y_buf", bits=4, skip=5)


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "three launches": by_three_launches()}


def inputs(n: int = 10_000, seed: int = 0) -> dict[str, Any]:
    """Numbers between 0 and 1."""
    return {"x": np.random.default_rng(seed).random(n, dtype=np.float32)}


def expected(x: Any) -> Any:
    """The same by NumPy, in double precision."""
    return x.cumsum(dtype=np.float64)


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
