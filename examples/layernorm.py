"""Each row less its mean, over its standard deviation, scaled and shifted.

Mean and variance are two sums, the second of what differs from the first.  Or they are one
reduction, of a record of three: the number of values, their mean, and the sum of the squares of
what they differ by.  Two records are joined as Chan et al. (1979) do it: a row is read once less,
for more arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pymbolic.primitives as prim
from _rows import by_blocks, by_blocks_at_once, by_warps

import loopkit as lk

EPS = lk.ValueArg("eps", "float32", default=1e-5)
TYPES = {"x, y, scale, shift": "float32"}


def joined(a: Any, b: Any) -> Any:
    """Number, mean and squares of two sets of values together; of none, the mean is 0."""
    (count, mean, square), (count_b, mean_b, square_b) = a, b
    both, apart = count + count_b, mean_b - mean
    share = prim.If(prim.Comparison(both, ">", 0), count_b / both, 0.0)
    return both, mean + apart * share, square + square_b + apart * apart * count * share


def plain() -> lk.Kernel:
    """``y[i, l] = (x[i, l] - mean) / sqrt(variance + eps) * scale[l] + shift[l]``."""
    return lk.make_kernel(
        "{ [i, j, k, l]: 0 <= i < n and 0 <= j, k, l < m }",
        """
        for i
            <> mean = sum(j, x[i, j]) / m
            <> factor = 1 / sqrt(sum(k, (x[i, k] - mean)**2) / m + eps)
            y[i, l] = (x[i, l] - mean) * factor * scale[l] + shift[l]
        end
        """,
        [EPS, ...],
        name="layernorm",
        dtypes=TYPES,
        assumptions="n, m >= 1",
    )


def by_moments() -> lk.Kernel:
    """The same, with both sums in one reduction."""
    moments = lk.register_reduction(
        "moments", (0.0, 0.0, 0.0), joined, components=("count", "mean", "square")
    )
    return lk.make_kernel(
        "{ [i, j, l]: 0 <= i < n and 0 <= j, l < m }",
        """
        for i
            <>_, <> mean, <> square = moments(j, float32(1), x[i, j], float32(0))
            <> factor = 1 / sqrt(square / m + eps)
            y[i, l] = (x[i, l] - mean) * factor * scale[l] + shift[l]
        end
        """,
        [EPS, ...],
        name="layernorm",
        dtypes=TYPES,
        assumptions="n, m >= 1",
        reductions=[moments],
    )


def make() -> dict[str, lk.Kernel]:
    """The text, and schedules: all threads of a row know its mean and its variance."""
    return {
        "plain": plain(),
        "a block a row": by_blocks(plain(), "jkl"),
        "a warp a row": by_warps(plain(), "jkl"),
        "a block a row, read once": by_blocks_at_once(plain(), "jkl", threads=512),
        "a block a row, one reduction": by_blocks(by_moments(), "jl"),
    }


def inputs(n: int = 77, m: int = 300, seed: int = 0) -> dict[str, Any]:
    """Numbers far from zero, whose squares would lose the variance."""
    rng = np.random.default_rng(seed)
    x = (100 + rng.normal(size=(n, m))).astype(np.float32)
    scale, shift = rng.normal(size=(2, m)).astype(np.float32)
    return {"x": x, "scale": scale, "shift": shift}


def expected(x: Any, scale: Any, shift: Any) -> Any:
    """The same by NumPy, in double precision."""
    x = x.astype(np.float64)
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * scale + shift


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
