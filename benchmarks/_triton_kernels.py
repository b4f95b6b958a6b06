"""Rivals for `gpu.py`, written in Triton as its users write them, and tuned by its own tuner.

All take any sizes. The first run of each tries the configurations listed here on its arguments.
"""

from __future__ import annotations

import itertools
from typing import Any

import triton
import triton.language as tl


def _configs(warps: tuple[int, ...] = (4, 8), **choices: tuple[int, ...]) -> list[Any]:
    """A configuration for each combination of choices."""
    return [
        triton.Config(dict(zip(choices, values, strict=True)), num_warps=w)
        for values in itertools.product(*choices.values())
        for w in warps
    ]


def tuned(kernel: Any) -> str:
    """What the tuner took, after the first run."""
    best = kernel.best_config
    chosen = ", ".join(f"{k} {v}" for k, v in {**best.kwargs, "warps": best.num_warps}.items())
    return f"tuned, best of {len(kernel.configs)}: {chosen}"


@triton.autotune(_configs(BLOCK=(512, 1024, 2048, 4096)), key=["n"])
@triton.jit
def add_kernel(a, b, c, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(c + at, tl.load(a + at, inside) + tl.load(b + at, inside), inside)


def add(a: Any, b: Any, c: Any) -> None:
    n = a.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](a, b, c, n)


@triton.autotune(_configs(TILE=(32, 64, 128)), key=["n", "m"])
@triton.jit
def transpose_kernel(a, out, n, m, TILE: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(1) * TILE + tl.arange(0, TILE)
    j = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tile = tl.load(a + i[:, None] * m + j[None, :], (i[:, None] < n) & (j[None, :] < m))
    tl.store(out + j[:, None] * n + i[None, :], tl.trans(tile), (j[:, None] < m) & (i[None, :] < n))


def transpose(a: Any, out: Any) -> None:
    n, m = a.shape
    transpose_kernel[lambda meta: (triton.cdiv(m, meta["TILE"]), triton.cdiv(n, meta["TILE"]))](
        a, out, n, m
    )


@triton.autotune(_configs(ROWS=(8, 16, 32, 64), PIECE=(64, 128)), key=["rows", "length"])
@triton.jit
def rows_kernel(x, out, rows, length, ROWS: tl.constexpr, PIECE: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, length, PIECE):
        at = start + tl.arange(0, PIECE)
        inside = (row[:, None] < rows) & (at[None, :] < length)
        total += tl.sum(tl.load(x + row[:, None] * length + at[None, :], inside, 0.0), 1)
    tl.store(out + row, total, row < rows)


def row_sums(x: Any, out: Any) -> None:
    rows, length = x.shape
    rows_kernel[lambda meta: (triton.cdiv(rows, meta["ROWS"]),)](x, out, rows, length)


@triton.autotune(_configs(BJ=(2, 4, 8, 16), BK=(64, 128)), key=["m", "l"])
@triton.jit
def stencil_kernel(  # type: ignore[no-untyped-def]
    u, v, m, l, c0, c1, c2, c3, c4, BJ: tl.constexpr, BK: tl.constexpr
):
    i = tl.program_id(2)
    j = tl.program_id(1) * BJ + tl.arange(0, BJ)
    k = tl.program_id(0) * BK + tl.arange(0, BK)
    inside = (j[:, None] < m) & (k[None, :] < l)
    row = l + 8
    plane = (m + 8) * row
    at = u + (i + 4) * plane + (j[:, None] + 4) * row + k[None, :] + 4
    total = c0 * tl.load(at, inside)
    for r in tl.static_range(1, 5):
        if r == 1:
            c = c1
        elif r == 2:
            c = c2
        elif r == 3:
            c = c3
        else:
            c = c4
        ring = tl.load(at - r * plane, inside) + tl.load(at + r * plane, inside)
        ring += tl.load(at - r * row, inside) + tl.load(at + r * row, inside)
        ring += tl.load(at - r, inside) + tl.load(at + r, inside)
        total += c * ring
    tl.store(v + i * m * l + j[:, None] * l + k[None, :], total, inside)


def stencil_25(u: Any, v: Any, c: list[float]) -> None:
    n, m, l = v.shape
    stencil_kernel[lambda meta: (triton.cdiv(l, meta["BK"]), triton.cdiv(m, meta["BJ"]), n)](
        u, v, m, l, *c
    )


@triton.autotune(_configs(BI=(32, 64, 128), BJ=(8, 16, 32)), key=["n"])
@triton.jit
def bodies_kernel(p, acc, n, soft, BI: tl.constexpr, BJ: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    here = i < n
    x, y, z = tl.load(p + 4 * i, here), tl.load(p + 4 * i + 1, here), tl.load(p + 4 * i + 2, here)
    # One partial sum for each column of the tile: threads meet once, at the end.
    ax = tl.zeros((BI, BJ), tl.float32)
    ay = tl.zeros((BI, BJ), tl.float32)
    az = tl.zeros((BI, BJ), tl.float32)
    for start in range(0, n, BJ):
        j = start + tl.arange(0, BJ)
        there = j < n
        dx = tl.load(p + 4 * j, there, 0.0)[None, :] - x[:, None]
        dy = tl.load(p + 4 * j + 1, there, 0.0)[None, :] - y[:, None]
        dz = tl.load(p + 4 * j + 2, there, 0.0)[None, :] - z[:, None]
        mass = tl.load(p + 4 * j + 3, there, 0.0)[None, :]
        inverse = tl.rsqrt(dx * dx + dy * dy + dz * dz + soft)
        weight = mass * inverse * inverse * inverse
        ax += weight * dx
        ay += weight * dy
        az += weight * dz
    tl.store(acc + 3 * i, tl.sum(ax, 1), here)
    tl.store(acc + 3 * i + 1, tl.sum(ay, 1), here)
    tl.store(acc + 3 * i + 2, tl.sum(az, 1), here)


def n_body(p: Any, acc: Any, soft: float) -> None:
    n = p.shape[0]
    bodies_kernel[lambda meta: (triton.cdiv(n, meta["BI"]),)](p, acc, n, soft)


@triton.autotune(_configs((1, 2, 4), BLOCK=(16, 32, 64)), key=["count"])
@triton.jit
def batched_kernel(a, b, c, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    four = tl.arange(0, 4)
    at = e[:, None, None] * 16 + four[None, :, None] * 4 + four[None, None, :]
    inside = (e < count)[:, None, None]
    left, right = tl.load(a + at, inside), tl.load(b + at, inside)
    tl.store(c + at, tl.sum(left[:, :, :, None] * right[:, None, :, :], 2), inside)


def batched_4x4(a: Any, b: Any, c: Any) -> None:
    count = a.shape[0]
    batched_kernel[lambda meta: (triton.cdiv(count, meta["BLOCK"]),)](a, b, c, count)
