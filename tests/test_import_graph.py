"""Imports run downwards: no module imports, early or late, what imports it."""

from __future__ import annotations

import ast
import graphlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from lines import product_files

ROOT = Path(__file__).resolve().parent.parent

UPWARD = {
    # Methods of classes that hold data, which other modules attach to them.
    ("_errors", "_pictures.witness"),
    ("_history", "_steps"),
    ("_kernel", "_methods"),
    # Data that hold each other: a history its kernels, an error what was refused.
    ("_assertions.assertion_values", "_kernel"),
    ("_errors", "_check.instance_maps"),
    ("_errors", "_kernel"),
    ("_history", "_kernel"),
    ("_kernel", "_check.instance_maps"),
    # Functions that are methods of the class that they take, in files of their own.
    ("_check.partial_sums", "_check.schedule_check"),
    ("_costs.layouts", "_costs.costs"),
    ("_costs.occupancy", "_costs.devices"),
    ("_costs.roofline", "_costs.costs"),
    ("_costs.table", "_costs.costs"),
    ("_costs.traffic", "_costs.costs"),
    ("_display.answers", "_verify.verdict"),
    ("_display.answers", "codegen.proof.report"),
    ("_display.cost_tables", "_costs.costs"),
    ("_display.diff", "_changes"),
    ("_display.history", "_history_costs"),
    ("_explore.panel", "_explore.explorer"),
    ("_explore.shown_explorer", "_explore.explorer"),
    ("_explore.shown_explorer", "_explore.explorer"),
    ("_run.overlap", "_run.plan"),
    ("_run.inferred_sizes", "_run.plan"),
}
"""Imports for type checkers alone that run upwards: no others may, and none of these in vain."""


SHARED_NAMES = """
storage
"""
"""Names that several modules have: no other may be shared, and these should become fewer."""


def modules() -> dict[str, ast.Module]:
    """The modules of the product by name."""
    found = {}
    for path in product_files(ROOT):
        parts = path.with_suffix("").parts
        parts = parts if parts[0] == "loopkit" else ("loopkit", *parts)
        found[".".join(p for p in parts if p != "__init__")] = ast.parse((ROOT / path).read_text())
    return found


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """What is executed at some time: all but what only type checkers read."""
    yield node
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        children: list[ast.stmt] = node.orelse
    else:
        children = list(ast.iter_child_nodes(node))  # type: ignore[arg-type]
    for child in children:
        yield from executed(child)


def imported(
    tree: ast.Module,
    known: dict[str, ast.Module],
    nodes: Callable[[ast.AST], Iterator[ast.AST]] = executed,
) -> Iterator[str]:
    """The modules that a module imports, at its top or inside of functions."""
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            parts = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (part for part in parts if part in known)
            if not all(part in known for part in parts):
                yield node.module


def import_graph(
    known: dict[str, ast.Module], nodes: Callable[[ast.AST], Iterator[ast.AST]]
) -> dict[str, set[str]]:
    """What each module imports."""
    return {name: {*imported(tree, known, nodes)} - {name} for name, tree in known.items()}


def test_no_module_imports_what_imports_it() -> None:
    known = modules()
    assert len(known) > 200
    # A circle raises a CycleError that holds it.
    graphlib.TopologicalSorter(import_graph(known, executed)).prepare()


def test_imports_for_types_run_downwards() -> None:
    """So do the imports that only type checkers read, but for those that are listed."""
    known = modules()
    at_run_time, graph = (import_graph(known, nodes) for nodes in (executed, ast.walk))
    for module, imports in graph.items():
        imports -= {f"loopkit.{m}" for name, m in UPWARD if f"loopkit.{name}" == module}
    graphlib.TopologicalSorter(graph).prepare()
    for name, other in UPWARD:
        tree = known[f"loopkit.{name}"]
        assert f"loopkit.{other}" in {*imported(tree, known, ast.walk)}
        assert f"loopkit.{name}" in reached(graph, f"loopkit.{other}"), "this one runs downwards"
    assert not [
        edge for edge in UPWARD if f"loopkit.{edge[1]}" in at_run_time[f"loopkit.{edge[0]}"]
    ]


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """A module, and all that it imports, directly or not."""
    waiting, found = [start], {start}
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def test_data_stands_below_what_is_done_with_it() -> None:
    known = modules()
    below = reached(import_graph(known, executed), "loopkit._kernel")
    rooms = ("_check", "_make", "_run", "_verify", "_transform", "transforms", "codegen")
    assert not [m for m in below if m.split(".")[1] in rooms]


def test_no_two_modules_have_one_name() -> None:
    """A module is found by its name alone, except for those of a list that may only shrink."""
    count = Counter(path.stem for path in product_files(ROOT) if path.stem != "__init__")
    assert {name for name, times in count.items() if times > 1} == set(SHARED_NAMES.split())
