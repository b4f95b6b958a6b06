"""How long the proof of each transform takes: over the gallery, and in a chain of loops.

Every step of every schedule in `examples/` is timed, its proof included; each schedule is built
several times and the fastest run of each step counts, so that a busy machine does not. The chain is
100 dependent loops over arrays, each step touching one of them, or all.

    python benchmarks/checker.py --json benchmarks/results/checker.json
"""

from __future__ import annotations

import argparse
import gc
import importlib
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import _report

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

import loopkit as lk  # noqa: E402

MEDIAN_TARGET = 0.020
P99_TARGET = 0.200
CHAIN_TARGET = 0.5


def gallery() -> list[str]:
    """The names of the scripts of the gallery."""
    scripts = (ROOT / "examples").glob("*.py")
    return sorted(p.stem for p in scripts if not p.stem.startswith("_"))


def steps_of(name: str, repetitions: int) -> list[dict[str, Any]]:
    """Each step of the schedules of one script, with its fastest time in seconds."""
    module = importlib.import_module(name)
    best: dict[tuple[str, int], dict[str, Any]] = {}
    for _ in range(repetitions):
        gc.collect()
        for title, kernel in module.make().items():
            for number, step in enumerate(kernel.history):
                key = (title, number)
                row = {"example": name, "schedule": title, "step": step.call(), "s": step.seconds}
                if key not in best or step.seconds < best[key]["s"]:
                    best[key] = row
    return list(best.values())


def chain_of(loops: int) -> lk.Kernel:
    """``t0[i0] = a[i0] + 0``, ``t1[i1] = t0[i1] + 1``, and so on."""
    names = ["a", *(f"t{k}" for k in range(loops - 1)), "out"]
    text = "\n".join(f"{names[k + 1]}[i{k}] = {names[k]}[i{k}] + {k}" for k in range(loops))
    domains = [f"{{ [i{k}]: 0 <= i{k} < n }}" for k in range(loops)]
    return lk.make_kernel(domains, text, dtypes={", ".join(names): "float32"})


def chain(loops: int) -> dict[str, Any]:
    """Seconds of steps on a chain of loops: one loop at a time, then all at once."""
    kernel = chain_of(loops)
    single = []
    for number in range(loops):
        kernel = kernel.split_iname(f"i{number}", 128)
        single.append(kernel.history[-1].seconds)
    start = time.perf_counter()
    kernel.tag_inames({f"i{number}_inner": "l.0" for number in range(loops)})
    return {
        "loops": loops,
        "worst step on one loop": max(single),
        "median step on one loop": statistics.median(single),
        "a step on all loops": time.perf_counter() - start,
    }


def percentile(values: list[float], share: float) -> float:
    """The value that ``share`` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> int:
    """Run, print, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    _report.add_arguments(parser)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--loops", type=int, default=100)
    options = parser.parse_args()
    head = _report.header("proofs of transforms", "islpy", "pymbolic")
    _report.print_header(head)
    rows = [row for name in gallery() for row in steps_of(name, options.repetitions)]
    seconds = [row["s"] for row in rows]
    links = chain(options.loops)
    result = {
        "steps": len(rows),
        "median": statistics.median(seconds),
        "p99": percentile(seconds, 0.99),
        "worst": max(seconds),
        "chain": links,
    }
    print(f"{len(rows)} steps of the gallery, milliseconds each, the proof included")
    print(f"  median {1e3 * result['median']:7.1f}   (target {1e3 * MEDIAN_TARGET:.0f})")
    print(f"  p99    {1e3 * result['p99']:7.1f}   (target {1e3 * P99_TARGET:.0f})")
    print(f"  worst  {1e3 * result['worst']:7.1f}")
    for row in sorted(rows, key=lambda r: -float(r["s"]))[:8]:
        print(f"    {1e3 * row['s']:7.1f}  {row['example']}: {row['step'][:90]}")
    print(
        f"a chain of {links['loops']} loops, milliseconds a step (target {1e3 * CHAIN_TARGET:.0f})"
    )
    for title in ("median step on one loop", "worst step on one loop", "a step on all loops"):
        print(f"  {title:<24} {1e3 * links[title]:7.1f}")
    _report.write_json(options.json, {**head, **result, "rows": rows})
    met = (
        result["median"] <= MEDIAN_TARGET
        and result["p99"] <= P99_TARGET
        and max(links["worst step on one loop"], links["a step on all loops"]) <= CHAIN_TARGET
    )
    print("all targets met" if met else "a target is missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
