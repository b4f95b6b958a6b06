"""Rivals for `gpu.py`, written in Triton as its users write them."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def _add(a, b, c, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(c + at, tl.load(a + at, inside) + tl.load(b + at, inside), inside)


def add(a: Any, b: Any, c: Any) -> None:
    _add[(triton.cdiv(a.numel(), 1024),)](a, b, c, a.numel(), BLOCK=1024)


@triton.jit
def _transpose(a, out, n, m, TILE: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(1) * TILE + tl.arange(0, TILE)
    j = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tile = tl.load(a + i[:, None] * m + j[None, :], (i[:, None] < n) & (j[None, :] < m))
    tl.store(out + j[:, None] * n + i[None, :], tl.trans(tile), (j[:, None] < m) & (i[None, :] < n))


def transpose(a: Any, out: Any) -> None:
    n, m = a.shape
    _transpose[(triton.cdiv(m, 64), triton.cdiv(n, 64))](a, out, n, m, TILE=64)


@triton.jit
def _rows(x, out, rows, length, ROWS: tl.constexpr, PIECE: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, length, PIECE):
        at = start + tl.arange(0, PIECE)
        inside = (row[:, None] < rows) & (at[None, :] < length)
        total += tl.sum(tl.load(x + row[:, None] * length + at[None, :], inside, 0.0), 1)
    tl.store(out + row, total, row < rows)


def row_sums(x: Any, out: Any) -> None:
    rows, length = x.shape
    _rows[(triton.cdiv(rows, 32),)](x, out, rows, length, ROWS=32, PIECE=128)


@triton.jit
def _stencil_25(  # type: ignore[no-untyped-def]
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
    grid = (triton.cdiv(l, 128), triton.cdiv(m, 8), n)
    _stencil_25[grid](u, v, m, l, *c, BJ=8, BK=128)


@triton.jit
def _n_body(p, acc, n, soft, BI: tl.constexpr, BJ: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    here = i < n
    x, y, z = tl.load(p + 4 * i, here), tl.load(p + 4 * i + 1, here), tl.load(p + 4 * i + 2, here)
    ax = tl.zeros((BI,), tl.float32)
    ay = tl.zeros((BI,), tl.float32)
    az = tl.zeros((BI,), tl.float32)
    for start in range(0, n, BJ):
        j = start + tl.arange(0, BJ)
        there = j < n
        dx = tl.load(p + 4 * j, there, 0.0)[None, :] - x[:, None]
        dy = tl.load(p + 4 * j + 1, there, 0.0)[None, :] - y[:, None]
        dz = tl.load(p + 4 * j + 2, there, 0.0)[None, :] - z[:, None]
        mass = tl.load(p + 4 * j + 3, there, 0.0)[None, :]
        inverse = tl.rsqrt(dx * dx + dy * dy + dz * dz + soft)
        weight = mass * inverse * inverse * inverse
        ax += tl.sum(weight * dx, 1)
        ay += tl.sum(weight * dy, 1)
        az += tl.sum(weight * dz, 1)
    tl.store(acc + 3 * i, ax, here)
    tl.store(acc + 3 * i + 1, ay, here)
    tl.store(acc + 3 * i + 2, az, here)


def n_body(p: Any, acc: Any, soft: float) -> None:
    n = p.shape[0]
    _n_body[(triton.cdiv(n, 128),)](p, acc, n, soft, BI=128, BJ=32)


def version() -> str:
    """Versions of Triton and of the library that it runs on."""
    return f"triton {triton.__version__}, torch {torch.__version__}"
