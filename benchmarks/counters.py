"""Costs counted from sets beside the hardware's own counters, for the gallery at two sizes each.

    python benchmarks/counters.py                 # needs a GPU, and Nsight Compute's `ncu`
    python benchmarks/counters.py --only matmul transpose --json FOLDER
    python benchmarks/counters.py --counters-only --json FOLDER    # the GPU is soon free again
    python benchmarks/counters.py --recorded benchmarks/results/counters.json

Six numbers of each call, of all its launches, as `knl.costs()` counts them and `ncu` measures them:

- sectors of loads from, stores to and atomic updates of global memory, as the tag stage of L1 sees
  them (`l1tex__t_sectors_pipe_lsu_mem_global_op_*`): it sees each request before a cache is looked
  at, so that hits and misses make no difference, and neither does what ran before;
- wavefronts of the same for shared memory (`l1tex__data_pipe_lsu_wavefronts_mem_shared_op_*`):
  passes over its banks, conflicts included.

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
from itertools import chain, islice
from pathlib import Path
from typing import Any

import _machine
import _report

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SIZES: dict[str, list[dict[str, int]]] = {
    "argmin": [{"n": 133, "m": 37}, {"n": 256, "m": 2048}],
    "attention": [{"heads": 2, "n": 133, "m": 37}, {"heads": 4, "n": 256, "m": 128}],
    "axpy": [{"n": 3001}, {"n": 1 << 16}],
    "batched_4x4": [{"count": 131}, {"count": 1024}],
    "batched_gemm_gelu": [
        {"batch": 2, "n": 33, "m": 50, "l": 21},
        {"batch": 4, "n": 128, "m": 128, "l": 64},
    ],
    "bitonic": [{"n": 3}, {"n": 16}],
    "cholesky": [{"n": 37}, {"n": 96}],
    "convolution": [
        {"images": 1, "filters": 11, "height": 20, "width": 35, "channels": 2},
        {"images": 2, "filters": 16, "height": 32, "width": 64, "channels": 3},
    ],
    "dg_gradient": [{"ne": 77}, {"ne": 1024}],
    "einsum": [{"Ni": 33, "Nj": 50, "Nk": 3, "Nl": 21}, {"Ni": 128, "Nj": 64, "Nk": 8, "Nl": 32}],
    "fft": [{"n": 67}, {"n": 1024}],
    "full_sum": [{"n": 10_001}, {"n": 1 << 20}],
    "fused_pair": [{"n": 3001}, {"n": 1 << 16}],
    "gather": [{"particles": 999, "n": 40, "m": 50}, {"particles": 4096, "n": 64, "m": 64}],
    "heat": [{"n": 37, "m": 50}, {"n": 64, "m": 128}],
    "histogram": [{"n": 10_000}, {"n": 1 << 18}],
    "layernorm": [{"n": 5, "m": 301}, {"n": 128, "m": 1024}],
    "lu": [{"n": 37}, {"n": 96}],
    "mandelbrot": [{"h": 37, "w": 50, "limit": 20}, {"h": 64, "w": 64, "limit": 50}],
    "matmul": [{"n": 33, "m": 50, "l": 21}, {"n": 128, "m": 256, "l": 64}],
    "matmul_fused": [{"n": 33, "m": 50, "l": 21}, {"n": 128, "m": 128, "l": 64}],
    "matmul_registers": [{"n": 131, "m": 70, "l": 19}, {"n": 256, "m": 384, "l": 128}],
    "n_body": [{"n": 301}, {"n": 1024}],
    "neighbours": [
        {"n": 301, "m": 7, "sources": 50},
        {"n": 1024, "m": 32, "sources": 512},
    ],
    "scan_rows": [{"n": 37, "m": 50}, {"n": 256, "m": 128}],
    "scan_rows_blocks": [{"n": 5, "m": 301}, {"n": 64, "m": 2048}],
    "scan_vector": [{"n": 10_001}, {"n": 1 << 17}],
    "scatter": [{"particles": 999, "n": 40, "m": 50}, {"particles": 4096, "n": 64, "m": 64}],
    "segmented_sum": [{"segments": 133, "length": 37}, {"segments": 512, "length": 64}],
    "softmax": [{"n": 5, "m": 301}, {"n": 128, "m": 1024}],
    "spmv": [{"n": 300, "m": 200}, {"n": 2048, "m": 4096}],
    "stencil_25": [{"n": 13, "m": 21, "l": 37}, {"n": 32, "m": 64, "l": 64}],
    "stencil_5": [{"n": 70, "m": 45}, {"n": 256, "m": 512}],
    "stencil_sweep": [{"l": 13, "n": 21, "m": 37}, {"l": 16, "n": 32, "m": 64}],
    "transpose": [{"n": 70, "m": 45}, {"n": 512, "m": 256}],
    "triangular_solve": [{"n": 20, "sides": 70}, {"n": 64, "sides": 256}],
    "vector_add": [{"n": 2049}, {"n": 1 << 16}],
    "wavefront": [{"n": 20, "m": 150}, {"n": 90, "m": 64}],
}
KINDS = [
    f"{piece} {verb}"
    for piece in ("sectors", "wavefronts")
    for verb in ("loaded", "stored", "updated")
]
_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op"
_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op"
METRICS = {
    "sectors loaded": (f"{_SECTORS}_ld.sum",),
    "sectors stored": (f"{_SECTORS}_st.sum",),
    "sectors updated": (f"{_SECTORS}_red.sum", f"{_SECTORS}_atom.sum"),
    "wavefronts loaded": (f"{_WAVEFRONTS}_ld.sum",),
    "wavefronts stored": (f"{_WAVEFRONTS}_st.sum",),
    "wavefronts updated": ("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",),
}
"""The counters that make a number together."""
REQUESTS = {
    "sectors loaded": ("smsp__inst_executed_op_global_ld.sum",),
    "sectors stored": ("smsp__inst_executed_op_global_st.sum",),
    "sectors updated": (
        "smsp__inst_executed_op_global_red.sum",
        "smsp__sass_inst_executed_op_global_atom.sum",
    ),
    "wavefronts loaded": ("smsp__inst_executed_op_shared_ld.sum",),
    "wavefronts stored": ("smsp__inst_executed_op_shared_st.sum",),
    "wavefronts updated": ("smsp__inst_executed_op_shared_atom.sum",),
}
Counters = dict[str, int | None]
Case = tuple[str, str, dict[str, int]]
Reader = Callable[[list[Case], float], list[Counters | str]]
"""What gives the counters of cases, within seconds; of one without, why there are none."""


@functools.cache
def kernels(example: str) -> dict[str, Any]:
    """The schedules of an example, but the text's own, which one thread does."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    made = importlib.import_module(example).make()
    return {name: kernel for name, kernel in made.items() if name != "plain"}


