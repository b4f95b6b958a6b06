"""Costs counted from sets beside the hardware's own counters, for the gallery at two sizes each.

    python benchmarks/counters.py                 # needs a GPU, and Nsight Compute's `ncu`
    python benchmarks/counters.py --only matmul transpose --json FOLDER
    python benchmarks/counters.py --recorded benchmarks/results/counters.json

Four numbers of each launch, as `knl.costs()` counts them and as `ncu` measures them:

- sectors of loads from and of stores to global memory, as the tag stage of L1 sees them
  (`l1tex__t_sectors_pipe_lsu_mem_global_op_*`): it sees each request before a cache is looked at,
  so that hits and misses make no difference, and neither does what ran before;
- wavefronts of loads from and of stores to shared memory
  (`l1tex__data_pipe_lsu_wavefronts_mem_shared_op_*`): passes over its banks, conflicts included.

Requests, which are warps' instructions, are read beside them (`smsp__inst_executed_op_*`). Costs
are those of the text; the compiler loads several neighbours by one instruction, keeps in registers
what the text loads again, or loads before it knows whether it must. So the machine code is
executed, too, as far as its loads and stores hang on it (`_machine.py`): a difference is explained
if what the code asks for is what the hardware counted, requests included; the last column says what
the code does. `--recorded` explains the counters of an earlier run anew, without a GPU.
"""

from __future__ import annotations

import argparse
import csv
import functools
import hashlib
import importlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import _machine
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
Case = tuple[str, str, dict[str, int]]
Reader = Callable[[list[Case], float], list[dict[str, int | None] | str]]
"""What gives the counters of cases, within seconds; of one without, why there are none."""


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
            sums[key] = before + getattr(access.counts, key) if known else None
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


def executed(kernel: Any, sizes: dict[str, int], arch: str | None) -> dict[str, dict[str, Any]]:
    """From the machine code: sectors or wavefronts, requests, bytes of threads, and wide ones.

    Raises `_machine.UntoldError`.
    """
    from loopkit._costs.warps import memory_of

    total: dict[str, dict[str, Any]] = {
        key: {"pieces": 0, "requests": 0, "bytes": 0, "wide": {}} for key in METRICS
    }
    for found in _machine.requests_of(kernel, sizes, arch):
        op = found.instruction.op
        space, is_write = "global" if op.endswith("G") else "shared", op.startswith("ST")
        piece = "sectors" if space == "global" else "wavefronts"
        sums = total[f"{piece} {'stored' if is_write else 'loaded'}"]
        some = found.active.any(axis=1)
        if some.any():
            pieces = memory_of(space, is_write=is_write).pieces
            sums["pieces"] += int(
                pieces(found.addresses[some], found.active[some], found.bytes)[0].sum()
            )
        sums["requests"] += len(found.active)
        sums["bytes"] += int(found.active.sum()) * found.bytes
        if found.bytes > 4:
            name = f"{op}.{8 * found.bytes}"
            sums["wide"][name] = sums["wide"].get(name, 0) + len(found.active)
    return total


def why(costs: Any, key: str, made: Any, seen: dict[str, int | None]) -> str:
    """What makes a counter differ from what is counted: what the machine code executes.

    *made* is that of the key, as `executed` tells it, or the reason why it is not told.
    """
    if isinstance(made, str):
        return f"not explained: {made}"
    if made["pieces"] != seen["pieces"] or seen["requests"] not in (None, made["requests"]):
        return (
            f"not explained: the machine code asks for {made['pieces']:,} {key.split()[0]} in "
            f"{made['requests']:,} requests"
        )
    found = []
    if costs.at_most:
        found.append(f"conditions on data were taken to hold in {', '.join(costs.at_most)}")
    for name, times in made["wide"].items():
        found.append(f"{times:,} of {made['requests']:,} requests are {name}")
    moved = bytes_of(costs, key)
    verb, noun = ("stores", "writes") if key.endswith("stored") else ("loads", "reads")
    if moved and made["bytes"] < moved:
        share = f"{made['bytes'] / moved:.3g} of the bytes that the text {noun}"
        found.append(f"the code {verb} {share}: the rest stays in registers")
    elif moved and made["bytes"] > moved:
        share = f"{made['bytes'] / moved:.3g} times the bytes that the text {noun}"
        found.append(f"the code {verb} {share}, some before the guard that says whether they count")
    return "; ".join(found) or "not explained: the machine code moves the bytes of the text"


def bytes_of(costs: Any, key: str) -> int:
    """The bytes that the threads of the text load or store; 0 where data decide."""
    space = "global" if key.startswith("sectors") else "shared"
    mine = [a for a in costs.accesses if (a.space, a.is_write) == (space, key.endswith("stored"))]
    known = all(a.counts is not None for a in mine)
    return int(sum(a.counts.threads * a.itemsize for a in mine)) if known else 0


