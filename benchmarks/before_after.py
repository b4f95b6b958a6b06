"""Two checkouts of loopkit side by side: is anything slower after than before?

The same work runs with both, in fresh processes that alternate: before, after, after, before, and
so on. What counts is the median of the ratios of neighbours. Times are processor times, but for
calls on a GPU.

    git worktree add /tmp/before COMMIT
    python benchmarks/before_after.py /tmp/before . --workers 4 --json /tmp/ratios.json

* text to CUDA: the schedules of one example are made, each step proven, and printed as CUDA C;
* steps: of this, the transforms with their proofs; those that changed most follow below the table;
* prove: `knl.prove()` of these schedules, as each checkout does it when it is not told more;
* chain: 100 dependent loops, steps on one of them and on all;
* calls: of a kernel on 16 elements, with all arguments checked, and bound;
* import, the first CUDA C of a fresh process, and the size of the product.

The examples are those of AFTER (`--examples` names another folder), so the work is the same. What
one side cannot do is left out of the ratios, and named.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import _report
from _fresh import Result, run_once

SIDES = ("before", "after")
OF_NO_EXAMPLE = ("imports", "host", "cuda", "chain")
KINDS = ("text to CUDA", "steps", "prove")
Pair = dict[str, Result]


def run_all(options: argparse.Namespace, tasks: list[str]) -> dict[str, list[Pair]]:
    """For each task, its pairs of neighbours."""
    pairs: dict[str, list[Pair]] = {task: [] for task in tasks}
    with tempfile.TemporaryDirectory(prefix="loopkit-before-after-") as folder:

        def pair(task: str, turn: int) -> Pair:
            found = {}
            for side in SIDES if turn % 2 else reversed(SIDES):
                scratch = Path(folder) / side
                scratch.mkdir(exist_ok=True)
                checkout = getattr(options, side)
                found[side] = run_once(checkout, scratch, task, options.examples, options.limit)
            return found

        # The first of each kind fills the caches (of modules, of kernels), and is not counted.
        examples = [task for task in tasks if task not in OF_NO_EXAMPLE]
        for task in [task for task in tasks if task in OF_NO_EXAMPLE] + examples[:1]:
            pair(task, 0)
        # Nothing else runs while a GPU is timed.
        alone = [task for task in tasks if task == "cuda"]
        for turns, workers in ((alone, 1), ([t for t in tasks if t not in alone], options.workers)):
            jobs = [(task, turn) for turn in range(options.repeat) for task in turns]
            with ThreadPoolExecutor(workers) as pool:
                for number, ((task, _), found) in enumerate(
                    zip(jobs, pool.map(lambda job: pair(*job), jobs), strict=True), start=1
                ):
                    pairs[task].append(found)
                    print(f"\r{number} of {len(jobs)} pairs", end="", file=sys.stderr, flush=True)
                print(file=sys.stderr)
    return pairs


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[round(share * (len(ordered) - 1))]


def compared(name: str, values: Iterable[tuple[float, float]]) -> dict[str, Any]:
    """A row: the medians of both sides, and the median and quartiles of the neighbours' ratios."""
    both = list(values)
    ratios = [after / before for before, after in both if before > 0]
    return {
        "what": name,
        "before": _report.median(before for before, _ in both),
        "after": _report.median(after for _, after in both),
        "ratio": _report.median(ratios) if ratios else None,
        "lower quartile": quantile(ratios, 0.25) if ratios else None,
        "upper quartile": quantile(ratios, 0.75) if ratios else None,
        "pairs": len(both),
    }


def rows_of(pairs: dict[str, list[Pair]], part: str) -> dict[str, list[tuple[float, float]]]:
    """Under ``task, name``: both sides' numbers of each pair in which both have one."""
    rows: dict[str, list[tuple[float, float]]] = {}
    for task, found in pairs.items():
        for pair in found:
            before, after = (pair[side][part] for side in SIDES)
            for name in before:
                if name in after:
                    key = f"{task}: {name}" if name in KINDS else name
                    rows.setdefault(key, []).append((before[name], after[name]))
    return rows


