"""From text to CUDA source: how long it takes, beside Loopy, stage by stage.

Every case runs in fresh processes, of loopkit and of Loopy in turn and equally often (a case that
takes Loopy longer than 20 s runs once). In both, before the clock starts, all modules of the tool
are imported, another case has run, and the garbage is collected; caches are off. What a process
costs up to its first kernel is what `first_kernel.py` measures. Times are processor times; medians,
and the median of the ratios of neighbours.

The kernels are one text for both (`_texts.py`); schedules are what a user of each writes, not the
same everywhere: in "SGEMM 8x8 a thread" Loopy interchanges loops by its tag `ilp.unr`, loopkit by
`prioritize_loops` and `unr`; Loopy's prefetches name their outer inames where it needs that. The
stencil stages a box around its footprint for both. loopkit's time includes the proof of each step;
Loopy proves none. Loopy gets the last islpy that it works with, loopkit the one that is installed.

Loopy is installed into an environment of its own (`--loopy-python` names one that has it).

    python benchmarks/compile_time.py --json benchmarks/results/compile_time.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import _report
import _texts

HERE = Path(__file__).resolve().parent
LOOPY = "2025.2"
# The last islpy that this Loopy works with.
LOOPY_NEEDS = [f"loopy=={LOOPY}", "islpy<2026"]

CASES = [
    "vector add",
    "SGEMM 16x16",
    "SGEMM 8x8 a thread",
    "25-point stencil",
    "DG gradient",
    *(f"{n} statements" for n in _texts.STATEMENTS),
    *(f"chain of {n} loops" for n in _texts.CHAINS),
]
# The passes of lowering, in the order in which they run.
PASSES = ["prepare", "hardware", "instances", "barriers", "nest", "storage", "widths"]
# Chosen: a person who explores waits a fifth of the time, or less.
TARGET = 0.2
# A case that Loopy needs longer for than this is not repeated.
SLOW = 20.0


def install_loopy(folder: Path) -> Path:
    """An environment with Loopy in it; the path of its Python."""
    print(f"installing Loopy {LOOPY} into an environment of its own", flush=True)
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *LOOPY_NEEDS], check=True)
    return python


def versions_of(python: Path) -> dict[str, str]:
    """What stands in the environment of a Python that has Loopy."""
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); import _report;"
        "print(json.dumps(_report.versions('loopy', 'numpy', 'islpy', 'pymbolic')))"
    )
    command = [str(python), "-c", code, str(HERE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def run_once(python: Path, script: str, case: str, limit: float) -> dict[str, Any]:
    """One repetition in a fresh process; ``error`` instead of numbers where it failed."""
    environment = os.environ | {
        "LOOPY_NO_CACHE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": str(HERE.parent),
    }
    try:
        done = subprocess.run(
            [str(python), str(HERE / script), case],
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"more than {limit:.0f} s"}
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {"error": lines[-1]}
    result = json.loads(done.stdout)
    assert isinstance(result, dict)
    return result


def measure(
    tools: dict[str, tuple[Path, str]], case: str, repeat: int, limit: float
) -> dict[str, Any]:
    """Of each tool the median, with the stages of the run in the middle; and the ratio."""
    runs: dict[str, list[dict[str, Any]]] = {tool: [] for tool in tools}
    for turn in range(repeat):
        for tool in tools if turn % 2 else reversed(tools):
            if runs[tool] and ("error" in runs[tool][-1] or runs[tool][-1]["seconds"] > SLOW):
                continue
            runs[tool].append(run_once(*tools[tool], case, limit))
    result: dict[str, Any] = {tool: _middle(found) for tool, found in runs.items()}
    if len(tools) == 2 and all("seconds" in result[tool] for tool in tools):
        pairs = zip(runs["loopkit"], runs["loopy"], strict=False)
        result["ratio"] = _report.median(own["seconds"] / other["seconds"] for own, other in pairs)
    return result


def _middle(runs: list[dict[str, Any]]) -> dict[str, Any]:
    if "error" in runs[-1]:
        return runs[-1]
    seconds = [run["seconds"] for run in runs]
    middle = sorted(runs, key=lambda run: float(run["seconds"]))[len(runs) // 2]
    return middle | {"all": seconds, "seconds": _report.median(seconds)}


def growth(results: dict[str, dict[str, Any]], tool: str, cases: list[str]) -> str:
    """How time grows from the first to the last case of a family, as an exponent."""
    import math

    points = [
        (int(next(word for word in case.split() if word.isdigit())), results[case][tool])
        for case in cases
        if case in results and "seconds" in results[case].get(tool, {})
    ]
    if len(points) < 2:
        return "unknown"
    (n0, first), (n1, last) = points[0], points[-1]
    exponent = math.log(last["seconds"] / first["seconds"]) / math.log(n1 / n0)
    return f"{last['seconds'] / first['seconds']:.1f}x for {n1 / n0:.0f}x: n^{exponent:.2f}"


def print_stages(results: dict[str, dict[str, Any]]) -> None:
    """Where loopkit's time goes, in milliseconds."""
    names: list[str] = []
    for result in results.values():
        for name in result["loopkit"].get("steps", {}):
            if name not in names:
                names.append(name)
    passes = [name for name in names if name in PASSES]
    order = [name for name in names if name not in PASSES and name != "print"]
    order += [*sorted(passes, key=PASSES.index), *(["print"] if "print" in names else [])]
    print("\nloopkit, milliseconds by stage")
    _report.print_table(
        ["case", *order],
        [
            [case, *(_milliseconds(result["loopkit"].get("steps", {}).get(n)) for n in order)]
            for case, result in results.items()
        ],
    )


