"""Running sums of a long vector, in three launches, or in one whose blocks look back.

Blocks add up their pieces; one block makes the running sums of what they have found; then each
block makes those of its piece from what stands before it.  Or all of that in one launch: a block
waits for those before it, which have begun before it has.
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
            f"[d, n] -> {{ [t]: 0 <= t < {threads} and {first} < n }}",
            f"[t] -> {{ [u, v]: 0 <= u < t and 0 <= v < {items} }}",
            f"[d, t, n] -> {{ [k]: 0 <= k < {items} and {first} + k < n }}",
            "[k] -> { [l]: 0 <= l <= k }",
        ],
        f"""
        total[b] = sum(h, x[h]) {{id=totals}}
        ... gbarrier
        before[c] = sum(e, total[e]) {{id=run_totals}}
        ... gbarrier
        for d, t
            <> ahead = before[d] + sum((u, v), x[{piece}*d + {items}*u + v]) {{id=ahead}}
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
            ...,
        ],
        name="scan",
        assumptions="n >= 1",
    )


def by_three_launches(threads: int = 128, items: int = 16, middle: int = 1024) -> lk.Kernel:
    """A block for each piece; one of ``middle`` threads between; a block for each piece again.

    A thread's numbers lie side by side: pieces pass through shared memory, there and back, in rows
    as long as there are banks, and one more, so that what threads touch at the same time lies in
    different banks.
    """
    knl = (
        plain(threads, items)
        .realize_reduction("id:run* or id:ahead*", force_scan=True)
        .split_iname("h", threads, inner_tag="l.0")
        .tag_inames("b: g.0, d: g.0, t: l.0, v: unr, k: unr")
        .add_prefetch("x", ["t", "v", "k"], default_tag="l.auto", within="id:ahead* or id:run*")
        .buffer_array("y", ["t", "k"], default_tag="l.auto")
        .split_iname("c", middle, inner_tag="l.0")
    )
    return _in_rows(knl)


def _in_rows(knl: lk.Kernel) -> lk.Kernel:
    """The pieces in shared memory: rows of 32 numbers, each of which begins a bank further."""
    knl = knl.split_array_dim([("x_s", 0), ("y_buf", 0)], 32)
    return knl.pad_temporary("x_s", 1, 1).pad_temporary("y_buf", 1, 1)


def of_threads(items: int = 16) -> lk.Kernel:
    """The text of one launch: so many numbers of each thread, behind those of all before it."""
    return lk.make_kernel(
        [
            f"{{ [t]: 0 <= t and {items}*t < n }}",
            f"[t] -> {{ [u, v]: 0 <= u < t and 0 <= v < {items} }}",
            f"[t, n] -> {{ [k]: 0 <= k < {items} and {items}*t + k < n }}",
            "[k] -> { [l]: 0 <= l <= k }",
        ],
        f"""
        for t
            <> ahead = sum((u, v), x[{items}*u + v]) {{id=ahead}}
            for k
                y[{items}*t + k] = ahead + sum(l, x[{items}*t + l]) {{id=run}}
            end
        end
        """,
        [lk.GlobalArg(name, "float32", shape="n") for name in "xy"] + [...],
        name="scan",
        assumptions="n >= 1",
    )


def by_looking_back(threads: int = 128, items: int = 16) -> lk.Kernel:
    """One launch, in which each block looks back at those before it: all is read and written once.

    A thread's numbers pass through shared memory as in three launches.
    """
    knl = (
        of_threads(items)
        .realize_reduction("id:ahead*", force_scan=True, by="lookback")
        .realize_reduction("id:run*", force_scan=True)
        .split_iname("t", threads, outer_tag="g.0", inner_tag="l.0")
        .tag_inames("v: unr, k: unr")
        .add_prefetch("x", ["t_inner", "v", "k"], default_tag="l.auto")
        .buffer_array("y", ["t_inner", "k"], default_tag="l.auto")
    )
    return _in_rows(knl)


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {
        "plain": plain(),
        "three launches": by_three_launches(),
        "look-back": by_looking_back(),
    }


def inputs(n: int = 10_000, seed: int = 0) -> dict[str, Any]:
    """Numbers between 0 and 1."""
    return {"x": np.random.default_rng(seed).random(n, dtype=np.float32)}


def expected(x: Any) -> Any:
    """The same by NumPy, in double precision."""
    return x.cumsum(dtype=np.float64)


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
