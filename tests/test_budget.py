"""What computations may spend: one table, and answers that depend on nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = [p for f in ("loopkit", "codegen", "transforms") for p in (ROOT / f).rglob("*.py")]


def limits(tree: ast.Module) -> Iterator[ast.expr]:
    """What isl is allowed, wherever it is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "at_most":
            yield node.args[0]


def test_limits_stand_in_the_table() -> None:
    """No other module says how much anything may spend."""
    seen = 0
    for path in FILES:
        text = path.read_text()
        if "from loopkit._budget import" not in text:
            continue
        for limit in limits(ast.parse(text)):
            seen += 1
            numbers = {n.value for n in ast.walk(limit) if isinstance(n, ast.Constant)}
            assert numbers <= {1, 2}, f"{path}: {ast.unparse(limit)}"
    assert seen > 10