def run(todo: Iterable[Case], log: Path, executor: str) -> None:
    """One call of each: what `ncu` watches. Each is noted once it has run, or failed."""
    with log.open("w", encoding="utf-8") as notes:
        for number, (example, name, sizes) in enumerate(todo):
            note: dict[str, Any] = {"case": number}
            try:
                kernel = kernels(example)[name]
                inputs = importlib.import_module(example).inputs(**sizes)
                kernel.executor(executor)(**inputs)
                note["launches"] = getattr(kernel.costs(**inputs), "times", 1)
            except Exception as error:
                note["error"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            print(json.dumps(note), file=notes, flush=True)


def counted(costs: Any) -> dict[str, Counters]:
    """From sets: sectors or wavefronts, and requests, by what is accessed and how."""
    total: dict[str, Counters] = {key: {"pieces": 0, "requests": 0} for key in KINDS}

    def add(key: str, name: str, more: int | None) -> None:
        before = total[key][name]
        total[key][name] = None if before is None or more is None else before + more

    for access in costs.accesses:
        for name in ("pieces", "requests"):
            known = access.counts is not None
            add(kind_of(access), name, getattr(access.counts, name) if known else None)
    for one in costs.combinations:
        for name, pieces in (("pieces", "wavefronts"), ("requests", "requests")):
            whole, stored = one.total(pieces), one.total(f"{pieces}_stored")
            add("wavefronts stored", name, stored)
            add("wavefronts loaded", name, None if whole is None else whole - stored)
    return total


def kind_of(access: Any) -> str:
    piece = "sectors" if access.space == "global" else "wavefronts"
    verb = {"read": "loaded", "write": "stored", "update": "updated"}[access.verb]
    return f"{piece} {verb}"


def measured(todo: list[Case], seconds: float, ncu: str) -> Iterator[Counters | str]:
    """What `ncu` counts of each case, or why it counts nothing."""
    end = time.perf_counter() + seconds
    said = "nothing"
    # A GPU that has no counter of the second kind still has those of the first.
    for metrics in ([*flat(METRICS), *flat(REQUESTS)], [*flat(METRICS)]):
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
        told = {n["case"]: n for n in map(json.loads, notes.splitlines())}
        rows = iter(table(done.stdout))
        found: list[Counters | str] = []
        for number in range(len(todo)):
            note = told.get(number, {"error": "it did not run"})
            found.append(note.get("error") or summed([*islice(rows, note["launches"])]))
        if any(not isinstance(row, str) for row in found):
            yield from found
            return
        lines = (done.stdout + done.stderr).strip().splitlines()
        said = next((line for line in lines if "==ERROR==" in line), lines[-1] if lines else said)
        errors = {row for row in found if isinstance(row, str)}
        said = f"{said} ({'; '.join(sorted(errors))})"
    yield from [f"ncu says: {said}"] * len(todo)


def flat(counters: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """All names of counters."""
    return chain.from_iterable(counters.values())


def summed(rows: list[Counters]) -> Counters | str:
    """The counters of all launches of a call."""
    if not rows:
        return "ncu saw no launch"
    return {name: total(row.get(name) for row in rows) for name in rows[0]}


def total(numbers: Iterable[int | None]) -> int | None:
    """The sum; None where a number is missing."""
    found = list(numbers)
    return None if None in found else sum(n for n in found if n is not None)


def table(text: str) -> list[Counters]:
    """The counters of each launch in what `ncu` printed."""
    lines = text.splitlines()
    begin = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[begin:]))))[1:]  # after the units
    names = [*flat(METRICS), *flat(REQUESTS)]
    return [{name: number(row.get(name)) for name in names} for row in rows]


