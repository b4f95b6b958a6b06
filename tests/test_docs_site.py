"""The site in a browser: light, dark and narrow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from printed_pages import build_pages

PAGES = (
    *("index", "coming_from_loopy", "transforms/index", "transforms/storage"),
    *("gallery/index", "gallery/transpose", "gallery/batched_4x4", "gallery/layernorm"),
)
WITHOUT_OUTPUTS = ("coming_from_loopy", "gallery/index", "transforms/index")
LARGEST = 500_000
"""Bytes of a page: more is slow to open."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some pages, built alone."""
    out = tmp_path_factory.mktemp("site")
    build_pages(out, *PAGES)
    return out


@pytest.mark.browser
@pytest.mark.parametrize("page", PAGES)
def test_pages_follow_the_theme_and_the_window(browser: Any, site: Path, page: str) -> None:
    said: list[str] = []
    tab = browser.new_page(color_scheme="light")
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto((site / f"{page}.html").as_uri())
    grounds = {}
    for theme in ("light", "dark"):
        tab.evaluate(f"document.body.dataset.theme = '{theme}'")
        grounds[theme] = tab.evaluate(
            "[...document.querySelectorAll('.lk')].map(e => getComputedStyle(e).backgroundColor)"
        )
    assert (site / f"{page}.html").stat().st_size < LARGEST
    if page not in WITHOUT_OUTPUTS:
        assert set(grounds["light"]) == {"rgb(255, 255, 255)"}
        assert set(grounds["dark"]) == {"rgb(20, 24, 29)"}
    for width in (1400, 1100, 700, 380):
        tab.set_viewport_size({"width": width, "height": 900})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tables = "[...document.querySelectorAll('.table-wrapper')]"
    assert tab.evaluate(f"{tables}.every(e => e.scrollWidth <= e.clientWidth)")
    tab.close()
    assert said == []


@pytest.mark.browser
@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_left_of_what_pages_are_written_in(browser: Any, site: Path, page: str) -> None:
    """Roles, backquotes and the names of files that links between pages lead to."""
    tab = browser.new_page()
    tab.goto((site / f"{page}.html").as_uri())
    tab.evaluate("document.querySelectorAll('pre, .lk').forEach(one => one.remove())")
    text = tab.locator("article").inner_text()
    tab.close()
    assert len(text) > 200
    assert not re.search(r"``|:\w+:`|\.md\b", text)


@pytest.mark.browser
def test_a_statement_lights_up_in_all_that_shows_it(browser: Any, site: Path) -> None:
    tab = browser.new_page()
    tab.goto((site / "index.html").as_uri())
    outlines = "n => [...document.querySelectorAll(n)].map(e => getComputedStyle(e).outlineStyle)"
    drawn = ".lk svg [data-lk-s='0']"
    assert "solid" not in tab.evaluate(outlines, drawn)
    tab.hover(".lk-nest [data-lk-s='0']")
    lit = tab.evaluate(outlines, drawn)
    tab.close()
    assert lit.count("solid") >= 23, "points of the picture"


@pytest.mark.browser
def test_what_folds_in_a_source_looks_like_the_source(browser: Any, site: Path) -> None:
    tab = browser.new_page()
    tab.goto((site / "gallery/layernorm.html").as_uri())
    sizes = tab.evaluate(
        "[...document.querySelectorAll('.lk-source summary, .lk-source [data-n]')]"
        ".map(e => [e.tagName, getComputedStyle(e).fontSize])"
    )
    tab.close()
    assert len({tag for tag, _ in sizes}) == 2 and len({size for _, size in sizes}) == 1
