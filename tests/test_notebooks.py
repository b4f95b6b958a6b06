"""The notebooks run from top to bottom, and show what their files hold."""

from __future__ import annotations

import difflib
import getpass
import json
import re
import socket
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient")
from notebook_files import NOTEBOOKS, ROOT, executed, masked, plain, read, settled, varying, written

LARGEST = 1_000_000
"""Bytes of a file, so that pages which render notebooks still do."""

BOTH = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.mark.slow
@BOTH
@pytest.mark.host
def test_outputs_are_up_to_date(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Each cell runs, and shows again what it shows in the file, but for cells that vary."""
    fresh = executed(path, tmp_path)
    if request.config.getoption("--regenerate-goldens"):
        path.write_text(written(settled(fresh, read(path))), encoding="utf-8", newline="\n")
        return
    kept, now = path.read_text("utf-8"), written(masked(fresh, read(path)))
    if kept != now:
        lines = difflib.unified_diff(kept.splitlines(), now.splitlines(), "file", "now", "", "", 1)
        shown = "\n".join(line[:200] for line in list(lines)[:80])
        pytest.fail(f"`make goldens` brings {path.name} up to date\n{shown}", pytrace=False)


@BOTH
def test_files_are_plain(path: Path) -> None:
    """No file is large, or holds what only one run, one machine or one person has."""
    text, notebook = path.read_text("utf-8"), read(path)
    assert len(text.encode()) < LARGEST
    assert text == written(plain(notebook)), "`make goldens` writes it as all others are"
    names = {str(ROOT), str(Path.home()), socket.gethostname()} - {"/", "localhost"}
    said = json.dumps([cell.get("outputs") for cell in notebook["cells"]])
    assert not [name for name in names if name in said]
    assert not re.search(r"/(tmp|home|root|Users|usr|opt)/|site-packages|ipykernel_", said)
    if (user := getpass.getuser()) != "root":
        assert not re.search(rf"\b{re.escape(user)}\b", said)


@BOTH
def test_cells_read_well(path: Path) -> None:
    """Words stand before each cell of code, which shows something, and fails only where it says."""
    cells = read(path)["cells"]
    assert cells[0]["source"].startswith("# ")
    for before, cell in pairwise(cells):
        if cell["cell_type"] != "code":
            continue
        assert before["cell_type"] == "markdown", cell["source"]
        assert cell["outputs"], cell["source"]
        tags = cell["metadata"].get("tags", [])
        assert set(tags) <= {"varies", "raises-exception"}
        failed = any(output["output_type"] == "error" for output in cell["outputs"])
        assert varying(cell) or failed == ("raises-exception" in tags), cell["source"]


def test_all_are_there() -> None:
    """They are numbered, and the documentation leads to each."""
    page = (ROOT / "docs" / "notebooks.md").read_text("utf-8")
    assert [path.name[:2] for path in NOTEBOOKS] == [f"{n}_" for n in range(1, len(NOTEBOOKS) + 1)]
    assert not [path.name for path in NOTEBOOKS if f"(../notebooks/{path.name})" not in page]


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_as_a_page(browser: Any, tmp_path: Path, theme: str) -> None:
    """Made into a page, a notebook shows its outputs in its theme; they fetch nothing."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(theme=theme, mathjax_url="", require_js_url="")
    file = tmp_path / "page.html"
    file.write_text(exporter.from_filename(str(NOTEBOOKS[0]))[0], encoding="utf-8")
    page = browser.new_page(color_scheme=theme)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: complaints.append(asked.url))
    page.goto(file.as_uri())
    assert [text for text in complaints if text != file.as_uri()] == []
    outputs = page.locator(".jp-OutputArea-output .lk")
    assert outputs.count() > 10
    assert page.locator(".lk svg").count() >= 4
    grounds = set(outputs.evaluate_all("all => all.map(it => getComputedStyle(it).colorScheme)"))
    assert grounds == {theme}
    # A statement under the pointer is lit.
    statement = page.locator('.lk-nest [data-lk-s="0"]').first
    statement.hover()
    lit = statement.evaluate("it => getComputedStyle(it).backgroundColor")
    assert lit not in ("rgba(0, 0, 0, 0)", "transparent")
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
    page.close()
