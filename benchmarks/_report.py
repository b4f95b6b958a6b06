"""What all benchmarks share: where and with what they ran, tables, and JSON files.

Only the standard library is needed, so that a benchmark can use this in any environment.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that every benchmark has."""
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the numbers here")


def median(values: Iterable[float]) -> float:
    """The median; for one value, that value."""
    return statistics.median(values)


def machine() -> dict[str, Any]:
    """The machine, as far as it matters for reading numbers."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "gpus": gpus(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def gpus() -> list[str]:
    """Name and driver of each GPU; empty where there is none."""
    if shutil.which("nvidia-smi") is None:
        return []
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode != 0:
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def versions(*packages: str) -> dict[str, str]:
    """Versions of Python and of those ``packages`` that are installed."""
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit(here: Path = HERE) -> str | None:
    """The commit of a checkout (this one), with ``+`` behind it where files differ from it."""
    try:
        name = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"],
            cwd=here,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no"],
            cwd=here,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return name + ("+" if changed else "")


def header(title: str, *packages: str, **more: Any) -> dict[str, Any]:
    """What stands above the numbers, in print and in JSON."""
    return {
        "benchmark": title,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "machine": machine(),
        "versions": versions("numpy", *packages),
        **more,
    }


def print_header(head: Mapping[str, Any]) -> None:
    """Print a header in a few lines."""
    on = head["machine"]
    print(f"{head['benchmark']}, {head['date']}, commit {head['commit'] or 'unknown'}")
    print(f"{on['cpu']}, {on['cores']} cores; " + ("; ".join(on["gpus"]) or "no GPU"))
    print(", ".join(f"{name} {version}" for name, version in head["versions"].items()))
    print()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows under column names: the first column left, all others right."""
    texts = [list(columns), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(columns))]
    for number, row in enumerate(texts):
        cells = [row[0].ljust(widths[0])]
        cells += [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))
    sys.stdout.flush()


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return str(value)


def write_json(path: Path | None, payload: Mapping[str, Any]) -> None:
    """Write ``payload`` to ``path``, in a stable form that diffs well; nothing without a path."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(payload, indent=1, ensure_ascii=False, default=str)
    path.write_text(text + "\n", encoding="utf-8")
    print(f"\nwritten: {path}")
