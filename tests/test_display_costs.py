"""Costs as HTML: what the text says, with rows that belong to statements."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
from html_page import Page
from seams import scope_of

import loopkit as lk
from loopkit import Kernel

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))


@pytest.mark.parametrize(
    ("example", "schedule", "sizes"),
    [
        ("matmul", "tiled", {"n": 64, "m": 48, "l": 32}),
        ("transpose", "scheduled", {"n": 64, "m": 32}),
        ("segmented_sum", "scheduled", {"segments": 128, "length": 64}),
    ],
)
def test_costs(example: str, schedule: str, sizes: dict[str, int]) -> None:
    kernel: Kernel = importlib.import_module(example).make()[schedule]
    costs = kernel.costs(**sizes)
    bundle = costs._repr_mimebundle_()
    assert bundle["text/plain"] == str(costs)
    page = Page(bundle["text/html"])
    assert set(re.findall(r"\w+", str(costs))) <= set(re.findall(r"\w+", " ".join(page.texts)))
    assert page.values("data-lk-k") == [scope_of(kernel)]
    accessing = {a.statement for a in costs.accesses}
    places = {str(n) for n, s in enumerate(kernel.statements) if s.id in accessing}
    assert set(page.values("data-lk-s")) == places
    assert set(page.values("title")) == accessing


def test_parts_show_what_they_print() -> None:
    kernel: Kernel = importlib.import_module("transpose").make()["scheduled"]
    costs = kernel.costs(n=64, m=64, device="H100")
    for part in (costs.device, costs.roofline):
        bundle = part._repr_mimebundle_()
        assert bundle["text/plain"] == str(part) == Page(bundle["text/html"]).text


def test_an_empty_kernel_costs_nothing() -> None:
    costs = lk.make_kernel("{ [i]: 0 <= i < n }", "").costs(n=1)
    assert Page(costs._repr_mimebundle_()["text/html"]).text.startswith("kernel")


def test_costs_of_open_sizes() -> None:
    kernel: Kernel = importlib.import_module("transpose").make()["scheduled"]
    costs = kernel.costs(m=64)
    bundle = costs._repr_mimebundle_()
    assert bundle["text/plain"] == str(costs)
    page = Page(bundle["text/html"])
    assert set(re.findall(r"\w+", str(costs))) <= set(re.findall(r"\w+", " ".join(page.texts)))


@pytest.mark.parametrize(
    ("example", "schedule"), [("bitonic", "a launch a stage"), ("full_sum", "two launches")]
)
def test_launches_fold(example: str, schedule: str) -> None:
    """Each under its head; where there are many, they are closed at first."""
    kernel: Kernel = importlib.import_module(example).make()[schedule]
    page = Page(kernel.costs(n=64)._repr_mimebundle_()["text/html"])
    launches = len(kernel.launches())
    assert page.tags.count("details") == launches
    assert len(page.values("open")) == (launches if launches <= 3 else 0)
    assert "====" not in page.text
