"""A task of `_work.py` in a fresh process, with one checkout of loopkit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

WORK = Path(__file__).resolve().parent / "_work.py"
CLASSIC = "classic: "
"""What the task of a classic text begins with."""
Result = dict[str, Any]


def run_once(checkout: Path, scratch: Path, task: str, examples: Path, limit: float) -> Result:
    """What one fresh process found; ``scratch`` holds the compiled modules and kernels of its like.

    Their first process fills these, and should not be counted.
    """
    environment = os.environ | {
        "PYTHONPATH": str(checkout),
        "PYTHONHASHSEED": "0",
        "PYTHONPYCACHEPREFIX": str(scratch / "modules"),
        "LOOPKIT_CACHE_DIR": str(scratch / "kernels"),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    nothing: Result = {"numbers": {}, "steps": {}, "facts": {}, "missing": {}}
    command = [sys.executable, str(WORK), task, str(examples)]
    try:
        done = subprocess.run(
            command, env=environment, cwd=scratch, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return nothing | {"missing": {task: f"more than {limit:.0f} s"}}
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return nothing | {"missing": {task: f"exit code {done.returncode}: {last}"}}
    result: Result = json.loads(done.stdout)
    home = result["facts"].pop("loopkit")
    if home != str(checkout / "loopkit" / "__init__.py"):
        raise SystemExit(f"{home} was imported, and not {checkout}: is a copy in the way?")
    return result
