"""The sum of a long vector: blocks leave theirs to a second launch, or add them to one number."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk

PIECE = 4096
"""How many numbers a block adds up."""

_PIECES = f"0 <= {{0}} and {PIECE}*{{0}} < n"


def plain() -> lk.Kernel:
    """Sums of pieces, and their sum: the text of the two launches."""
    return lk.make_kernel(
        [
            f"{{ [b]: {_PIECES.format('b')} }}",
            f"[b, n] -> {{ [i]: {PIECE}*b <= i < {PIECE}*b + {PIECE} and i < n }}",
            f"{{ [c]: {_PIECES.format('c')} }}",
        ],
        """
        part[b] = sum(i, x[i])
        ... gbarrier
        out[0] = sum(c, part[c])
        """,
        [lk.TemporaryVariable("part", "float32", shape=f"n // {PIECE} + 1"), ...],
        name="full_sum",
        dtypes={"x, out": "float32"},
        assumptions="n >= 1",
    )


def by_two_launches(threads: int = 256) -> lk.Kernel:
    """A block for each piece; one block for what they leave."""
    return (
        plain()
        .split_iname("i", threads, inner_tag="l.0")
        .split_iname("c", threads, inner_tag="l.0")
        .tag_inames("b: g.0")
    )


def with_atomics() -> lk.Kernel:
    """What each piece comes to is added to one number."""
    return lk.make_kernel(
        [
            f"{{ [b]: {_PIECES.format('b')} }}",
            f"[b, n] -> {{ [i]: {PIECE}*b <= i < {PIECE}*b + {PIECE} and i < n }}",
        ],
        """
        out[0] = 0
        ... gbarrier
        <> part = sum(i, x[i])
        out[0] = out[0] + part {atomic}
        """,
        name="full_sum_atomic",
        dtypes={"x, out": "float32"},
        assumptions="n >= 1",
    )


def by_atomics(threads: int = 256) -> lk.Kernel:
    """A block for each piece, one thread of which adds what its block has found."""
    knl = with_atomics().split_iname("i", threads, inner_tag="l.0")
    return knl.tag_inames("b: g.0")


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "two launches": by_two_launches(), "atomics": by_atomics()}


def inputs(n: int = 100_000, seed: int = 0) -> dict[str, Any]:
    """Numbers between 0 and 1."""
    return {"x": np.random.default_rng(seed).random(n, dtype=np.float32)}


def expected(x: Any) -> Any:
    """The same by NumPy, in double precision."""
    return x.sum(dtype=np.float64, keepdims=True)


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
