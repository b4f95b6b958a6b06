"""The cases of `gpu.py`: data, contestants, what is counted, and the target."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import loopkit as lk

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import batched_4x4
import dg_gradient
import matmul_registers
import n_body
import segmented_sum
import stencil_25
import transpose
import vector_add

try:
    import _triton_kernels as tr
except ImportError:
    tr = None  # type: ignore[assignment]

Run = Callable[[], Any]


@dataclass
class Case:
    """One problem and those who solve it.

    ``kernels`` are loopkit's schedules, the one that counts first; ``arrays`` their
    arguments, the one called ``output`` the result.  ``rivals`` write into
    ``output`` too.  ``work`` is in ``unit`` times seconds.  ``target`` is a fraction
    of what ``against`` (a rival, or a bandwidth of this run) reaches, or a number.
    """

    name: str
    size: str
    work: float
    unit: str
    kernels: dict[str, lk.Kernel]
    arrays: dict[str, Any]
    output: str
    check: Callable[[Any], float]
    tolerance: float
    rivals: dict[str, Run] = field(default_factory=dict)
    target: float = 0.0
    against: str | None = None


def random(*shape: int) -> Any:
    return torch.rand(shape, device="cuda") * 2 - 1


def blank(*shape: int) -> Any:
    return torch.full(shape, float("nan"), device="cuda")


def error(result: Any, expected: Any) -> float:
    """The largest difference, relative to the largest value; not finite where anything is not."""
    difference = (result.double() - expected.double()).abs().max() / expected.double().abs().max()
    return float(difference)


def with_triton(run: Run) -> dict[str, Run]:
    """A rival that needs Triton; none without it."""
    return {"Triton": run} if tr is not None else {}


def add(quick: bool) -> Case:
    n = 2**26 if quick else 2**28
    a, b, c = random(n), random(n), blank(n)
    kernels = {"256 threads, 4 each": vector_add.scheduled()}
    for threads, each in ((256, 8), (512, 4), (256, 2), (256, 1)):
        kernels[f"{threads} threads, {each} each"] = vector_add.scheduled(threads, each)
    return Case(
        "vector add",
        f"2^{n.bit_length() - 1}",
        12e-12 * n,
        "TB/s",
        kernels,
        {"a": a, "b": b, "c": c},
        "c",
        lambda got: error(got, a + b),
        0.0,
        {"torch": lambda: torch.add(a, b, out=c), **with_triton(lambda: tr.add(a, b, c))},
        0.95,
        "copy",
    )


def transposition(quick: bool) -> Case:
    n = 8192 if quick else 16384
    a, out = random(n, n), blank(n, n)
    kernels = {}
    for tile, rows in ((64, 8), (64, 4), (32, 8), (32, 4)):
        kernels[f"tile {tile}, {tile}x{rows} threads"] = transpose.scheduled(tile, rows)
    return Case(
        "transpose",
        f"{n}^2",
        8e-12 * n * n,
        "TB/s",
        kernels,
        {"a": a, "out": out},
        "out",
        lambda got: error(got, a.t()),
        0.0,
        {
            "torch": lambda: out.copy_(a.t()),
            **with_triton(lambda: tr.transpose(a, out)),
        },
        0.80,
        "copy",
    )


def sgemm(quick: bool) -> Case:
    n = 2048 if quick else 4096
    a, b, c = random(n, n), random(n, n), blank(n, n)
    kernels = {}
    for full_tiles in (True, False):
        for depth in (8, 16, 32):
            label = f"depth {depth}, {'full tiles' if full_tiles else 'any size'}"
            kernels[label] = matmul_registers.registers(depth, full_tiles=full_tiles)
    return Case(
        "SGEMM",
        f"{n}^3",
        2e-12 * n**3,
        "TFLOP/s",
        kernels,
        {"a": a, "b": b, "c": c},
        "c",
        lambda got: error(got, a.double() @ b.double()),
        1e-5,
        {"cuBLAS": lambda: torch.matmul(a, b, out=c)},
        0.70,
        "cuBLAS",
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
        for shape in ((8, 32, 32, 4), (8, 16, 32, 4), (8, 16, 32, 2), (4, 32, 32, 4)):
            label = "planes of {}x{}x{}, {} a thread".format(*shape)
            label += ", full tiles" if full_tiles else ""
            kernels[label] = stencil_25.planes(*shape, full_tiles=full_tiles)
    for shape in ((16, 8, 32, 1), (32, 8, 32, 1), (16, 4, 64, 1)):
        label = "columns of {}, {}x{} threads, {} a thread".format(*shape)
        kernels[label] = stencil_25.columns(*shape, full_tiles=True)
    kernels["cubes"] = stencil_25.tiled()
    return Case(
        "25-point stencil",
        f"{n}^3",
        8e-12 * n**3,
        "TB/s",
        kernels,
        {"u": u, "v": v, **weights},
        "v",
        check,
        1e-5,
        with_triton(lambda: tr.stencil_25(u, v, list(weights.values()))),
        0.55,
        "copy",
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

    kernels = {}
    for threads, each in ((256, 2), (128, 2), (128, 1), (128, 4)):
        kernels[f"{threads} threads, {each} each"] = n_body.scheduled(threads, each)
    return Case(
        "n-body",
        f"{n}",
        1e-12 * n * n,
        "T interactions/s",
        kernels,
        {"p": p, "q": p.clone(), "soft": soft, "acc": acc},
        "acc",
        check,
        1e-4,
        with_triton(lambda: tr.n_body(p, acc, soft)),
        2 * 0.54,
    )


def gradient(quick: bool) -> Case:
    ne, nodes = (2**18 if quick else 2**20), 20
    D, u, G, g = random(3, nodes, nodes), random(ne, nodes), random(3, 3, ne), blank(3, ne, nodes)

    def by_einsum() -> Any:
        return torch.einsum("yze,zei->yei", G, torch.einsum("xij,ej->xei", D, u))

    def check(got: Any) -> float:
        r = torch.einsum("xij,ej->xei", D.double(), u.double())
        return error(got, torch.einsum("yze,zei->yei", G.double(), r))

    kernels = {}
    for together, rounds in ((8, 16), (8, 8), (8, 20), (16, 8), (4, 16)):
        label = f"{together} together, {rounds} rounds"
        kernels[label] = dg_gradient.registers(together, rounds)
    kernels["matrices in shared memory"] = dg_gradient.staged()
    return Case(
        "DG gradient",
        f"{ne} elements",
        4e-12 * ne * (nodes + 9 + 3 * nodes),
        "TB/s",
        kernels,
        {"D": D, "u": u, "G": G, "g": g},
        "g",
        check,
        1e-5,
        {"torch einsum": lambda: g.copy_(by_einsum())},
        2 * 0.48,
    )


def segments(quick: bool) -> Case:
    rows, length = (2**18 if quick else 2**20), 128
    x, out = random(rows, length), blank(rows)
    kernels = {}
    for threads, piece in ((128, 32), (64, 32), (256, 32), (128, 64), (128, 16)):
        kernels[f"{threads} threads, pieces of {piece}"] = segmented_sum.scheduled(threads, piece)
    return Case(
        "segmented sum",
        f"{rows} x {length}",
        4e-12 * rows * (length + 1),
        "TB/s",
        kernels,
        {"x": x, "out": out},
        "out",
        lambda got: error(got, x.double().sum(1)),
        1e-5,
        {
            "torch": lambda: torch.sum(x, 1, out=out),
            **with_triton(lambda: tr.row_sums(x, out)),
        },
        0.6,
        "read",
    )


def batched(quick: bool) -> Case:
    count = 2**20 if quick else 2**23
    a, b, c = random(count, 4, 4), random(count, 4, 4), blank(count, 4, 4)
    return Case(
        "batched 4x4",
        f"{count}",
        192e-12 * count,
        "TB/s",
        {"64 a block": batched_4x4.scheduled()},
        {"a": a, "b": b, "c": c},
        "c",
        lambda got: error(got, a.double() @ b.double()),
        1e-5,
        {"cuBLAS (bmm)": lambda: torch.bmm(a, b, out=c)},
    )


CASES: dict[str, Callable[[bool], Case]] = {
    "add": add,
    "transpose": transposition,
    "sgemm": sgemm,
    "stencil": stencil,
    "n-body": bodies,
    "dg": gradient,
    "segments": segments,
    "batched": batched,
}


def cases(only: list[str], quick: bool) -> Iterator[tuple[str, Case]]:
    """The chosen cases, made one after the other: each has gigabytes of data."""
    for key, make in CASES.items():
        if not only or key in only:
            yield key, make(quick)
