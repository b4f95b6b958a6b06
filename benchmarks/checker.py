"""How long the proof of each transform takes: the gallery, classic texts, and a chain of loops.

Every step of every schedule in `examples/` is timed, its proof included, in processor time. Each
example runs in several fresh processes, after all imports and a first small kernel; the median of
each step counts. The classic texts are those of `tests/classics.py`: sums, scans and sorts of 1,024
in a block or in launches, products, cells and bounds that data choose. Their steps are taken in
several orders; of each the longest step, `cuda()` and `prove()` count. The chain is 100 dependent
loops over arrays; steps touch one of them, or all.

The targets are chosen, from what a person waits for without noticing: ten ordinary steps within a
fifth of a second, a hundred loops within half of one.

    python benchmarks/checker.py --json benchmarks/results/checker.json
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import _report
from _fresh import CLASSIC, run_once

ROOT = Path(__file__).resolve().parent.parent
MEDIAN_TARGET = 0.020
P99_TARGET = 0.200
CHAIN_TARGET = 0.5
CUDA_TARGET = 0.5
PROVE_TARGET = 2.0

LIMITS = {"step": P99_TARGET, "cuda": CUDA_TARGET, "prove": PROVE_TARGET}
"""What is told of each classic text, in seconds: of its orders, the median and the worst."""

Classics = dict[str, dict[str, dict[str, float]]]


def measure(repetitions: int, limit: float) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """A row for each step of the gallery, and the numbers of the chain; medians, in seconds."""
    examples = ROOT / "examples"
    tasks = [*sorted(p.stem for p in examples.glob("[!_]*.py")), "chain"]
    steps: dict[str, list[float]] = {}
    numbers: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="loopkit-checker-") as folder:
        run_once(ROOT, Path(folder), tasks[0], examples, limit)  # compiles the modules
        for _ in range(repetitions):
            for task in tasks:
                found = run_once(ROOT, Path(folder), task, examples, limit)
                if found["missing"]:
                    raise SystemExit(f"{task}: {found['missing']}")
                for key, seconds in found["steps"].items():
                    steps.setdefault(key, []).append(seconds)
                if task == "chain":
                    for key, seconds in found["numbers"].items():
                        numbers.setdefault(key, []).append(seconds)
    rows = [
        {"step": key, "s": _report.median(found), "least": min(found), "most": max(found)}
        for key, found in steps.items()
    ]
    return rows, {key: _report.median(found) for key, found in numbers.items()}


def measure_classics(repetitions: int, limit: float) -> tuple[list[dict[str, Any]], Classics]:
    """The same for the classic texts: a row for each step, and what is told of each text."""
    texts = ROOT / "tests"
    sys.path.insert(0, str(texts))
    from classics import CLASSICS

    steps: dict[str, list[float]] = {}
    numbers: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="loopkit-classics-") as folder:
        for _ in range(repetitions):
            for name in CLASSICS:
                found = run_once(ROOT, Path(folder), CLASSIC + name, texts, limit)
                if found["missing"]:
                    raise SystemExit(f"{name}: {found['missing']}")
                for key, seconds in found["steps"].items():
                    steps.setdefault(key, []).append(seconds)
                for key, seconds in found["numbers"].items():
                    numbers.setdefault(name, {}).setdefault(key, []).append(seconds)
    rows = [{"step": key, "s": _report.median(found)} for key, found in steps.items()]
    told: Classics = {}
    for name, mine in numbers.items():
        for what in LIMITS:
            orders = [_report.median(s) for key, s in mine.items() if key.endswith(f": {what}")]
            told.setdefault(name, {})[what] = {
                "median": _report.median(orders),
                "worst": max(orders),
            }
    return rows, told


def percentile(values: list[float], share: float) -> float:
    """The value that ``share`` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> int:
    """Run, print, and write JSON if asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    _report.add_arguments(parser)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a process may take")
    parser.add_argument("--classics", action="store_true", help="the classic texts alone")
    options = parser.parse_args()
    head = _report.header("proofs of transforms", "islpy", "pymbolic")
    _report.print_header(head)
    rows, chain = ([], {}) if options.classics else measure(options.repetitions, options.limit)
    more, classics = measure_classics(options.repetitions, options.limit)
    rows += more
    seconds = [row["s"] for row in rows]
    result = {
        "steps": len(rows),
        "median": _report.median(seconds),
        "p99": percentile(seconds, 0.99),
        "worst": max(seconds),
        "chain": chain,
        "classics": classics,
    }
    print(f"{len(rows)} steps, processor milliseconds each, the proof included")
    print(f"  median {1e3 * result['median']:7.1f}   (target {1e3 * MEDIAN_TARGET:.0f})")
    print(f"  p99    {1e3 * result['p99']:7.1f}   (target {1e3 * P99_TARGET:.0f})")
    print(f"  worst  {1e3 * result['worst']:7.1f}")
    for row in sorted(rows, key=lambda r: -float(r["s"]))[:8]:
        print(f"    {1e3 * row['s']:7.1f}  {row['step'][:100]}")
    print(f"a chain of loops, milliseconds (target {1e3 * CHAIN_TARGET:.0f})")
    for title, value in chain.items():
        print(f"  {1e3 * value:7.1f}  {title.removesuffix(', s')}")
    print("classic texts, processor seconds: of several orders of the steps, median and worst")
    print(f"  {'':34}" + "".join(f"{what:>14}" for what in LIMITS))
    for name, mine in classics.items():
        both = (f"{mine[what]['median']:7.3f}{mine[what]['worst']:7.3f}" for what in LIMITS)
        print(f"  {name:34}" + "".join(both))
    print(f"  {'targets':34}" + "".join(f"{limit:14.3f}" for limit in LIMITS.values()))
    _report.write_json(options.json, {**head, **result, "rows": rows})
    met = (
        result["median"] <= MEDIAN_TARGET
        and result["p99"] <= P99_TARGET
        and max(chain.values(), default=0.0) <= CHAIN_TARGET
        and all(mine[w]["worst"] <= LIMITS[w] for mine in classics.values() for w in LIMITS)
    )
    print("all targets met" if met else "a target is missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
