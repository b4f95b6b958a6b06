"""What lowering and the proof both import: the list, and for each function who finds it wrong."""

from __future__ import annotations

import ast

import pytest
from faults.common import COMMON, FINDERS, NOBODY, REFUSED, RUN, planted_everywhere
from test_import_graph import modules

ROOM = "loopkit.codegen."


def test_nothing_else_is_shared() -> None:
    """Of classes, which are data, nothing is asked here, nor of the tree of C that is compared."""
    known = modules()
    functions = {
        (name, node.name)
        for name, tree in known.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
    proof = {name for name in known if name.startswith(f"{ROOM}proof")}
    lowering = {
        name for name in known if name.startswith(ROOM) and not name.startswith(f"{ROOM}c.")
    } - proof

    def imported(room: set[str]) -> set[tuple[str, str]]:
        nodes = [node for name in room for node in ast.walk(known[name])]
        froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
        return {(node.module or "", alias.name) for node in froms for alias in node.names}

    shared = imported(proof) & imported(lowering) & functions
    assert {f"{module}.{name}".removeprefix("loopkit.") for module, name in shared} == {*COMMON}


@pytest.mark.host
@pytest.mark.parametrize("function", COMMON)
def test_somebody_finds_it(function: str) -> None:
    fault = COMMON[function]
    # Some faults let through a step that is refused without them.
    right = (None, REFUSED) if fault.found_by == RUN else (None,)
    assert fault.finder() in right, "something is wrong without the fault"
    code = fault.code() if fault.found_by == NOBODY else ""
    with planted_everywhere(fault.planted_in or function, fault.make):
        found = fault.finder() or NOBODY
        assert FINDERS.index(found) <= FINDERS.index(fault.found_by), found
        if found == NOBODY:
            assert fault.code() == code
