"""The cases of `gpu.py` in which threads work together: sums, scans, sorting, sparse rows.

Each is made for a size and a device, so that everything but the time can be tried without a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

import loopkit as lk

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import argmin
import bitonic
import full_sum
import histogram
import layernorm
import scan_rows_blocks
import scan_vector
import scatter
import softmax
import spmv
from _gpu_case import Case, Rival, Target, error, untuned
from _rows import by_blocks, by_blocks_ahead, by_blocks_at_once, by_warps

FLOOR = 0.85
"""Of the speed of a copy, or of reading: what rows and sums are to reach at least."""


def returning(run: Any, what: str) -> Rival:
    """A rival that gives back its result, as its users take it."""
    return Rival(run, lambda: f"untuned: {what}", returns=True)


def numbers(*shape: int, on: str) -> Any:
    return torch.rand(shape, device=on) * 2 - 1


def schedules(best: str, kernel: lk.Kernel, text: Any, inames: str) -> dict[str, lk.Kernel]:
    """The best first; then a row for a block, and one for a warp, read as the text reads it."""
    found = {
        f"{threads} threads a row, any size": by_blocks(text(), inames, threads)
        for threads in (256, 512, 1024)
    }
    return {best: kernel, **found, "a warp a row, any size": by_warps(text(), inames)}


def read_once(threads: int) -> str:
    return f"{threads} threads a row, read once, rows of 4096 at most"


def targets(kernels: Mapping[str, Any], what: str) -> dict[str, Target]:
    return {next(iter(kernels)): Target(FLOOR, f"{what}; share chosen")}


def rows_softmax(n: int, m: int, on: str) -> Case:
    x, y = numbers(n, m, on=on), torch.empty(n, m, device=on)
    best = by_blocks_at_once(softmax.plain(), "jkl")
    kernels = schedules(read_once(256), best, softmax.plain, "jkl")
    return Case(
        "softmax",
        f"{n} x {m}",
        8e-12 * n * m,
        "TB/s",
        kernels,
        (*kernels,)[:1],
        {"x": x, "y": y},
        "y",
        lambda got: error(got, torch.softmax(x.double(), 1)),
        1e-5,
        ("copy",),
        {"torch, any size": returning(lambda: torch.softmax(x, 1), "torch.softmax")},
        targets(kernels, "8 n m bytes, each number read and written once, as fast as a copy"),
    )


def rows_layernorm(n: int, m: int, on: str) -> Case:
    x, y = 3 + numbers(n, m, on=on), torch.empty(n, m, device=on)
    scale, shift = numbers(m, on=on), numbers(m, on=on)
    norm = torch.nn.functional.layer_norm
    best = by_blocks_at_once(layernorm.plain(), "jkl", threads=512)
    kernels = {
        **schedules(read_once(512), best, layernorm.plain, "jkl"),
        "256 threads a row, one reduction, any size": by_blocks(layernorm.by_moments(), "jl"),
    }
    return Case(
        "layer normalisation",
        f"{n} x {m}",
        8e-12 * n * m,
        "TB/s",
        kernels,
        (*kernels,)[:1],
        {"x": x, "scale": scale, "shift": shift, "y": y},
        "y",
        lambda got: error(got, norm(x.double(), [m], scale.double(), shift.double())),
        1e-4,
        ("copy",),
        {
            "torch, any size": returning(
                lambda: norm(x, [m], scale, shift), "torch.nn.functional.layer_norm"
            )
        },
        targets(kernels, "8 n m bytes, each number read and written once, as fast as a copy"),
    )


def whole_sum(n: int, on: str) -> Case:
    x, out = torch.rand(n, device=on), torch.empty(1, device=on)
    kernels = {
        "two launches, any size": full_sum.by_two_launches(),
        "atomics, any size": full_sum.by_atomics(),
    }
    return Case(
        "sum",
        f"{n}",
        4e-12 * n,
        "TB/s",
        kernels,
        (*kernels,),
        {"x": x, "out": out},
        "out",
        lambda got: error(got.reshape(1), x.sum(dtype=torch.float64).reshape(1)),
        1e-4,
        ("read",),
        {"torch, any size": returning(lambda: torch.sum(x), "torch.sum")},
        targets(kernels, "4 n bytes, each number read once, as fast as reading"),
    )


def rows_argmin(n: int, m: int, on: str) -> Case:
    # Few different numbers, so that the first of equal ones must be found.
    x = torch.randint(0, 1000, (n, m), device=on).float()
    least = torch.empty(n, device=on)
    place = torch.empty(n, dtype=torch.int32, device=on)

    def check(got: tuple[Any, Any]) -> float:
        """The value must be the smallest, and stand where it is said to be."""
        values, places = got
        wanted = x.min(1).values
        there = x.gather(1, places.long().clamp(0, m - 1)[:, None])[:, 0]
        return max(float((values != wanted).sum()), float((there != wanted).sum()))

    kernels = {
        **schedules(
            "128 threads a row, 8 loads ahead, any size",
            by_blocks_ahead(argmin.plain(), "j"),
            argmin.plain,
            "j",
        ),
        "128 rows a block, any size": argmin.scheduled(),
    }
    return Case(
        "argmin",
        f"{n} x {m}",
        4e-12 * n * m,
        "TB/s",
        kernels,
        (*kernels,)[:1],
        {"x": x, "least": least, "place": place},
        "least, place",
        check,
        0.0,
        ("read",),
        {"torch, any size": returning(lambda: torch.min(x, 1), "torch.min")},
        targets(kernels, "4 n m bytes, each number read once, as fast as reading"),
    )


def rows_scan(n: int, m: int, on: str) -> Case:
    x, y = torch.rand(n, m, device=on), torch.empty(n, m, device=on)
    kernels = {
        f"{threads} threads a row, {items} each, any size": scan_rows_blocks.by_pieces(
            threads, items
        )
        for threads, items in ((128, 8), (256, 8), (512, 8), (128, 16), (256, 4))
    }
    kernels |= {
        f"{threads} threads a row, any size": scan_rows_blocks.by_numbers(threads)
        for threads in (256, 512, 1024)
    }
    return Case(
        "scan of rows",
        f"{n} x {m}",
        8e-12 * n * m,
        "TB/s",
        kernels,
        ("128 threads a row, 8 each, any size", "512 threads a row, any size"),
        {"x": x, "y": y},
        "y",
        lambda got: error(got, x.double().cumsum(1)),
        1e-5,
        ("copy",),
        {"torch, any size": untuned(lambda: torch.cumsum(x, 1, out=y), "torch.cumsum")},
    )


def vector_scan(n: int, on: str) -> Case:
    x, y = torch.rand(n, device=on), torch.empty(n, device=on)
    kernels = {
        f"three launches, {threads} threads, {items} each, any size": (
            scan_vector.by_three_launches(threads, items)
        )
        for threads, items in ((128, 16), (256, 16), (256, 8), (512, 16))
    } | {
        f"look-back, {threads} threads, {items} each, any size": (
            scan_vector.by_looking_back(threads, items)
        )
        for threads, items in ((128, 16), (256, 8), (512, 8), (512, 16), (1024, 8))
    }
    return Case(
        "scan of a vector",
        f"{n}",
        8e-12 * n,
        "TB/s",
        kernels,
        (
            "three launches, 128 threads, 16 each, any size",
            "look-back, 512 threads, 16 each, any size",
        ),
        {"x": x, "y": y},
        "y",
        lambda got: error(got, x.double().cumsum(0)),
        1e-4,
        ("copy",),
        {"torch, any size": untuned(lambda: torch.cumsum(x, 0, out=y), "torch.cumsum")},
    )


def rows_sort(n: int, size: int, on: str) -> Case:
    """Rows as long as a power of two, 1,024 at most: each is sorted in shared memory."""
    # Few different numbers: some are equal.
    x, y = torch.randint(-999, 1000, (n, size), device=on).float(), torch.empty(n, size, device=on)
    kernels = {f"{size} threads a row, rows of {size}": bitonic.by_blocks(size)}
    return Case(
        "sorting rows",
        f"{n} x {size}",
        1e-9 * n * size,
        "G numbers/s",
        kernels,
        (*kernels,),
        {"x": x, "y": y},
        "y",
        lambda got: float((got != x.sort(1).values).sum()),
        0.0,
        ("torch, any size",),
        {"torch, any size": returning(lambda: torch.sort(x, 1).values, "torch.sort")},
    )


def bins(n: int, on: str) -> Case:
    values = torch.randint(0, histogram.BINS, (n,), device=on, dtype=torch.int32)
    counts = torch.zeros(histogram.BINS, dtype=torch.int32, device=on)
    kernels = {
        "shared memory, any size": histogram.privatised(),
        "global atomics, any size": histogram.threads(),
    }
    wanted = torch.bincount(values.cpu().long(), minlength=histogram.BINS)
    return Case(
        "histogram",
        f"{n}, {histogram.BINS} bins",
        4e-12 * n,
        "TB/s",
        kernels,
        (*kernels,),
        {"values": values, "counts": counts},
        "counts",
        lambda got: float((got.cpu().long() - wanted).abs().max()),
        0.0,
        ("read",),
        {
            "torch, any size": returning(
                lambda: torch.bincount(values, minlength=histogram.BINS), "torch.bincount"
            )
        },
        start=0,
    )


def deposit(particles: int, n: int, on: str) -> Case:
    x, y = (torch.rand(particles, device=on) * n for _ in range(2))
    q, rho = numbers(particles, on=on), torch.zeros(n + 1, n + 1, device=on)
    column, row = (place.int().clamp(0, n - 1) for place in (x, y))

    def corners(into: Any) -> Any:
        u, v = (x - column).to(into.dtype), (y - row).to(into.dtype)
        for up, along in ((0, 1 - v), (1, v)):
            for right, across in ((0, 1 - u), (1, u)):
                place = (row.long() + up) * (n + 1) + column + right
                into.view(-1).index_add_(0, place, q.to(into.dtype) * along * across)
        return into

    kernels = {"128 threads, any size": scatter.scheduled()}
    return Case(
        "charge of particles",
        f"{particles} in {n}^2",
        1e-9 * particles,
        "G particles/s",
        kernels,
        (*kernels,),
        {"x": x, "y": y, "q": q, "row": row, "column": column, "rho": rho},
        "rho",
        lambda got: error(got, corners(torch.zeros_like(rho, dtype=torch.float64))),
        1e-4,
        ("torch, any size",),
        {"torch, any size": untuned(lambda: corners(rho), "index_add_, for one corner each")},
        start=0,
    )


def sparse(n: int, m: int, length: int, on: str) -> Case:
    """Rows of any length up to twice ``length``, in random columns."""
    lengths = torch.randint(0, 2 * length + 1, (n,), device=on)
    start = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).int()
    entries = int(start[-1])
    column = torch.randint(0, m, (entries,), device=on, dtype=torch.int32)
    value, x = numbers(entries, on=on), numbers(m, on=on)
    y = torch.empty(n, device=on)
    matrix = torch.sparse_csr_tensor(start, column, value, size=(n, m))

    def check(got: Any) -> float:
        row = torch.repeat_interleave(torch.arange(n, device=on), lengths)
        wanted = torch.zeros(n, dtype=torch.float64, device=on)
        wanted.index_add_(0, row, value.double() * x.double()[column.long()])
        return error(got, wanted)

    kernels = {f"{name}, any size": knl for name, knl in spmv.make().items() if name != "plain"}
    kernels["16 lanes a row, any size"] = by_warps(spmv.plain(), "k", rows=8, lanes=16)
    return Case(
        "sparse matrix times vector",
        f"{n} x {m}, about {length} a row",
        1e-12 * (8 * entries + 8 * n + 4 * m),
        "TB/s",
        kernels,
        (*kernels,),
        {"start": start, "column": column, "value": value, "x": x, "y": y},
        "y",
        check,
        1e-4,
        ("read",),
        {"torch, any size": returning(lambda: matrix @ x, "a CSR tensor @ a vector")},
    )


CASES = {
    "softmax": lambda quick: rows_softmax(2**13 if quick else 2**16, 4096, "cuda"),
    "layernorm": lambda quick: rows_layernorm(2**13 if quick else 2**16, 4096, "cuda"),
    "sum": lambda quick: whole_sum(2**26 if quick else 2**28, "cuda"),
    "argmin": lambda quick: rows_argmin(2**13 if quick else 2**16, 4096, "cuda"),
    "scan-rows": lambda quick: rows_scan(4096, 4096, "cuda"),
    "scan-vector": lambda quick: vector_scan(2**24, "cuda"),
    "scan-long-vector": lambda quick: vector_scan(2**24 if quick else 2**28, "cuda"),
    "sort-rows": lambda quick: rows_sort(2**12 if quick else 2**16, 1024, "cuda"),
    "histogram": lambda quick: bins(2**25 if quick else 2**28, "cuda"),
    "scatter": lambda quick: deposit(2**20 if quick else 2**25, 2048, "cuda"),
    "spmv-short": lambda quick: sparse(2**18 if quick else 2**21, 2**18, 16, "cuda"),
    "spmv-long": lambda quick: sparse(2**13 if quick else 2**16, 2**18, 512, "cuda"),
}
