"""Costs counted from sets beside the hardware's own counters, for the gallery at two sizes each.

    python benchmarks/counters.py                 # needs a GPU, and Nsight Compute's `ncu`
    python benchmarks/counters.py --only matmul transpose --json FOLDER

Four numbers of each launch, as `knl.costs()` counts them and as `ncu` measures them:

- sectors of loads from and of stores to global memory, as the tag stage of L1 sees them
  (`l1tex__t_sectors_pipe_lsu_mem_global_op_*`): it sees each request before a cache is looked at,
  so that hits and misses make no difference, and neither does what ran before;
- wavefronts of loads from and of stores to shared memory
  (`l1tex__data_pipe_lsu_wavefronts_mem_shared_op_*`): passes over its banks, conflicts included.

Requests, which are warps' instructions, are read beside them (`smsp__inst_executed_op_*`): where
there are fewer than counted, the compiler loads several neighbours by one instruction, or keeps in
registers what the text loads again. Costs are those of the text; the last column says what
differs.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import functools
import importlib
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
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
REQUESTS = {
    "sectors loaded": "smsp__inst_executed_op_global_ld.sum",
    "sectors stored": "smsp__inst_executed_op_global_st.sum",
    "wavefronts loaded": "smsp__inst_executed_op_shared_ld.sum",
    "wavefronts stored": "smsp__inst_executed_op_shared_st.sum",
}
INSTRUCTIONS = {
    "sectors loaded": "LDG",
    "sectors stored": "STG",
    "wavefronts loaded": "LDS",
    "wavefronts stored": "STS",
}
Case = tuple[str, str, dict[str, int]]


@functools.cache
def kernels(example: str) -> dict[str, Any]:
    """The schedules of an example, but the text's own, which one thread does."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    made = importlib.import_module(example).make()
    return {name: kernel for name, kernel in made.items() if name != "plain"}


def run(todo: Iterable[Case], log: Path, executor: str) -> None:
    """One launch of each: what `ncu` watches. Each is noted once it has run, or failed."""
    with log.open("w", encoding="utf-8") as notes:
        for number, (example, name, sizes) in enumerate(todo):
            note: dict[str, Any] = {"case": number}
            try:
                kernel = kernels(example)[name]
                inputs = importlib.import_module(example).inputs(**sizes)
                kernel.executor(executor)(**inputs)
            except Exception as error:
                note["error"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            print(json.dumps(note), file=notes, flush=True)


def counted(costs: Any) -> dict[str, dict[str, int | None]]:
    """From sets: sectors or wavefronts, and requests, by what is accessed and how."""
    total: dict[str, dict[str, int | None]] = {key: {"pieces": 0, "requests": 0} for key in METRICS}
    for access in costs.accesses:
        piece = "sectors" if access.space == "global" else "wavefronts"
        sums = total[f"{piece} {'stored' if access.is_write else 'loaded'}"]
        for key in sums:
            before = sums[key]
            known = before is not None and access.counts is not None
            sums[key] = before + getattr(access.counts, key) if known else None  # type: ignore[operator]
    return total


def measured(todo: list[Case], seconds: float, ncu: str) -> Iterator[dict[str, int | None] | str]:
    """What `ncu` counts of each case, or why it counts nothing."""
    end = time.perf_counter() + seconds
    said = "nothing"
    # A GPU that has no counter of the second kind still has those of the first.
    for metrics in ([*METRICS.values(), *REQUESTS.values()], [*METRICS.values()]):
        with tempfile.TemporaryDirectory() as folder:
            cases, log = Path(folder, "cases.json"), Path(folder, "log")
            cases.write_text(json.dumps(todo), encoding="utf-8")
            command = [
                *(ncu, "--csv", "--page", "raw", "--print-units", "base"),
                *("--target-processes", "all", "--clock-control", "none"),
                *("--metrics", ",".join(metrics)),
                *(sys.executable, __file__, "--run", str(cases), "--log", str(log)),
            ]
            left = max(end - time.perf_counter(), 1)
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, check=False, timeout=left
                )
            except subprocess.TimeoutExpired:
                yield from [f"no answer within {seconds:.0f} s"] * len(todo)
                return
            notes = log.read_text(encoding="utf-8") if log.exists() else ""
        failed = {n["case"]: n.get("error") for n in map(json.loads, notes.splitlines())}
        rows = iter(table(done.stdout))
        found: list[dict[str, int | None] | str] = []
        for number in range(len(todo)):
            error = failed.get(number, "it did not run")
            found.append(error or next(rows, "ncu saw no launch"))
        if any(not isinstance(row, str) for row in found):
            yield from found
            return
        lines = (done.stdout + done.stderr).strip().splitlines()
        said = next((line for line in lines if "==ERROR==" in line), lines[-1] if lines else said)
        errors = {row for row in found if isinstance(row, str)}
        said = f"{said} ({'; '.join(sorted(errors))})"
    yield from [f"ncu says: {said}"] * len(todo)


