"""Running sums of the rows of a matrix, whose threads share each row.

Each thread adds what is its own, and a scan gives it what stands before; then it runs through its
piece.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scan_rows

import loopkit as lk


def plain(items: int = 8) -> lk.Kernel:
    """Rows in pieces of so many numbers: what stands before each, and what stands in it."""
    column = f"{items}*t"
    return lk.make_kernel(
        [
            f"{{ [r, t]: 0 <= r < n and 0 <= t and {column} < m }}",
            f"{{ [u, v]: 0 <= u < t and 0 <= v < {items} }}",
            f"{{ [k]: 0 <= k < {items} and {column} + k < m }}",
            "{ [l]: 0 <= l <= k }",
        ],
        f"""
        for r, t
            <> ahead = sum((u, v), x[r, {items}*u + v]) {{id=before}}
            for k
                y[r, {column} + k] = ahead + sum(l, x[r, {column} + l]) {{id=run}}
            end
        end
        """,
        [
            lk.GlobalArg("x", "float32", shape="n, m"),
            lk.GlobalArg("y", "float32", shape="n, m"),
            ...,
        ],
        name="scan_rows_blocks",
        assumptions="n, m >= 1",
    )


def by_pieces(threads: int = 128, items: int = 8) -> lk.Kernel:
    """A block for each row, a thread for each piece.

    Pieces pass through shared memory, there and back; a swizzle puts what threads touch at the
    same time into different banks.
    """
    knl = (
        plain(items)
        .realize_reduction(force_scan=True)
        .tag_inames("r: g.0, v: unr, k: unr")
        .split_iname("t", threads, outer_iname="c", inner_iname="s", inner_tag="l.0")
        .add_prefetch("x", ["s", "v", "k"], default_tag="l.auto")
        .buffer_array("y", ["s", "k"], default_tag="l.auto")
    )
    bits = (items - 1).bit_length()
    return knl.swizzle_array("x_s", bits=bits, skip=5).swizzle_array("y_buf", bits=bits, skip=5)


def by_numbers(threads: int = 256) -> lk.Kernel:
    """A block for each row, a thread for each number."""
    return (
        scan_rows.plain()
        .realize_reduction(force_scan=True)
        .tag_inames("r: g.0")
        .split_iname("i", threads, inner_tag="l.0")
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {
        "plain": plain(),
        "a thread a piece": by_pieces(),
        "a thread a number": by_numbers(),
    }


def inputs(n: int = 256, m: int = 3000, seed: int = 0) -> dict[str, Any]:
    """Numbers between 0 and 1."""
    return {"x": np.random.default_rng(seed).random((n, m), dtype=np.float32)}


def expected(x: Any) -> Any:
    """The same by NumPy, in double precision."""
    return x.cumsum(1, dtype=np.float64)


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
