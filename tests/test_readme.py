"""The README's code runs, and prints what the README says it prints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _blocks(language: str) -> list[str]:
    text = README.read_text(encoding="utf-8")
    return [body for lang, body in BLOCK.findall(text) if lang == language]


def test_readme(request: pytest.FixtureRequest) -> None:
    names: dict[str, Any] = {}
    first, *others = _blocks("python")
    exec(first, names)
    fast = names["fast"]
    printed = {"nest": str(fast).rstrip() + "\n", "cuda": fast.cuda().rstrip() + "\n"}
    if request.config.getoption("--regenerate-goldens"):
        text = README.read_text(encoding="utf-8")
        for language, body in printed.items():
            pattern = re.compile(rf"^```{language}\n.*?^```$", re.MULTILINE | re.DOTALL)
            text = pattern.sub(lambda _, to=f"```{language}\n{body}```": to, text)
        README.write_text(text, encoding="utf-8", newline="\n")
    for language, body in printed.items():
        assert _blocks(language) == [body], "`make goldens` brings the README up to date"
    for block in others:
        exec(block, names)
