"""Packages have budgets of lines of code, and blank lines and texts are not counted."""

from __future__ import annotations

from collections import Counter

from lines import BUDGET, budget_errors, count_code_lines, package_lines, product_files

SAMPLE = '''"""A module."""

from __future__ import annotations

import os  # not counted

LIMIT = 3  # counted
"""What it is."""


def total(
    a: int,
    b: int,
) -> int:
    """Their sum,

    of two.
    """
    # A comment.
    return (
        a
        + b
    )
'''


def test_lines_with_code_are_counted() -> None:
    assert count_code_lines(SAMPLE) == 9


def test_budgets_are_compared() -> None:
    lines = Counter({"a": 10, "b": 3, "c": 1})
    assert budget_errors(lines, {"a": 10, "b": 3, "c": 1}) == []
    assert budget_errors(lines, {"a": 8, "b": 3, "d": 1}) == [
        "c has no budget",
        "d is no package",
        "a has 10 lines of code, 2 too many",
    ]


def test_every_package_has_a_budget() -> None:
    assert BUDGET.exists()
    files = [*product_files()]
    assert len(files) == len({*files}) > 400
    assert {"loopkit", "transforms", "codegen/proof"} <= package_lines().keys()
