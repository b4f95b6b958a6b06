"""Imports run downwards: no module imports, early or late, what imports it."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def modules() -> dict[str, ast.Module]:
    """The modules of the product by name."""
    found = {}
    for path in _files():
        parts = path.relative_to(ROOT).with_suffix("").parts
        parts = parts if parts[0] == "loopkit" else ("loopkit", *parts)
        found[".".join(p for p in parts if p != "__init__")] = ast.parse(path.read_text())
    return found


def _files() -> Iterator[Path]:
    for folder in ("loopkit", "transforms", "codegen"):
        for path in (ROOT / folder).rglob("*.py"):
            inside = path.relative_to(ROOT).parts
            if inside[:2] not in (("loopkit", "transforms"), ("loopkit", "codegen")):
                yield path


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """What is executed at some time: all but what only type checkers read."""
    yield node
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        children: list[ast.stmt] = node.orelse
    else:
        children = list(ast.iter_child_nodes(node))  # type: ignore[arg-type]
    for child in children:
        yield from executed(child)


def imported(tree: ast.Module, known: dict[str, ast.Module]) -> Iterator[str]:
    """The modules that a module imports, at its top or inside of functions."""
    for node in executed(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            parts = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (part for part in parts if part in known)
            if not all(part in known for part in parts):
                yield node.module


def test_no_module_imports_what_imports_it() -> None:
    known = modules()
    assert len(known) > 200
    graph = {name: {m for m in imported(tree, known) if m != name} for name, tree in known.items()}
    graphlib.TopologicalSorter(graph).prepare()  # raises a CycleError that holds the circle


def test_data_stands_below_what_is_done_with_it() -> None:
    known = modules()
    waiting, below = ["loopkit._kernel"], set[str]()
    while waiting:
        new = set(imported(known[waiting.pop()], known)) - below
        below |= new
        waiting += new
    rooms = ("_check", "_make", "_run", "_verify", "_transform", "transforms", "codegen")
    assert not [m for m in below if m.split(".")[1] in rooms]
