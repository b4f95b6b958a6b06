"""Schedules as people write them have all their pictures."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loopkit as lk

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


def pictures(knl: lk.Kernel, **sizes: int) -> Iterator[Any]:
    """A picture of each statement, array and loop."""
    for statement in knl.statements:
        yield knl.plot_domain(statement.id, **sizes)
    for array in (*knl.args, *knl.temporaries):
        if not isinstance(array, lk.ValueArg) and array.shape:
            yield knl.plot_footprint(array.name, block=0, **sizes)
            for make in (knl.plot_access, knl.plot_banks):
                try:
                    yield make(array.name, **sizes)
                except lk.InvalidArgumentError as error:
                    assert " memory, which " in str(error)
    for iname in dict.fromkeys(i for path in knl.paths.values() for i, _ in path):
        yield knl.plot_loop(iname, **sizes)
    yield knl.plot_roofline(device="H100", **sizes)


@pytest.mark.parametrize(
    ("module", "schedule", "size"),
    [
        ("matmul", "tiled", 14),
        ("transpose", "scheduled", 20),
        ("stencil_5", "scheduled", 40),
        ("wavefront", "scheduled", 12),
        ("n_body", "plain", 7),
    ],
)
def test_all_pictures(module: str, schedule: str, size: int) -> None:
    knl = importlib.import_module(module).make()[schedule]
    sys.modules.pop("_gallery", None)
    count = 0
    for picture in pictures(knl, **dict.fromkeys(knl.sizes, size)):
        assert picture.svg("light") and str(picture)
        count += 1
    assert count > 4
