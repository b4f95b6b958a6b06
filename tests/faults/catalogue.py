"""All faults there are."""

from __future__ import annotations

import importlib

PARTS = (
    "splitting",
    "loops",
    "staging",
    "buffering",
    "reduced",
    "storage",
    "anywhere",
    "claims",
    "subtle",
    "details",
    "copies",
    "indirect",
    "flat",
    "factors",
    "renumbering",
    "barriers",
    "launches",
    "saving",
    "placing",
    "guards",
    "exits",
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
    "thread_scans",
    "lookback",
    "across",
    "calls",
    "words",
    "statements",
    "array_axes",
    "promises",
    "arguments",
    "relatives",
    "bits",
    "moving_data",
    "rules_of_sums",
)


def load() -> None:
    """Put all faults on the list."""
    for part in PARTS:
        importlib.import_module(f"faults.{part}")
