"""Costs counted from sets beside the hardware's own counters, for the gallery at two sizes each.

    python benchmarks/counters.py                 # needs a GPU, and Nsight Compute's `ncu`
    python benchmarks/counters.py --only matmul transpose

Sectors of loads from and stores to global memory, and wavefronts of loads from and stores to
shared memory, as `knl.costs()` counts them and as `ncu` measures them.  They differ where the
compiler changed the accesses: it hoists loads out of loops, keeps values that were just stored,
and leaves out those that nobody uses.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import _report

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SIZES: dict[str, list[dict[str, int]]] = {
    "axpy": [{"n": 3001}, {"n": 1 << 16}],
    "batched_4x4": [{"count": 131}, {"count": 1024}],
    "convolution": [
        {"images": 1, "filters": 11, "height": 20, "width": 35, "channels": 2},
        {"images": 2, "filters": 16, "height": 32, "width": 64, "channels": 3},
    ],
    "dg_gradient": [{"ne": 77}, {"ne": 1024}],
    "matmul": [{"n": 33, "m": 50, "l": 21}, {"n": 128, "m": 256, "l": 64}],
    "matmul_fused": [{"n": 33, "m": 50, "l": 21}, {"n": 128, "m": 128, "l": 64}],
    "matmul_registers": [{"n": 131, "m": 70, "l": 19}, {"n": 256, "m": 384, "l": 128}],
    "n_body": [{"n": 301}, {"n": 1024}],
    "segmented_sum": [{"segments": 133, "length": 37}, {"segments": 512, "length": 64}],
    "stencil_25": [{"n": 13, "m": 21, "l": 37}, {"n": 32, "m": 64, "l": 64}],
    "stencil_5": [{"n": 70, "m": 45}, {"n": 256, "m": 512}],
    "transpose": [{"n": 70, "m": 45}, {"n": 512, "m": 256}],
    "triangular_solve": [{"n": 20, "sides": 70}, {"n": 64, "sides": 256}],
    "vector_add": [{"n": 2049}, {"n": 1 << 16}],
    "wavefront": [{"n": 20, "m": 150}, {"n": 90, "m": 64}],
}
METRICS = {
    "sectors loaded": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "sectors stored": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "wavefronts loaded": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "wavefronts stored": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
}


def cases(only: list[str] | None) -> list[tuple[str, str, dict[str, int]]]:
    """Example, schedule and sizes of all launches, in their order."""
    sys.path.insert(0, str(EXAMPLES))
    found = []
    for example, sizes in SIZES.items():
        if only and example not in only:
            continue
        for name, kernel in importlib.import_module(example).make().items():
            if name == "plain":
                continue  # one thread does all
            for one in sizes:
                try:
                    kernel.costs(**{n: one[n] for n in kernel.sizes})
                except (KeyError, ValueError):
                    continue  # sizes that this schedule does not take
                found.append((example, name, one))
    return found


def run(todo: list[tuple[str, str, dict[str, int]]]) -> None:
    """One launch of each on the GPU: what `ncu` watches."""
    for example, name, sizes in todo:
        module = importlib.import_module(example)
        module.make()[name].executor("cuda")(**module.inputs(**sizes))


def counted(kernel: Any, sizes: dict[str, int]) -> dict[str, int | None]:
    """The same four numbers from sets."""
    costs = kernel.costs(**{n: sizes[n] for n in kernel.sizes})
    total: dict[str, int | None] = dict.fromkeys(METRICS, 0)
    for access in costs.accesses:
        piece = "sectors" if access.space == "global" else "wavefronts"
        key = f"{piece} {'stored' if access.is_write else 'loaded'}"
        before, counts = total[key], access.counts
        total[key] = None if before is None or counts is None else before + counts.pieces
    return total


def measured(only: list[str] | None) -> list[dict[str, int]]:
    """What `ncu` counts, launch by launch."""
    command = [
        *("ncu", "--csv", "--page", "raw", "--print-units", "base"),
        *("--clock-control", "none", "--metrics", ",".join(METRICS.values())),
        *(sys.executable, __file__, "--run"),
        *(["--only", *only] if only else []),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    begin = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        raise SystemExit(f"ncu gave no table:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[begin:]))))[1:]  # after the units
    return [{k: int(float(row[m].replace(",", ""))) for k, m in METRICS.items()} for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="EXAMPLE", choices=list(SIZES))
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    _report.add_arguments(parser)
    options = parser.parse_args()
    todo = cases(options.only)
    if options.run:
        run(todo)
        return
    if shutil.which("ncu") is None:
        raise SystemExit("Nsight Compute's ncu is not on the PATH")
    head = _report.header("costs and counters", "islpy", "cuda-bindings")
    _report.print_header(head)
    found = measured(options.only)
    if len(found) != len(todo):
        raise SystemExit(f"{len(todo)} launches, but ncu saw {len(found)}")
    rows, same = [], 0
    for (example, name, sizes), seen in zip(todo, found, strict=True):
        kernel = importlib.import_module(example).make()[name]
        ours = counted(kernel, sizes)
        shown = [
            f"{_text(ours[key])}"
            if ours[key] == seen[key]
            else f"{_text(ours[key])} ({seen[key]:,})"
            for key in METRICS
        ]
        same += ours == seen
        rows.append([f"{example}, {name}", json.dumps(sizes), *shown])
    _report.print_table(["schedule", "sizes", *METRICS], rows)
    print(f"\n{same} of {len(rows)} launches agree in all numbers; (counter) where they differ")
    everything = {**head, "rows": rows, "agree": same, "launches": len(rows)}
    _report.write_json(options.json, everything)


def _text(value: int | None) -> str:
    return "not known" if value is None else f"{value:,}"


if __name__ == "__main__":
    main()
