"""A convolution of images: seven loops, three of them summed over."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk


def plain(kernel_size: int = 3) -> lk.Kernel:
    """``out[n, f]`` is the sum over channels of the images correlated with filter ``f``."""
    return lk.make_kernel(
        "{ [n, f, y, x, c, dy, dx]: 0 <= n < images and 0 <= f < filters and 0 <= y < height"
        " and 0 <= x < width and 0 <= c < channels and 0 <= dy, dx < size }",
        "out[n, f, y, x] = sum((c, dy, dx), image[n, c, y + dy, x + dx] * weight[f, c, dy, dx])",
        [
            lk.GlobalArg(
                "image", "float32", shape="images, channels, height + size - 1, width + size - 1"
            ),
            lk.GlobalArg("weight", "float32", shape="filters, channels, size, size"),
            ...,
        ],
        name="convolution",
        dtypes={"out": "float32"},
        assumptions="images, filters, height, width, channels >= 1",
        fixed_parameters={"size": kernel_size},
    )


def scheduled() -> lk.Kernel:
    """Tiles of 16 by 16 points, eight filters a thread; image with halo and weights staged."""
    return (
        plain()
        .tag_inames({"n": "g.2"})
        .split_iname("y", 16, inner_tag="l.1")
        .split_iname("x", 16, inner_tag="l.0", outer_tag="g.0")
        .split_iname("f", 8, outer_tag="g.1", inner_tag="unr")
        .tag_inames({"dy": "unr", "dx": "unr"})
        .prioritize_loops(["y_outer", "c", "dy", "dx", "f_inner"])
        .add_prefetch("image", ["y_inner", "x_inner", "dy", "dx"], default_tag="l.auto")
        .add_prefetch("weight", ["f_inner", "dy", "dx"], default_tag="l.auto")
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "scheduled": scheduled()}


def inputs(
    images: int = 2,
    filters: int = 11,
    height: int = 20,
    width: int = 35,
    channels: int = 3,
    seed: int = 0,
) -> dict[str, Any]:
    """Random arguments, for filters of 3 by 3."""
    rng = np.random.default_rng(seed)
    shapes = {
        "image": (images, channels, height + 2, width + 2),
        "weight": (filters, channels, 3, 3),
    }
    return {name: rng.uniform(-1, 1, s).astype(np.float32) for name, s in shapes.items()}


def expected(image: Any, weight: Any) -> Any:
    """The same by NumPy."""
    windows = np.lib.stride_tricks.sliding_window_view(image, weight.shape[2:], axis=(2, 3))
    return np.einsum("ncyxuv,fcuv->nfyx", windows, weight, dtype=np.float64)


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