def table(text: str) -> list[dict[str, int | None]]:
    """The counters of each launch in what `ncu` printed."""
    lines = text.splitlines()
    begin = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[begin:]))))[1:]  # after the units
    names = [*METRICS.values(), *REQUESTS.values()]
    return [{name: number(row.get(name)) for name in names} for row in rows]


def number(text: str | None) -> int | None:
    """A counter's value; None where the GPU has no such counter."""
    try:
        return int(float((text or "").replace(",", "")))
    except ValueError:
        return None


def why(kernel: Any, costs: Any, key: str, ours: int | None, seen: int, sass: str) -> str:
    """What makes a counter differ from what is counted, as far as that can be told."""
    if ours is None:
        return "data decide"
    found = []
    if costs.at_most:
        found.append(f"conditions on data were taken to hold in {', '.join(costs.at_most)}")
    if seen < ours:
        instruction = INSTRUCTIONS[key]
        wide = set(re.findall(rf"\b{instruction}(?:\.[A-Z_]+)*\.(64|128)\b", sass))
        if wide:
            widths = "/".join(sorted(wide, key=int))
            found.append(f"neighbours at once ({instruction}.{widths})")
        loops, once = kept(kernel, costs, key) if key.endswith("loaded") else ([], ours)
        if loops and seen == once:
            return f"as counted, once for all of {', '.join(loops)}: kept in registers"
        if loops:
            found.append(f"kept in registers over {', '.join(loops)}, {once:,} if in all of them")
    return "; ".join(found) or "not explained"


def kept(kernel: Any, costs: Any, key: str) -> tuple[list[str], int]:
    """Loops in which reads stay at one address, where nothing writes; and what is left of them.

    That is the number of sectors or wavefronts if each is read once for all of these loops.
    """
    from loopkit import _sets
    from loopkit._costs.accesses import accesses_of, address_map
    from loopkit._costs.counting import Counting
    from loopkit._poly.model import model_of
    from loopkit.codegen.prepare import prepare

    made, sizes = prepare(kernel), dict(costs.sizes)
    model, found, total = model_of(made), set(), 0
    counter = Counting(model, sizes, costs.block)
    wanted = "global" if key.startswith("sectors") else "shared"
    for access in accesses_of(made):
        if access.is_write or counter.space(access) != wanted:
            continue
        where = address_map(model, access, sizes)
        moving = {atom.name for atom, factor in where.address.terms.items() if factor}
        changed = {i for w in made.writers.get(access.array, ()) for i in w.inames}
        loops = {i for i in where.requests if model.axis_of(i) is None} - {*where.blocks}
        same = loops - moving - changed if moving.isdisjoint(where.others) else set()
        found |= same
        where = dataclasses.replace(
            where,
            key=(where.key, frozenset(same)),
            domain=_sets.project_out(where.domain, same),
            requests=tuple(name for name in where.requests if name not in same),
        )
        total += counter.requests(where, counter.itemsize(access), wanted).pieces
    return sorted(found), total


def row_of(case: Case, seen: dict[str, int | None] | str) -> dict[str, Any]:
    """What is counted and measured of one launch."""
    example, name, sizes = case
    kernel = kernels(example)[name]
    begin = time.perf_counter()
    costs = kernel.costs(**{n: sizes[n] for n in kernel.sizes})
    row: dict[str, Any] = {"schedule": f"{example}, {name}", "sizes": sizes}
    row["seconds of counting"] = round(time.perf_counter() - begin, 3)
    row["counted"] = counted(costs)
    if isinstance(seen, str):
        return {**row, "wrong": seen}
    row["measured"] = {
        key: {"pieces": seen[METRICS[key]], "requests": seen[REQUESTS[key]]} for key in METRICS
    }
    try:
        sass = kernel.sass()
    except Exception as error:
        sass = ""
        row["no machine code"] = str(error).splitlines()[0]
    row["why"] = {
        key: why(kernel, costs, key, row["counted"][key]["pieces"], numbers["pieces"], sass)
        for key, numbers in row["measured"].items()
        if numbers["pieces"] not in (None, row["counted"][key]["pieces"])
    }
    return row