def number(text: str | None) -> int | None:
    """A counter's value; None where the GPU has no such counter."""
    try:
        return int(float((text or "").replace(",", "")))
    except ValueError:
        return None


def executed(
    kernel: Any, sizes: dict[str, int], arch: str | None, arrays: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """From the machine code: sectors or wavefronts, requests, bytes of threads, and wide ones.

    What the code loads from ``arrays`` that no launch writes is known to it. Raises
    `_machine.UntoldError`.
    """
    from loopkit._costs.warps import memory_of

    total: dict[str, dict[str, Any]] = {
        key: {"pieces": 0, "requests": 0, "bytes": 0, "wide": {}} for key in KINDS
    }
    data = {name: a for name, a in arrays.items() if name not in kernel.writers}
    for launch, values in launches_of(kernel, sizes):
        for found in _machine.requests_of(launch, values, arch, data):
            op = found.instruction.op
            space = "shared" if op.endswith("S") else "global"
            verb = {"LD": "loaded", "ST": "stored"}.get(op[:2], "updated")
            sums = total[f"{'sectors' if space == 'global' else 'wavefronts'} {verb}"]
            some = found.active.any(axis=1)
            if some.any():
                pieces = memory_of(space, is_write=verb != "loaded").pieces
                sums["pieces"] += int(
                    pieces(found.addresses[some], found.active[some], found.bytes)[0].sum()
                )
            sums["requests"] += len(found.active)
            sums["bytes"] += int(found.active.sum()) * found.bytes
            if found.bytes > 4:
                name = f"{op}.{8 * found.bytes}"
                sums["wide"][name] = sums["wide"].get(name, 0) + len(found.active)
    return total


def launches_of(kernel: Any, sizes: dict[str, int]) -> Iterator[tuple[Any, dict[str, int]]]:
    """The launches of a call, as kernels, with their sizes."""
    from loopkit._run.launch_sequence import turns_of

    parts = {one.program().name: one for one in kernel.launches()}
    for turn in turns_of(kernel.program(), sizes):
        part, known = parts[turn.program.name], {**sizes, **turn.values}
        yield part, {name: known[name] for name in part.sizes}


def why(costs: Any, key: str, made: Any, seen: Counters) -> str:
    """What makes a counter differ from what is counted: what the machine code executes.

    *made* is that of the key, as `executed` tells it, or the reason why it is not told.
    """
    if told := of_looking_back(costs, key, seen):
        return told
    if isinstance(made, str):
        mine = [a for a in costs.accesses if kind_of(a) == key]
        most = counted(costs)[key]["pieces"]
        if mine and all(a.at_most for a in mine) and most and most >= (seen["pieces"] or 0):
            return f"conditions on data were taken to hold in {', '.join(costs.at_most)}"
        return f"not explained: {made}"
    turns = collisions(costs, key)
    if turns and seen["pieces"] and 0 < seen["pieces"] - made["pieces"] <= 2 * turns:
        more = seen["pieces"] - made["pieces"]
        return f"{turns:,} updates wait for one of their cell: {more:,} sectors are asked for again"
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
    verb, noun = {
        "loaded": ("loads", "reads"),
        "stored": ("stores", "writes"),
        "updated": ("updates", "updates"),
    }[key.split()[1]]
    if moved and made["bytes"] < moved:
        share = f"{made['bytes'] / moved:.3g} of the bytes that the text {noun}"
        found.append(f"the code {verb} {share}: the rest stays in registers")
    elif moved and made["bytes"] > moved:
        share = f"{made['bytes'] / moved:.3g} times the bytes that the text {noun}"
        found.append(f"the code {verb} {share}, some before the guard that says whether they count")
    if not found:
        asked = counted(costs)[key]["requests"]
        found.append(
            f"the code makes {made['requests']:,} requests of what are {asked:,} in the text: "
            "threads of a warp go apart where loops are unrolled, loads come before guards, records"
            " go word by word"
        )
    return "; ".join(found)


def of_looking_back(costs: Any, key: str, seen: Counters) -> str:
    """What blocks do that look back at those before them, beside what the text says."""
    found = [one.times for one in costs.combinations if one.each.published]
    if not found:
        return ""
    blocks, more = found[0], (seen["pieces"] or 0) - (counted(costs)[key]["pieces"] or 0)
    if key == "sectors updated" and more == blocks:
        return f"each of {blocks:,} blocks takes a ticket"
    if key == "sectors stored" and more == 2 * sum(found):
        return f"each of {blocks:,} blocks publishes two sums, each in a word with its flag"
    if key == "wavefronts stored" and more == blocks:
        return f"each of {blocks:,} blocks keeps its ticket"
    if key == "wavefronts loaded" and more > 0:
        return f"each warp of {blocks:,} blocks reads its ticket, and loads before it knows it must"
    if key == "sectors loaded" and more > 0:
        return f"how far {blocks:,} blocks look back depends on when those before them are done"
    return ""


def collisions(costs: Any, key: str) -> int:
    """Updates of global memory that wait for another one of their request and their cell."""
    mine = [a.collisions for a in costs.accesses if kind_of(a) == key == "sectors updated"]
    return 0 if None in mine else sum(mine)


def bytes_of(costs: Any, key: str) -> int:
    """The bytes that the threads of the text load or store; 0 where data decide."""
    mine = [a for a in costs.accesses if kind_of(a) == key]
    known = all(a.counts is not None for a in mine)
    return int(sum(a.counts.threads * a.itemsize for a in mine)) if known else 0


def row_of(
    case: Case, seen: Counters | str, arch: str | None, explained: bool = True
) -> dict[str, Any]:
    """What is counted, executed and measured of one call; of code for ``arch``."""
    example, name, sizes = case
    kernel = kernels(example)[name]
    arrays = importlib.import_module(example).inputs(**sizes)
    begin = time.perf_counter()
    costs = kernel.costs(**arrays)
    row: dict[str, Any] = {"schedule": f"{example}, {name}", "sizes": sizes}
    row["source"] = source_key(kernel)
    row["seconds of counting"] = round(time.perf_counter() - begin, 3)
    row["counted"] = counted(costs)
    if isinstance(seen, str):
        return {**row, "wrong": seen}
    row["measured"] = {
        key: {
            "pieces": total(seen[name] for name in METRICS[key]),
            "requests": total(seen.get(name) for name in REQUESTS[key]),
        }
        for key in KINDS
    }
    made: Any
    try:
        if not explained:
            raise _machine.UntoldError("its machine code was not looked at")
        made = row["executed"] = executed(kernel, dict(costs.sizes), arch, arrays)
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
            shown.append([row["schedule"], sizes, *[""] * len(KINDS), row["wrong"]])
            continue
        cells = [
            compared(row["counted"][key]["pieces"], row["measured"][key]["pieces"]) for key in KINDS
        ]
        told = "; ".join(f"{key}: {text}" for key, text in row["why"].items())
        shown.append([row["schedule"], sizes, *cells, told])
    _report.print_table(["schedule", "sizes", *KINDS, "what differs"], shown)


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
    parser.add_argument(
        "--counters-only", action="store_true", help="look at no machine code: --recorded will"
    )
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
        rows += of_example(example, left, read, head["arch"], not options.counters_only)
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
            name: value
            for key, numbers in row["measured"].items()
            for names, value in (
                (METRICS[key], numbers["pieces"]),
                (REQUESTS[key], numbers["requests"]),
            )
            # What several counters made together stands under the first of them.
            for name, value in zip(names, (value, *[0] * len(names)), strict=False)
        }
        for row in head.pop("rows")
        if "measured" in row
    }

    def read(todo: list[Case], _left: float) -> list[Counters | str]:
        keys = ((f"{example}, {name}", json.dumps(sizes)) for example, name, sizes in todo)
        return [known.get(key, "not measured in that run") for key in keys]

    return {**head, "arch": head.get("arch")}, read


