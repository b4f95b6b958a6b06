"""The kernels of `examples/`, made when they are asked for, and once in a process."""

from __future__ import annotations

import functools
import importlib
import sys
from pathlib import Path

import loopkit as lk

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

NAMES = sorted(p.stem for p in EXAMPLES.glob("*.py") if not p.stem.startswith("_"))

LISTED = "gallery.txt"
"""The golden that lists all schedules: tests are collected without making any."""

load = functools.cache(importlib.import_module)


@functools.cache
def kernels(example: str) -> dict[str, lk.Kernel]:
    """The schedules of an example, by name."""
    made: dict[str, lk.Kernel] = load(example).make()
    return made


def listed() -> str:
    """All schedules, below the examples that they are of."""
    return "".join(f"{e}\n" + "".join(f"    {name}\n" for name in kernels(e)) for e in NAMES)


def _read() -> tuple[tuple[str, str], ...]:
    found, example = [], ""
    for line in (Path(__file__).parent / "goldens" / LISTED).read_text("utf-8").splitlines():
        if line.startswith(" "):
            found.append((example, line.strip()))
        else:
            example = line
    return tuple(found)


SCHEDULES = _read()
"""An example and a name, for each schedule, the plain one included."""
