"""Each row less its mean, over its standard deviation, scaled and shifted.

Mean and variance are one reduction, of a record of three: the number of values, their mean, and the
sum of the squares of what they differ by.  Two records are joined as Chan et al. (1979) do it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pymbolic.primitives as prim
from _rows import by_blocks, by_warps

import loopkit as lk


def joined(a: Any, b: Any) -> Any:
    """Number, mean and squares of two sets of values together; of none, the mean is 0."""
    (count, mean, square), (count_b, mean_b, square_b) = a, b
    both, apart = count + count_b, mean_b - mean
    share = prim.If(prim.Comparison(both, ">", 0), count_b / both, 0.0)
    return both, mean + apart * share, square + square_b + apart * apart * count * share


def plain() -> lk.Kernel:
    """``y[i, k] = (x[i, k] - mean) / sqrt(variance + eps) * scale[k] + shift[k]``."""
    moments = lk.register_reduction(
        "moments", (0.0, 0.0, 0.0), joined, components=("count", "mean", "square")
    )
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j, k < m }",
        """
        for i
            <>_, <> mean, <> square = moments(j, float32(1), x[i, j], float32(0))
            <> factor = 1 / sqrt(square / m + eps)
            y[i, k] = (x[i, k] - mean) * factor * scale[k] + shift[k]
        end
        """,
        [lk.ValueArg("eps", "float32", default=1e-5), ...],
        name="layernorm",
        dtypes={"x, y, scale, shift": "float32"},
        assumptions="n, m >= 1",
        reductions=[moments],
    )


def make() -> dict[str, lk.Kernel]:
    """The text, and two schedules: all threads of a row know its mean and its variance."""
    return {
        "plain": plain(),
        "a block a row": by_blocks(plain(), "jk"),
        "a warp a row": by_warps(plain(), "jk"),
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
