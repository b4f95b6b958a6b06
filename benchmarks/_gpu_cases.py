"""The cases of `gpu.py`: data, contestants, what is counted, and the target."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

import loopkit as lk

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import _gpu_together
import batched_4x4
import dg_gradient
import matmul_registers
import n_body
import segmented_sum
import stencil_25
import transpose
import vector_add
from _gpu_case import Case, Rival, Run, Target, error, untuned

try:
    import _triton_kernels as tr
except ImportError:
    tr = None  # type: ignore[assignment]
try:
    import _cuda_texts as texts
except ImportError:
    texts = None  # type: ignore[assignment]


def random(*shape: int) -> Any:
    return torch.rand(shape, device="cuda") * 2 - 1


def blank(*shape: int) -> Any:
    return torch.full(shape, float("nan"), device="cuda")


def by_triton(run: Run, kernel: str) -> dict[str, Rival]:
    """A rival that needs Triton; none without it."""
    if tr is None:
        return {}
    return {"Triton, any size": Rival(run, lambda: tr.tuned(getattr(tr, kernel)))}


def add(quick: bool) -> Case:
    n = 2**26 if quick else 2**28
    a, b, c = random(n), random(n), blank(n)
    kernels = {
        f"256 threads, {each} each, any size": vector_add.scheduled(256, each)
        for each in (4, 8, 2, 1)
    }
    kernels["512 threads, 4 each, any size"] = vector_add.scheduled(512, 4)
    first = next(iter(kernels))
    return Case(
        "vector add",
        f"2^{n.bit_length() - 1}",
        12e-12 * n,
        "TB/s",
        kernels,
        (first,),
        {"a": a, "b": b, "c": c},
        "c",
        lambda got: error(got, a + b),
        0.0,
        ("copy",),
        {
            "torch, any size": untuned(lambda: torch.add(a, b, out=c), "torch.add"),
            **by_triton(lambda: tr.add(a, b, c), "add_kernel"),
        },
        {first: Target(0.95, "12 n bytes, each moved once, at the speed of a copy; share chosen")},
    )


def transposition(quick: bool) -> Case:
    n = 8192 if quick else 16384
    a, out = random(n, n), blank(n, n)
    kernels = {
        f"tile {tile}, {tile}x{rows} threads, any size": transpose.scheduled(tile, rows)
        for tile, rows in ((64, 8), (64, 4), (32, 8), (32, 4))
    }
    first = next(iter(kernels))
    return Case(
        "transpose",
        f"{n}^2",
        8e-12 * n * n,
        "TB/s",
        kernels,
        (first,),
        {"a": a, "out": out},
        "out",
        lambda got: error(got, a.t()),
        0.0,
        ("copy",),
        {
            "torch, any size": untuned(lambda: out.copy_(a.t()), "copy_ of a transposed view"),
            **by_triton(lambda: tr.transpose(a, out), "transpose_kernel"),
        },
        {first: Target(0.80, "8 n^2 bytes, each moved once, at the speed of a copy; share chosen")},
    )


def sgemm(quick: bool) -> Case:
    full = "full tiles (n, m mod 128 = 0, l mod 16 = 0)"
    kernels = {
        f"depth {depth}, {full if known else 'any size'}": matmul_registers.registers(
            depth, full_tiles=known
        )
        for known in (True, False)
        for depth in (8, 16, 32)
    }
    counts = (f"depth 8, {full}", "depth 16, any size")
    origin = "cuBLAS in this run, TF32 off, any size, its own heuristics; share chosen"
    return product("SGEMM", quick, kernels, counts, dict.fromkeys(counts, Target(0.70, origin)))


def sgemm_steps(quick: bool) -> Case:
    kernels = matmul_registers.steps()
    return product("SGEMM, step by step", quick, kernels, tuple(kernels), {})


def product(
    name: str,
    quick: bool,
    kernels: Mapping[str, lk.Kernel],
    counts: tuple[str, ...],
    targets: Mapping[str, Target],
) -> Case:
    n = 2048 if quick else 4096
    a, b, c = random(n, n), random(n, n), blank(n, n)
    return Case(
        name,
        f"{n}^3",
        2e-12 * n**3,
        "TFLOP/s",
        kernels,
        counts,
        {"a": a, "b": b, "c": c},
        "c",
        lambda got: error(got, a.double() @ b.double()),
        1e-5,
        ("cuBLAS, any size",),
        {
            "cuBLAS, any size": Rival(
                lambda: torch.matmul(a, b, out=c), lambda: "its own heuristics, TF32 off"
            )
        },
        targets,
    )


def stencil(quick: bool) -> Case:
    n = 256 if quick else 512
    u, v = random(n + 8, n + 8, n + 8), blank(n, n, n)
    weights = {f"c{r}": 1 / (1 + r) for r in range(5)}

    def check(got: Any) -> float:
        wide = u.double()

        def at(x: int, y: int, z: int) -> Any:
            return wide[4 + x : 4 + x + n, 4 + y : 4 + y + n, 4 + z : 4 + z + n]

        total = weights["c0"] * at(0, 0, 0)
        for r in range(1, 5):
            for s in (-r, r):
                total += weights[f"c{r}"] * (at(s, 0, 0) + at(0, s, 0) + at(0, 0, s))
        return error(got, total)

    kernels = {}
    for full_tiles in (True, False):
        for depth, height, width, each in (
            (8, 32, 32, 4),
            (8, 16, 32, 2),
            (8, 16, 32, 4),
            (4, 32, 32, 4),
        ):
            sizes = (
                f"full tiles (n mod {depth} = 0, m mod {height} = 0, l mod {width} = 0)"
                if full_tiles
                else "any size"
            )
            label = f"planes of {depth}x{height}x{width}, {each} a thread, {sizes}"
            kernels[label] = stencil_25.planes(depth, height, width, each, full_tiles=full_tiles)
    for depth, height, width in ((16, 8, 32), (32, 8, 32), (16, 4, 64)):
        sizes = f"full tiles (n mod {depth} = 0, m mod {height} = 0, l mod {width} = 0)"
        label = f"columns of {depth}, {height}x{width} threads, {sizes}"
        kernels[label] = stencil_25.columns(depth, height, width, full_tiles=True)
    kernels["cubes, any size"] = stencil_25.tiled()
    names = list(kernels)
    counts = (names[0], "planes of 8x16x32, 2 a thread, any size")
    origin = "8 n^3 bytes, each point read and written once, at the speed of a copy; share chosen"
    return Case(
        "25-point stencil",
        f"{n}^3",
        8e-12 * n**3,
        "TB/s",
        kernels,
        counts,
        {"u": u, "v": v, **weights},
        "v",
        check,
        1e-5,
        ("copy",),
        by_triton(lambda: tr.stencil_25(u, v, list(weights.values())), "stencil_kernel"),
        {counts[0]: Target(0.55, origin)},
    )


def bodies(quick: bool) -> Case:
    n = 65536 if quick else 262144
    p, acc = random(n, 4), blank(n, 3)
    p[:, 3] = torch.rand(n, device="cuda") + 0.5
    soft = 0.01

    def check(got: Any) -> float:
        some = torch.randint(n, (256,), device="cuda")
        wide = p.double()
        away = wide[None, :, :3] - wide[some][:, None, :3]
        inverse = ((away**2).sum(2) + soft).rsqrt()
        wanted = (away * (wide[:, 3] * inverse**3)[:, :, None]).sum(1)
        return error(got[some], wanted) if bool(got.isfinite().all()) else float("nan")

    kernels = {
        f"{threads} threads, {each} each, any size": n_body.scheduled(threads, each)
        for threads, each in ((256, 2), (128, 2), (128, 1), (128, 4))
    }
    first = next(iter(kernels))
    by_hand = "CUDA by hand (n mod 256 = 0)"
    rivals = by_triton(lambda: tr.n_body(p, acc, soft), "bodies_kernel")
    if texts is not None:
        how = "256 threads, a body each, 32 unrolled"
        rivals[by_hand] = untuned(texts.n_body(p, acc, soft), how)
    origin = "the text of `_cuda_texts.py` in this run, which knows that tiles are full; chosen"
    return Case(
        "n-body",
        f"{n}",
        1e-12 * n * n,
        "T interactions/s",
        kernels,
        (first,),
        {"p": p, "q": p.clone(), "soft": soft, "acc": acc},
        "acc",
        check,
        1e-4,
        (by_hand, "Triton, any size"),
        rivals,
        {first: Target(0.80, origin)},
    )


def gradient(quick: bool) -> Case:
    ne, nodes = (2**18 if quick else 2**20), 20
    D, u, G, g = random(3, nodes, nodes), random(ne, nodes), random(3, 3, ne), blank(3, ne, nodes)

    def by_einsum() -> Any:
        return torch.einsum("yze,zei->yei", G, torch.einsum("xij,ej->xei", D, u))

    def check(got: Any) -> float:
        r = torch.einsum("xij,ej->xei", D.double(), u.double())
        return error(got, torch.einsum("yze,zei->yei", G.double(), r))

    kernels = {
        f"{together} together, {rounds} rounds, any size": dg_gradient.registers(together, rounds)
        for together, rounds in ((8, 16), (8, 8), (8, 20), (16, 8), (4, 16))
    }
    kernels["matrices in shared memory, any size"] = dg_gradient.staged()
    first = next(iter(kernels))
    origin = "4 (20 + 9 + 60) bytes an element, each moved once, at the speed of a copy; chosen"
    return Case(
        "DG gradient",
        f"{ne} elements",
        4e-12 * ne * (nodes + 9 + 3 * nodes),
        "TB/s",
        kernels,
        (first,),
        {"D": D, "u": u, "G": G, "g": g},
        "g",
        check,
        1e-5,
        ("copy",),
        {
            "torch, any size": untuned(
                lambda: g.copy_(by_einsum()), "two einsums, with arrays between, and a copy"
            )
        },
        {first: Target(0.50, origin)},
    )


def segments(quick: bool) -> Case:
    rows, length = (2**18 if quick else 2**20), 128
    x, out = random(rows, length), blank(rows)
    kernels = {
        f"{threads} threads, pieces of {piece}, any size": segmented_sum.scheduled(threads, piece)
        for threads, piece in ((128, 32), (64, 32), (256, 32), (128, 64), (128, 16))
    }
    first = next(iter(kernels))
    return Case(
        "segmented sum",
        f"{rows} x {length}",
        4e-12 * rows * (length + 1),
        "TB/s",
        kernels,
        (first,),
        {"x": x, "out": out},
        "out",
        lambda got: error(got, x.double().sum(1)),
        1e-5,
        ("read",),
        {
            "torch, any size": untuned(lambda: torch.sum(x, 1, out=out), "torch.sum"),
            **by_triton(lambda: tr.row_sums(x, out), "rows_kernel"),
        },
        {first: Target(0.60, "4 rows (length + 1) bytes at the speed of reading; share chosen")},
    )


def batched(quick: bool) -> Case:
    count = 2**20 if quick else 2**23
    a, b, c = random(count, 4, 4), random(count, 4, 4), blank(count, 4, 4)
    first = "64 a block, any size"
    return Case(
        "batched 4x4",
        f"{count}",
        192e-12 * count,
        "TB/s",
        {first: batched_4x4.scheduled()},
        (first,),
        {"a": a, "b": b, "c": c},
        "c",
        lambda got: error(got, a.double() @ b.double()),
        1e-5,
        ("copy",),
        {
            "cuBLAS, any size": untuned(
                lambda: torch.bmm(a, b, out=c), "torch.bmm, which is not made for 4x4"
            ),
            **by_triton(lambda: tr.batched_4x4(a, b, c), "batched_kernel"),
        },
        {first: Target(0.80, "192 bytes a product, each moved once, at a copy's speed; chosen")},
    )


CASES: dict[str, Callable[[bool], Case]] = {
    "add": add,
    "transpose": transposition,
    "sgemm": sgemm,
    "sgemm-steps": sgemm_steps,
    "stencil": stencil,
    "n-body": bodies,
    "dg": gradient,
    "segments": segments,
    "batched": batched,
    **_gpu_together.CASES,
}


def cases(only: list[str], quick: bool) -> Iterator[tuple[str, Case]]:
    """The chosen cases, made one after the other: each has gigabytes of data."""
    for key, make in CASES.items():
        if not only or key in only:
            yield key, make(quick)