def is_told(row: dict[str, Any]) -> bool:
    """Whether all counters were read."""
    found = row.get("measured", {}).values()
    return bool(found) and all(numbers["pieces"] is not None for numbers in found)


def of_example(
    example: str, seconds: float, read: Reader, arch: str | None, explained: bool = True
) -> list[dict[str, Any]]:
    """The rows of an example; what goes wrong stands in them."""
    try:
        todo: list[Case] = [
            (example, name, sizes)
            for name, kernel in kernels(example).items()
            for sizes in SIZES[example]
            if takes(kernel, sizes)
        ]
        found: list[Counters | str] = ["there was no time left"] * len(todo)
        if seconds > 0:
            found = read(todo, seconds)
        return [row_of(case, seen, arch, explained) for case, seen in zip(todo, found, strict=True)]
    except Exception as error:
        wrong = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return [{"schedule": example, "sizes": {}, "wrong": wrong}]


def takes(kernel: Any, sizes: dict[str, int]) -> bool:
    """Whether a schedule is one for these sizes; those that arrays tell are taken to be."""
    if not sizes.keys() >= {*kernel.sizes}:
        return True
    try:
        kernel.launch_config(**{n: sizes[n] for n in kernel.sizes})
    except ValueError:
        return False
    except Exception as error:
        return "assum" not in str(error)
    return True


if __name__ == "__main__":
    main()
