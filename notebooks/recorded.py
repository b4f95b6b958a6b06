"""Measurements that were recorded, for notebooks that are read where there is no GPU."""

from __future__ import annotations

import json
import re
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results" / "gpu.json"


def recorded(case: str) -> str:
    """The rows of ``benchmarks/gpu.py`` on a case: who, time, rate, and what it is a share of."""
    data = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = [row for row in data["rows"] if row["case"] == case]
    names = [re.sub(r" \(.*?\)", "", row["who"]) for row in rows]
    width = max(map(len, names))
    gpus = [gpu.replace(", ", ", driver ") for gpu in data["machine"]["gpus"]]
    where = f"{', '.join(gpus)}, {data['date']}"
    lines = [f"{case}, {rows[0]['size']}; recorded by `python benchmarks/gpu.py` on {where}:"]
    for name, row in zip(names, rows, strict=True):
        share = f"  {row['ratio']:.2f} of {re.split('[:,]', row['of'])[0]}" if row["ratio"] else ""
        lines.append(
            f"  {name:{width}}  {row['ms']:7.3f} ms  {row['rate']:6.2f} {row['unit']}{share}"
        )
    return "\n".join(lines)
