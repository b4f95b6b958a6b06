"""Tests look into the product through one table of names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import seams

TESTS = Path(__file__).resolve().parent
MOST = 509
"""So many private parts are looked at: fewer are better, and more are not allowed."""


def imports() -> Iterator[tuple[Path, str, str]]:
    """The names that the tests import, with the modules that these come from."""
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield from ((path, node.module, alias.name) for alias in node.names)


def is_private(module: str, name: str) -> bool:
    """Whether users have no business with a name."""
    top, *parts = module.split(".")
    inside = parts[:1] in (["codegen"], ["transforms"])
    return top == "loopkit" and (inside or any(p.startswith("_") for p in (*parts, name)))


def test_each_seam_leads_to_a_part_of_the_product() -> None:
    assert all(getattr(seams, name) is not None for name in seams.SEAMS)


def test_no_test_imports_private_names_by_itself() -> None:
    assert not [found for found in imports() if is_private(*found[1:])]


def test_each_seam_is_needed_and_there_are_no_more_than_before() -> None:
    used = {name for _, module, name in imports() if module == "seams"}
    assert used == seams.SEAMS.keys()
    assert len(seams.SEAMS) <= MOST
    assert len({*seams.SEAMS.values()}) == len(seams.SEAMS)
