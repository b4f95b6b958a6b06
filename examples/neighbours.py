"""What sources nearby do to each point, by a ``__device__`` function of one's own.

Two sources at the distances 1 and 3: the first gives 0.016, the second lies beyond the cutoff.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk

PAIR = """
// The potential of Lennard and Jones, of the distance squared: 0 from the cutoff on.
__device__ float pair(float r2)
{
    if (r2 >= 6.25f) return 0.0f;
    float const s = 1.0f / fmaxf(r2, 0.5f);
    float const s3 = s * s * s;
    return 4.0f * (s3 * s3 - s3) + 0.0163169f;
}
"""
MEANING = "4*(max(r2, 0.5)**-6 - max(r2, 0.5)**-3) + 0.0163169 if r2 < 6.25 else 0.0"


def plain() -> lk.Kernel:
    """Point ``i`` has the sources ``near[i, :]``; ``x`` and ``source`` are places in space."""
    pair = lk.register_callable(
        "pair", {"r2": "float32"}, "float32", PAIR, meaning=MEANING, within={"r2": (0, 10)}
    )
    kernel = lk.make_kernel(
        "{ [i, k, a]: 0 <= i < n and 0 <= k < m and 0 <= a < 3 }",
        "potential[i] = sum(k, pair(sum(a, (x[i, a] - source[near[i, k], a])**2)))",
        [lk.GlobalArg("source", shape="sources, 3"), ...],
        name="neighbours",
        dtypes={"potential, x, source": "float32", "near": "int32"},
        assumptions="n, m, sources >= 1",
        functions=[pair],
    )
    return kernel.assume_within("near", 0, "sources")


def by_threads(threads: int = 128) -> lk.Kernel:
    """A thread for each point, which goes along its list."""
    return plain().split_iname("i", threads, outer_tag="g.0", inner_tag="l.0").tag_inames("a: unr")


def by_warps(warps: int = 4) -> lk.Kernel:
    """A warp for each point: its lanes read the list together, and add what they have found."""
    return (
        plain()
        .split_iname("i", warps, outer_tag="g.0", inner_tag="l.1")
        .split_iname("k", 32, inner_tag="l.0")
        .tag_inames("a: unr")
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "a thread a point": by_threads(), "a warp a point": by_warps()}


def inputs(n: int = 3000, m: int = 40, sources: int = 500, seed: int = 0) -> dict[str, Any]:
    """Points and sources anywhere in a cube, and lists without any order."""
    rng = np.random.default_rng(seed)
    return {
        "x": rng.uniform(0, 4, (n, 3)).astype(np.float32),
        "source": rng.uniform(0, 4, (sources, 3)).astype(np.float32),
        "near": rng.integers(0, sources, (n, m)).astype(np.int32),
    }


def expected(x: Any, source: Any, near: Any) -> Any:
    """The same by NumPy."""
    r2 = ((x[:, None, :].astype(np.float64) - source[near]) ** 2).sum(axis=2)
    s3 = np.maximum(r2, 0.5) ** -3
    return np.where(r2 < 6.25, 4 * (s3 * s3 - s3) + 0.0163169, 0).sum(axis=1)


def small() -> float:
    """The potential of the example's two sources, to three digits: 0.016."""
    x, source = np.zeros((1, 3), np.float32), np.diag([1, 3, 0]).astype(np.float32)
    near = np.array([[0, 1]], np.int32)
    return round(float(by_warps()(x=x, source=source, near=near)[0]), 3)


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
