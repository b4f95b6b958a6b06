"""Running sums of the rows of a matrix, whose threads share each row.

A thread adds up a piece of its own, then what stands before it, and then runs through its piece.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain(threads: int = 128, items: int = 8) -> lk.Kernel:
    """Rows in chunks of so many threads' pieces, of so many numbers each."""
    column = f"{threads * items}*c + {items}*"
    return lk.make_kernel(
        [
            f"{{ [r, c]: 0 <= r < n and 0 <= c and {threads * items}*c < m }}",
            f"{{ [t, s]: 0 <= t, s < {threads} }}",
            "{ [u]: 0 <= u < t }",
            f"{{ [k]: 0 <= k < {items} and {column}t + k < m }}",
            "{ [l]: 0 <= l <= k }",
        ],
        f"""
        for r
            carried = 0 {{id=start}}
            for c
                for t
                    part[t] = sum(k, x[r, {column}t + k]) {{id=parts}}
                    ahead = carried + sum(u, part[u]) {{id=before}}
                    for k
                        y[r, {column}t + k] = ahead + sum(l, x[r, {column}t + l]) {{id=run}}
                    end
                end
                carried = carried + sum(s, part[s]) {{id=carry}}
            end
        end
        """,
        [
            lk.TemporaryVariable(
                "part", "float32", shape=threads, address_space=lk.AddressSpace.LOCAL
            ),
            lk.GlobalArg("x", "float32", shape="n, m"),
            lk.GlobalArg("y", "float32", shape="n, m"),
            lk.TemporaryVariable("carried", "float32"),
            lk.TemporaryVariable("ahead", "float32"),
            ...,
        ],
        name="scan_rows_blocks",
        assumptions="n, m >= 1",
    )


def by_blocks(threads: int = 128, items: int = 8) -> lk.Kernel:
    """A block for each row.

    Chunks pass through shared memory, there and back; a swizzle puts what threads touch at
    the same time into different banks.
    """
    knl = (
        plain(threads, items)
        .realize_reduction("id:run*", force_scan=True)
        .tag_inames("r: g.0, t: l.0, s: l.0")
        .add_prefetch("x", ["t", "k"], default_tag="l.auto")
        .buffer_array("y", ["t", "k"], default_tag="l.auto")
    )
    return knl.swizzle_array("x_s", bits=3, skip=5).swizzle_array("y_buf", bits=3, skip=5)


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "a block a row": by_blocks()}


def inputs(n: int = 256, m: int = 3000, seed: int = 0) -> dict[str, Any]:
    """Numbers between 0 and 1."""
    return {"x": np.random.default_rng(seed).random((n, m), dtype=np.float32)}


def expected(x: Any) -> Any:
    """The same by NumPy, in double precision."""
    return x.cumsum(1, dtype=np.float64)


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
