"""The README's code runs, prints what the README says it prints, and draws its pictures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from printed_pages import check_page

README = Path(__file__).resolve().parent.parent / "README.md"


def test_readme(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    regenerate = request.config.getoption("--regenerate-goldens")
    pictures = re.findall(r"\"(docs/_static/[\w.]+\.svg)\"", README.read_text(encoding="utf-8"))
    assert len(pictures) == 2
    (tmp_path / "docs" / "_static").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    check_page(README, regenerate)
    for picture in pictures:
        kept = README.parent / picture
        drawn = (tmp_path / picture).read_text(encoding="utf-8")
        if regenerate:
            kept.write_text(drawn, encoding="utf-8", newline="\n")
        assert kept.read_text(encoding="utf-8") == drawn, "`make goldens` draws the pictures anew"