def _milliseconds(seconds: float | None) -> str | None:
    return None if seconds is None else f"{1000 * seconds:.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5, help="processes per case (default 5)")
    parser.add_argument("--limit", type=float, default=400.0, help="seconds a case may take")
    parser.add_argument("--case", action="append", help="only cases whose name holds this")
    parser.add_argument("--loopy-python", type=Path, help="a Python that has Loopy already")
    parser.add_argument("--without-loopy", action="store_true", help="measure loopkit alone")
    _report.add_arguments(parser)
    options = parser.parse_args()
    cases = [c for c in CASES if not options.case or any(part in c for part in options.case)]
    if not cases:
        parser.error("no case has such a name; there are: " + ", ".join(CASES))

    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="loopkit-benchmark-") as folder:
        loopy = options.loopy_python
        if loopy is None and not options.without_loopy:
            loopy = install_loopy(Path(folder) / "loopy")
        head = _report.header("text to CUDA source", "islpy", "pymbolic")
        _report.print_header(head)
        tools = {"loopkit": (Path(sys.executable), "_compile_loopkit.py")}
        if loopy is not None:
            tools["loopy"] = (loopy, "_compile_loopy.py")
            head["versions of Loopy's"] = versions_of(loopy)
            print("Loopy's:", *head["versions of Loopy's"].items())
        for case in cases:
            print(f"{case} ...", end="", flush=True)
            result = measure(tools, case, options.repeat, options.limit)
            print(*(f" {tool} {_said(result[tool])}" for tool in tools), sep=",", end="")
            print()
            results[case] = result

    print()
    _report.print_table(
        ["case", "loopkit s", "Loopy s", "pairs", "ratio", f"at most {TARGET}"],
        [
            [
                case,
                result["loopkit"].get("seconds"),
                result.get("loopy", {}).get("seconds"),
                len(result.get("loopy", result["loopkit"]).get("all", [])),
                result.get("ratio"),
                None if "ratio" not in result else "yes" if result["ratio"] <= TARGET else "NO",
            ]
            for case, result in results.items()
        ],
    )
    families = {
        "statements in one loop": [f"{n} statements" for n in _texts.STATEMENTS],
        "chains of loops": [f"chain of {n} loops" for n in _texts.CHAINS],
    }
    print()
    grown = {}
    for name, members in families.items():
        grown[name] = {
            tool: growth(results, tool, members) for tool in ("loopkit", "loopy") if members
        }
        print(f"{name}: loopkit {grown[name]['loopkit']}; Loopy {grown[name]['loopy']}")
    print_stages(results)
    _report.write_json(options.json, {**head, "results": results, "growth": grown})
    return 0 if all("seconds" in result["loopkit"] for result in results.values()) else 1


def _said(result: dict[str, Any]) -> str:
    return f"{result['seconds']:.4f} s" if "seconds" in result else result["error"]


if __name__ == "__main__":
    sys.exit(main())