def row_of(case: Case, seen: dict[str, int | None] | str, arch: str | None) -> dict[str, Any]:
    """What is counted, executed and measured of one launch; of code for ``arch``."""
    example, name, sizes = case
    kernel = kernels(example)[name]
    taken = {n: sizes[n] for n in kernel.sizes}
    begin = time.perf_counter()
    costs = kernel.costs(**taken)
    row: dict[str, Any] = {"schedule": f"{example}, {name}", "sizes": sizes}
    row["source"] = source_key(kernel)
    row["seconds of counting"] = round(time.perf_counter() - begin, 3)
    row["counted"] = counted(costs)
    if isinstance(seen, str):
        return {**row, "wrong": seen}
    row["measured"] = {
        key: {"pieces": seen[METRICS[key]], "requests": seen[REQUESTS[key]]} for key in METRICS
    }
    made: Any
    try:
        made = row["executed"] = executed(kernel, taken, arch)
    except Exception as error:
        made = row["executed"] = str(error).splitlines()[0]
    row["why"] = {
        key: why(costs, key, made if isinstance(made, str) else made[key], numbers)
        for key, numbers in row["measured"].items()
        if numbers["pieces"] not in (None, row["counted"][key]["pieces"])
    }
    return row


def source_key(kernel: Any) -> str:
    """Tells sources apart: what is measured of one is not told of another."""
    return hashlib.sha256(kernel.program().source.encode()).hexdigest()[:16]


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
    parser.add_argument(
        "--recorded", type=Path, metavar="PATH", help="explain the counters of an earlier run"
    )
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--executor", default="cuda", help=argparse.SUPPRESS)
    _report.add_arguments(parser)
    options = parser.parse_args()
    if options.run is not None:
        run(json.loads(options.run.read_text(encoding="utf-8")), options.log, options.executor)
        return
    if options.recorded is not None:
        head, read = of_run(options.recorded)
    else:
        head, read = of_now(options.ncu)
    _report.print_header(head)
    begin = time.perf_counter()
    rows: list[dict[str, Any]] = []
    for example in options.only or SIZES:
        left = options.seconds - (time.perf_counter() - begin)
        rows += of_example(example, left, read, head["arch"])
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


def of_now(asked: str) -> tuple[dict[str, Any], Reader]:
    """This run: its head, and what reads counters."""
    installed = sorted(map(str, Path("/opt/nvidia/nsight-compute").glob("*/ncu")))
    ncu = next(
        filter(None, map(shutil.which, [asked, "/usr/local/cuda/bin/ncu", *installed])), None
    )
    if ncu is None:
        raise SystemExit(f"there is no {asked}: it comes with Nsight Compute")
    from loopkit._run.driver import current_arch

    head = _report.header("costs and counters", "islpy", "cuda-bindings")
    return {**head, "arch": current_arch()}, lambda todo, left: list(measured(todo, left, ncu))


def of_run(path: Path) -> tuple[dict[str, Any], Reader]:
    """An earlier run: its head, and the counters that it wrote, by schedule and sizes."""
    head = json.loads(path.read_text(encoding="utf-8"))
    known = {
        (row["schedule"], json.dumps(row["sizes"])): {
            **{METRICS[key]: numbers["pieces"] for key, numbers in row["measured"].items()},
            **{REQUESTS[key]: numbers["requests"] for key, numbers in row["measured"].items()},
        }
        for row in head.pop("rows")
        if "measured" in row
    }

    def read(todo: list[Case], _left: float) -> list[dict[str, int | None] | str]:
        keys = ((f"{example}, {name}", json.dumps(sizes)) for example, name, sizes in todo)
        return [known.get(key, "not measured in that run") for key in keys]

    return {**head, "arch": head.get("arch")}, read


def is_told(row: dict[str, Any]) -> bool:
    """Whether all counters were read."""
    found = row.get("measured", {}).values()
    return bool(found) and all(numbers["pieces"] is not None for numbers in found)


def of_example(
    example: str, seconds: float, read: Reader, arch: str | None
) -> list[dict[str, Any]]:
    """The rows of an example; what goes wrong stands in them."""
    try:
        todo: list[Case] = [
            (example, name, sizes)
            for name, kernel in kernels(example).items()
            for sizes in SIZES[example]
            if takes(kernel, sizes)
        ]
        found: list[dict[str, int | None] | str] = ["there was no time left"] * len(todo)
        if seconds > 0:
            found = read(todo, seconds)
        return [row_of(case, seen, arch) for case, seen in zip(todo, found, strict=True)]
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