def print_rows(rows: list[dict[str, Any]]) -> None:
    """A line for each launch: the counter, and what is counted of it."""
    shown = []
    for row in rows:
        sizes = " ".join(f"{name}={value}" for name, value in row["sizes"].items())
        if "wrong" in row:
            shown.append([row["schedule"], sizes, *[""] * len(METRICS), row["wrong"]])
            continue
        cells = [
            compared(row["counted"][key]["pieces"], row["measured"][key]["pieces"])
            for key in METRICS
        ]
        told = "; ".join(f"{key}: {text}" for key, text in row["why"].items())
        shown.append([row["schedule"], sizes, *cells, told])
    _report.print_table(["schedule", "sizes", *METRICS, "what differs"], shown)


def compared(ours: int | None, seen: int | None) -> str:
    """``1,024``, or of other numbers the counter and its share of what is counted."""
    if seen is None:
        return "no counter"
    if ours == seen:
        return f"{seen:,}"
    share = "?" if not ours else f"{seen / ours:.3g}"
    return f"{seen:,} = {share} x {'unknown' if ours is None else f'{ours:,}'}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="EXAMPLE", choices=list(SIZES))
    parser.add_argument("--seconds", type=float, default=210.0, help="after that, no new example")
    parser.add_argument("--ncu", default="ncu", help="Nsight Compute's command")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--executor", default="cuda", help=argparse.SUPPRESS)
    _report.add_arguments(parser)
    options = parser.parse_args()
    if options.run is not None:
        run(json.loads(options.run.read_text(encoding="utf-8")), options.log, options.executor)
        return
    installed = sorted(map(str, Path("/opt/nvidia/nsight-compute").glob("*/ncu")))
    ncu = next(
        filter(None, map(shutil.which, [options.ncu, "/usr/local/cuda/bin/ncu", *installed])), None
    )
    if ncu is None:
        raise SystemExit(f"there is no {options.ncu}: it comes with Nsight Compute")
    head = _report.header("costs and counters", "islpy", "cuda-bindings")
    _report.print_header(head)
    begin = time.perf_counter()
    rows: list[dict[str, Any]] = []
    for example in options.only or SIZES:
        left = options.seconds - (time.perf_counter() - begin)
        rows += of_example(example, left, ncu)
        print(f"{time.perf_counter() - begin:6.1f} s  {example}", flush=True)
    print()
    print_rows(rows)
    told = [row for row in rows if is_told(row)]
    same = sum(not row["why"] for row in told)
    open_ = sum("not explained" in text for row in told for text in row["why"].values())
    print(
        f"\n{same} of {len(told)} launches agree in all numbers; {open_} differences are not "
        f"explained; {len(rows) - len(told)} launches were not measured"
    )
    path = options.json
    if path is not None and (path.is_dir() or not path.suffix):
        path = path / "counters.json"
    _report.write_json(path, {**head, "rows": rows, "agree": same, "launches": len(told)})


def is_told(row: dict[str, Any]) -> bool:
    """Whether all counters were read."""
    found = row.get("measured", {}).values()
    return bool(found) and all(numbers["pieces"] is not None for numbers in found)


def of_example(example: str, seconds: float, ncu: str) -> list[dict[str, Any]]:
    """The rows of an example; what goes wrong stands in them."""
    try:
        todo: list[Case] = [
            (example, name, sizes)
            for name, kernel in kernels(example).items()
            for sizes in SIZES[example]
            if takes(kernel, sizes)
        ]
        found = ["there was no time left"] * len(todo)
        if seconds > 0:
            found = list(measured(todo, seconds, ncu))  # type: ignore[arg-type]
        return [row_of(case, seen) for case, seen in zip(todo, found, strict=True)]
    except Exception as error:
        wrong = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return [{"schedule": example, "sizes": {}, "wrong": wrong}]


def takes(kernel: Any, sizes: dict[str, int]) -> bool:
    """Whether a schedule is one for these sizes."""
    try:
        kernel.launch_config(**{n: sizes[n] for n in kernel.sizes})
    except (KeyError, ValueError, LookupError):
        return False
    except Exception as error:
        return "assum" not in str(error)
    return True


if __name__ == "__main__":
    main()