def with_sums(rows: dict[str, list[tuple[float, float]]]) -> list[dict[str, Any]]:
    """The rows by kind, below those of each kind their sum over all examples, turn by turn."""
    table = []
    for kind in KINDS:
        members = {name: row for name, row in rows.items() if name.endswith(f": {kind}")}
        table += [compared(f"{name}, s", row) for name, row in members.items()]
        turns = list(zip(*members.values(), strict=False))
        if turns:
            sums = [(sum(b for b, _ in turn), sum(a for _, a in turn)) for turn in turns]
            table.append(compared(f"ALL EXAMPLES: {kind}, s", sums))
    table += [compared(n, row) for n, row in rows.items() if not n.endswith(KINDS)]
    return table


def differences(pairs: dict[str, list[Pair]]) -> tuple[list[str], list[str]]:
    """What one side lacks, and facts (generated texts, answers of proofs) that differ."""
    lacking, differing = {}, {}
    for task, found in pairs.items():
        for pair in found:
            for side in SIDES:
                for name, why in pair[side]["missing"].items():
                    lacking[f"{side}: {task}, {name}: {why}"] = None
            before, after = (pair[side]["facts"] for side in SIDES)
            for name in before:
                if name in after and before[name] != after[name]:
                    differing[f"{name}: {before[name]}, now {after[name]}"] = None
    return list(lacking), list(differing)


def print_steps(steps: list[dict[str, Any]], count: int) -> None:
    """The share of steps that became slower, and those that changed most in seconds."""
    known = [row for row in steps if row["ratio"] is not None]
    if not known:
        return
    ratios = [row["ratio"] for row in known]
    slower = sum(row["lower quartile"] > 1.05 for row in known)
    print(f"\n{len(known)} steps; median of their ratios {_report.median(ratios):.3f}; ", end="")
    print(f"{slower} slower by 5 % or more in three of four pairs. Those that changed most, ms:")
    known.sort(key=lambda row: float(row["before"] - row["after"]))
    for row in [*known[:count], *known[count:][-count:]]:
        print(f"  {1e3 * row['before']:8.2f} -> {1e3 * row['after']:8.2f}  {row['what'][:100]}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, help="a checkout")
    parser.add_argument("after", type=Path, help="another one")
    parser.add_argument("--repeat", type=int, default=7, help="pairs of processes (default 7)")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a process may take")
    parser.add_argument("--examples", type=Path, help="the folder of the examples (AFTER's)")
    parser.add_argument(
        "--only", nargs="+", metavar="TASK", help=f"{', '.join(OF_NO_EXAMPLE)}, EXAMPLE"
    )
    _report.add_arguments(parser)
    options = parser.parse_args()
    options.before, options.after = options.before.resolve(), options.after.resolve()
    options.examples = (options.examples or options.after / "examples").resolve()
    tasks = [task for task in OF_NO_EXAMPLE if task != "cuda" or _report.gpus()]
    tasks += sorted(p.stem for p in options.examples.glob("[!_]*.py"))
    if options.only:
        if unknown := set(options.only) - set(tasks):
            parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(tasks)}")
        tasks = options.only

    head = _report.header("before and after", "islpy", "pymbolic", "torch")
    head |= {side: _report.commit(getattr(options, side)) for side in SIDES}
    head |= {"pairs": options.repeat, "workers": options.workers}
    _report.print_header(head)
    print(
        f"before: {head['before']} ({options.before}); after: {head['after']} ({options.after})\n"
    )
    pairs = run_all(options, tasks)
    table = with_sums(rows_of(pairs, "numbers"))
    steps = [compared(name, row) for name, row in rows_of(pairs, "steps").items()]
    columns = ("what", "before", "after", "ratio", "lower quartile", "upper quartile")
    _report.print_table(columns, [[row[key] for key in columns] for row in table])
    print_steps(steps, 6)
    lacking, differing = differences(pairs)
    print(f"\nnot compared: {len(lacking)}", *lacking, sep="\n  ")
    print(f"texts and answers that differ: {len(differing)}", *differing, sep="\n  ")
    found = {"rows": table, "steps": steps, "lacking": lacking, "differing": differing}
    _report.write_json(options.json, {**head, **found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
