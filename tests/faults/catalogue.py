"""All faults there are."""

from __future__ import annotations

import importlib

PARTS = (
    "splitting",
    "loops",
    "staging",
    "buffering",
    "storage",
    "anywhere",
    "claims",
    "subtle",
    "details",
    "copies",
    "indirect",
    "barriers",
    "launches",
    "saving",
    "placing",
    "guards",
    "memory",
    "printing",
    "values",
    "records",
    "rooms",
    "naming",
    "aliasing",
    "atomics",
    "collectives",
    "scans",
    "across",
)


def load() -> None:
    """Put all faults on the list."""
    for part in PARTS:
        importlib.import_module(f"faults.{part}")
