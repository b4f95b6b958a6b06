"""Fourier transforms of 64 points: six stages, each of which joins transforms of half the length.

Of a single one followed by zeros it is one everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk

#: The lengths that stages join two of.
HALVES = (1, 2, 4, 8, 16, 32)
#: Powers of a 64th root of one.
TURNS = np.exp(-2j * np.pi * np.arange(32) / 64).astype(np.complex64)


def stage(half: int) -> str:
    """Pair ``p`` is of points ``p % half`` of two transforms of ``half`` points."""
    p = f"p{half}"
    low = f"{2 * half}*({p} // {half}) + {p} % {half}"
    return f"""
            for {p}
                <> even = z[{low}]
                <> odd = turn[{32 // half}*({p} % {half})]*z[{low} + {half}]
                z[{low}] = even + odd
                z[{low} + {half}] = even - odd
            end"""


def plain() -> lk.Kernel:
    """Points are taken in the order that they have with their bits reversed."""
    pairs = ", ".join(f"p{half}" for half in HALVES)
    return lk.make_kernel(
        [
            "{ [e]: 0 <= e < n }",
            "{ [i, k]: 0 <= i, k < 64 }",
            f"{{ [{pairs}]: 0 <= {pairs} < 32 }}",
        ],
        f"""
        turned(i) := (i & 1) << 5 | (i & 2) << 3 | (i & 4) << 1 | i >> 1 & 4 | i >> 3 & 2 | i >> 5
        for e
            <> z[i] = x[e, turned(i)]
            {"".join(map(stage, HALVES))}
            y[e, k] = z[k]
        end
        """,
        [lk.TemporaryVariable("turn", initializer=TURNS, read_only=True), ...],
        name="fft",
        dtypes={"x, y": "complex64"},
        assumptions="n >= 1",
    )


def unrolled(threads: int = 64) -> lk.Kernel:
    """A thread for each transform: its points are in registers, and all loops are unrolled."""
    return (
        plain()
        .split_iname("e", threads, outer_tag="g.0", inner_tag="l.0")
        .tag_inames(dict.fromkeys(["i", "k", *(f"p{half}" for half in HALVES)], "unr"))
    )


def shared(each: int = 4) -> lk.Kernel:
    """A warp for each transform, a thread for each pair: loads meet in no bank of shared memory."""
    return (
        plain()
        .split_iname("e", each, outer_tag="g.0", inner_tag="l.1")
        .privatize_temporaries_with_inames("e_inner", "z")
        .set_temporary_address_space("z", "shared")
        .tag_array_axes("z", "f")
        .swizzle_array("z", axis=0, by=0, bits=4, skip=1)
        .split_iname("i", 32, outer_tag="unr", inner_tag="l.0")
        .split_iname("k", 32, outer_tag="unr", inner_tag="l.0")
        .tag_inames(dict.fromkeys((f"p{half}" for half in HALVES), "l.0"))
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "unrolled": unrolled(), "shared": shared()}


def inputs(n: int = 70, seed: int = 0) -> dict[str, Any]:
    """Random points."""
    rng = np.random.default_rng(seed)
    return {"x": (rng.normal(size=(n, 64)) + 1j * rng.normal(size=(n, 64))).astype(np.complex64)}


def expected(x: Any) -> Any:
    """The same by NumPy."""
    return np.fft.fft(x)


def small() -> list[complex]:
    """What is first and last of the example's transform: one, twice."""
    found = unrolled()(x=np.eye(1, 64, dtype=np.complex64))
    return [complex(found[0, 0]), complex(found[0, -1])]


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
