"""Each transform has what belongs to one: golden, refusal, page, draw, planted fault.

The same for each function that makes kernels, joins them, or counts what they do, where it
applies.  What is missing is named here, with the reason why.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign import composed, steps, variations
from faults.catalogue import load
from faults.planting import FAULTS
from refusals.calls import CALLS
from refusals.everything import CASES
from seams import registered_transforms as transforms

import loopkit as lk

TESTS = Path(__file__).resolve().parent
DOCS = TESTS.parent / "docs"
FUNCTIONS = [
    n
    for n in lk.__all__
    if inspect.isfunction(getattr(lk, n)) and n not in transforms and n.islower()
]
"""Those that are no steps; what is called like a class makes a declaration."""

NO_TEXT = {
    "add_padding_to_avoid_bank_conflicts": "its steps are pad_temporary's, which have goldens",
    "find_padding_multiple": "a number",
    "explore": "what is shown is in test_explore, the numbers in it depend on the machine",
    "measure": "times, which depend on the machine",
    "compare": "times, which depend on the machine",
    "auto_test_vs_ref": "times, which depend on the machine",
    "replay": "the kernel that the same steps make",
    "generate_code_v2": "the text of knl.cuda()",
    "set_loop_priority": "another name of prioritize_loops",
    "set_temporary_scope": "another name of set_temporary_address_space",
}
"""What has no golden of its own, and why."""

NO_REFUSAL = {
    "make_kernel": "test_display_bad_input and the tests of the syntax are about its refusals",
}
"""What has no refusal beside a nearest call, and why."""


def golden_tests() -> Iterator[tuple[ast.Module, ast.FunctionDef]]:
    """The tests that compare a text with a golden, each in its file."""
    for path in TESTS.glob("test_*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for node in tree.body:
            arguments = node.args.args if isinstance(node, ast.FunctionDef) else ()
            if isinstance(node, ast.FunctionDef) and "golden" in {a.arg for a in arguments}:
                yield tree, node


def reached(tree: ast.Module, test: ast.FunctionDef) -> Iterator[ast.AST]:
    """All that a test says, and what its file defines that it uses, directly or not."""
    defined: dict[str, ast.AST] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            defined[node.name] = node
        for target in node.targets if isinstance(node, ast.Assign) else ():
            defined |= {n.id: node for n in ast.walk(target) if isinstance(n, ast.Name)}
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            defined[node.target.id] = node
    seen: set[int] = set()
    waiting: list[ast.AST] = [test]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for part in ast.walk(node):
            yield part
            if isinstance(part, ast.Name) and part.id in defined:
                waiting.append(defined[part.id])


@functools.cache
def in_goldens() -> frozenset[str]:
    """The names that are called in tests whose texts are goldens."""
    parts = (part for tree, test in golden_tests() for part in reached(tree, test))
    return frozenset(part.attr for part in parts if isinstance(part, ast.Attribute))


@functools.cache
def sections() -> dict[str, str]:
    """The parts of the pages on transforms, by what they are about."""
    found = {}
    for page in (DOCS / "transforms").glob("*.md"):
        for part in re.split(r"^## ", page.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            title, _, body = part.partition("\n")
            found[title.strip()] = body
    return found


@functools.cache
def concerned() -> frozenset[str]:
    """The transforms in which faults are planted, or whose step is made with one planted."""
    load()
    steps_of = {fault.step.transform for fault in FAULTS.values() if fault.step is not None}
    return frozenset(steps_of | {fault.part for fault in FAULTS.values()})


@pytest.mark.parametrize("name", transforms)
def test_has_a_golden(name: str) -> None:
    assert name in in_goldens()


@pytest.mark.parametrize("name", transforms)
def test_has_a_refusal(name: str) -> None:
    """An illegal step beside the nearest schedule that is legal."""
    assert any(case.illegal.transform == name for case in CASES.values())


@pytest.mark.parametrize("name", transforms)
def test_has_a_page(name: str) -> None:
    """The page calls it, shows what comes out, and what it refuses or what would follow."""
    body = sections()[name]
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", body, re.MULTILINE | re.DOTALL))
    assert re.search(rf"\.{name}\(", code)
    assert re.search(r"^```text$", body, re.MULTILINE)
    assert re.search(r"^(    )*except lk\.\w+", code, re.MULTILINE), "nothing that is refused"


@pytest.mark.parametrize("name", transforms)
def test_campaign_uses_it(name: str) -> None:
    """Campaigns draw it, or say why not."""
    assert (name in steps.DRAWERS) != (name in steps.NOT_DRAWN)


@pytest.mark.parametrize("name", transforms)
def test_has_a_planted_fault(name: str) -> None:
    assert name in concerned()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str) -> None:
    """A golden, a refusal, and a place on some page; or a reason."""
    assert (name in in_goldens()) != (name in NO_TEXT)
    assert any(call.function == name for call in CALLS) != (name in NO_REFUSAL)
    pages = (page.read_text("utf-8") for page in DOCS.glob("**/*.md"))
    assert any(re.search(rf"\b{name}\b", text) for text in pages)


DRAWN = {
    "make_einsum": composed,
    "fuse_kernels": composed,
    "to_batched": composed,
    "make_function": variations,
    "register_callable": variations,
}
"""What makes kernels beside their texts, and the part of the campaign that draws it."""


@pytest.mark.parametrize("name", DRAWN)
def test_kernels_that_are_made_of_others_are_drawn(name: str) -> None:
    assert f"lk.{name}(" in inspect.getsource(DRAWN[name])
