"""Two tensors contracted over two of their axes, as ``numpy.einsum`` says it: tile by tile.

``[[[1, 2]]]`` and ``[[[3]], [[4]]]`` give 1*3 + 2*4, which is 11.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk

SPEC = "kil,lkj->ij"


def plain() -> lk.Kernel:
    """``out[i, j]``, the sum over ``k`` and ``l`` of ``x[k, i, l] * y[l, k, j]``."""
    return lk.make_einsum(
        SPEC,
        "x, y",
        name="contraction",
        dtypes={"x, y, out": "float32"},
        assumptions="Ni, Nj, Nk, Nl >= 1",
    )


def tiled(tile: int = 16) -> lk.Kernel:
    """A block for a tile of the result: for each ``k`` it stages tiles of both, along ``l``."""
    return (
        plain()
        .split_iname("i", tile, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", tile, outer_tag="g.0", inner_tag="l.0")
        .split_iname("l", tile)
        .prioritize_loops("k, l_outer, l_inner")
        .add_prefetch("x", ["i_inner", "l_inner"], default_tag="l.auto")
        .add_prefetch("y", ["l_inner", "j_inner"], default_tag="l.auto")
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "tiled": tiled()}


def inputs(Ni: int = 50, Nj: int = 40, Nk: int = 5, Nl: int = 30, seed: int = 0) -> dict[str, Any]:
    """Random arguments."""
    rng = np.random.default_rng(seed)
    shapes = {"x": (Nk, Ni, Nl), "y": (Nl, Nk, Nj)}
    return {name: rng.uniform(-1, 1, s).astype(np.float32) for name, s in shapes.items()}


def expected(x: Any, y: Any) -> Any:
    """The same by NumPy."""
    return np.einsum(SPEC, x.astype(np.float64), y)


def small() -> float:
    """The contraction of the example: 11."""
    x, y = np.array([[[1, 2]]], np.float32), np.array([[[3]], [[4]]], np.float32)
    return float(tiled()(x=x, y=y)[0, 0])


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
