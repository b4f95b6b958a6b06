"""The reference: nothing public is missing, and each entry says what there is to say."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from printed_pages import build_pages
from seams import registered_transforms as transforms

import loopkit as lk

KERNEL = lk.make_kernel("{ [i]: 0 <= i < n }", "a[i] = 1")
METHODS = [n for n in dir(KERNEL) if not n.startswith("_") and n not in transforms]
CALLED = {f"Kernel.{n}": getattr(lk.Kernel, n) for n in METHODS if hasattr(lk.Kernel, n)}
CALLED |= {n: getattr(lk, n) for n in lk.__all__ if n not in transforms}
FUNCTIONS = {n: value for n, value in CALLED.items() if inspect.isfunction(value)}
RESULT = re.compile(r"(The|A|An|Grid|PTX|Registers|Python|How|Who|Which|What)\b")
"""How a sentence begins that names what is returned."""
QUIET = {"Kernel.script", "Kernel.users"}
"""Those that fail for no argument."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_say_what_they_take_return_and_raise(name: str) -> None:
    """Arguments by name; the result, by the first line or a field; the errors."""
    function = FUNCTIONS[name]
    text = inspect.getdoc(function) or ""
    first, *_ = text.split("\n\n")
    assert first.endswith((".", ":")), "the first paragraph is a sentence"
    skipped = {"self", "kernel", "unchecked", "ref_knl", "test_knl"}
    arguments = [n for n in inspect.signature(function).parameters if n not in skipped]
    assert not [a for a in arguments if not re.search(rf"\b{a}\b", text)]
    assert RESULT.match(first) or re.search(r"\b([Rr]eturns?|result is)\b", text)
    assert name in QUIET or re.search(r"\b([Rr]aise[sd]?|errors)\b", text)


@pytest.mark.parametrize("name", [n for n in lk.__all__ if inspect.isclass(getattr(lk, n))])
def test_values_say_what_they_are(name: str) -> None:
    value: Any = getattr(lk, name)
    text = inspect.getdoc(value) or ""
    assert len(text.split()) > 3 and not text.startswith(f"{name}("), "says a dataclass"


def test_the_page_has_them_all(tmp_path: Path) -> None:
    """Each public name, and each method and attribute of a kernel, has an entry on the page."""
    build_pages(tmp_path, "reference", root_doc="reference")
    page = (tmp_path / "reference.html").read_text(encoding="utf-8")
    entries = set(re.findall(r'id="loopkit\.([\w.]+)"', page))
    wanted = {*lk.__all__, *(f"Kernel.{n}" for n in METHODS)}
    assert sorted(wanted - entries) == []
    assert " at 0x" not in page, "an object's address is nothing to read"
