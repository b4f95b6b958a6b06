"""Outputs in a real browser: statements light up where they should, and nothing is fetched."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from seams import GROUND, ROLES

import loopkit as lk

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

pytestmark = pytest.mark.browser


def _hex(colour: str) -> str:
    """``rgb(1, 2, 3)`` as ``#010203``."""
    return "#" + "".join(f"{int(part):02x}" for part in colour[4:-1].split(","))


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with outputs of two kernels, each in an element of its own as in a notebook."""
    tiled = importlib.import_module("matmul").make()["tiled"]
    other = importlib.import_module("transpose").make()["scheduled"]
    costs = tiled.costs(n=64, m=64, l=64)
    values = [("nest", tiled), ("source", tiled.cuda()), ("costs", costs), ("other", other)]
    values += [("history", tiled.history), ("step", tiled.history[3])]
    path = tmp_path_factory.mktemp("pages") / "notebook.html"
    cells = (f'<div id="{name}">{v._repr_mimebundle_()["text/html"]}</div>' for name, v in values)
    path.write_text(f'<!doctype html><meta charset="utf-8"><body>{"".join(cells)}')
    return path


@pytest.fixture
def page(browser: Any, notebook: Path) -> Iterator[Any]:
    made = browser.new_page(viewport={"width": 1200, "height": 3000}, color_scheme="light")
    said: list[str] = []
    made.on("console", lambda message: said.append(message.text))
    made.on("pageerror", lambda error: said.append(str(error)))
    made.on("request", lambda request: said.append(request.url))
    made.goto(notebook.as_uri())
    yield made
    assert said == [notebook.as_uri()]
    made.close()


def _lit(page: Any) -> dict[str, set[str]]:
    """Which statements are lit, in each output."""
    found = page.evaluate(
        """lit => [...document.querySelectorAll("[data-lk-s]")]
        .filter(e => getComputedStyle(e).backgroundColor === lit)
        .map(e => [e.closest("body > div").id, e.dataset.lkS])""",
        _rgb(GROUND["lit"].light),
    )
    lit: dict[str, set[str]] = {}
    for where, statement in found:
        lit.setdefault(where, set()).add(statement)
    return lit


def _rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


def test_a_statement_lights_up_in_all_outputs_of_its_kernel(page: Any) -> None:
    assert _lit(page) == {}
    page.hover('#nest [data-lk-s="3"]')
    assert _lit(page) == {"nest": {"3"}, "source": {"3"}, "costs": {"3"}}
    page.hover('#source [data-lk-s="0"]')
    assert _lit(page) == {"nest": {"0"}, "source": {"0"}}
    page.hover('#other [data-lk-s="0"]')
    assert _lit(page) == {"other": {"0"}}


def test_loops_fold(page: Any) -> None:
    inner = page.locator('#nest [data-lk-s="3"]')
    assert inner.is_visible()
    page.locator("#nest summary").first.click()
    assert not inner.is_visible()
    assert page.locator('#nest [data-lk-s="4"]').is_visible()


def test_a_step_opens_by_keys_where_one_sees_what_has_the_focus(page: Any) -> None:
    opened = page.locator("#history .lk-beside")
    assert opened.count() == 2 * 5 and not opened.first.is_visible()
    page.locator("#history summary").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    focused = page.locator("#history summary:focus-visible")
    assert focused.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert opened.first.is_visible() and not opened.nth(2).is_visible()
    heads = opened.first.locator("th").all_inner_texts()
    assert heads == ["nest before", "nest after"]
    left, right = (opened.first.locator("th").nth(n).bounding_box() for n in (0, 1))
    assert left["y"] == right["y"] and left["x"] + left["width"] <= right["x"] + 1
    page.keyboard.press("Enter")
    assert not opened.first.is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("attribute", ["data-theme", "data-jp-theme-light", "class"])
@pytest.mark.parametrize("system", ["light", "dark"])
def test_colours_follow_the_notebook(page: Any, theme: str, attribute: str, system: str) -> None:
    value = {"data-theme": theme, "class": f"vscode-{theme}"}.get(attribute)
    page.emulate_media(color_scheme=system)
    page.evaluate(
        "([name, value]) => document.body.setAttribute(name, value)",
        [attribute, value or str(theme == "light").lower()],
    )
    for query, role in (("#nest .lk", GROUND["ground"]), ("#nest .lk-thread", ROLES["thread"])):
        which = "backgroundColor" if role.name == "ground" else "color"
        found = page.locator(query).first.evaluate(f"e => getComputedStyle(e).{which}")
        assert _hex(found) == role.colour(theme == "dark")


def test_pages_for_notebooks_do_not_change_the_looks(page: Any) -> None:
    """Rules such as JupyterLab's, for tables and code in its outputs."""
    page.evaluate("document.body.classList.add('common')")
    before = page.locator("#history td").nth(1).bounding_box()
    page.add_style_tag(
        content=""".common td, .common th { text-align: right; padding: 2em }
        :not(.x).common td { text-align: right; vertical-align: middle }
        .common tbody tr:nth-child(odd) { background: red }
        .common :not(pre) > code { background: red; padding: 9px }
        .common pre { padding: 2em; line-height: 9 } .common table { table-layout: fixed }"""
    )
    assert page.locator("#history td").nth(1).bounding_box() == before
    style = page.locator("#history td code").first.evaluate("e => getComputedStyle(e).background")
    assert "255, 0, 0" not in style


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1400])
def test_nothing_is_wider_than_the_page(page: Any, width: int) -> None:
    """What is wider scrolls inside of its output."""
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_long_lines_of_a_source_wrap(browser: Any, tmp_path: Path) -> None:
    """Where there is room none scrolls; elsewhere none is longer than 130 letters or so."""
    knl = importlib.import_module("heat").plain()
    assert max(map(len, knl.cuda().splitlines())) > 10_000
    path = tmp_path / "long.html"
    path.write_text(f"<!doctype html><body>{knl.cuda()._repr_mimebundle_()['text/html']}")
    tab = browser.new_page(viewport={"width": 1100, "height": 900})
    tab.goto(path.as_uri())
    excess = "e => e.scrollWidth - e.clientWidth"
    assert tab.locator(".lk-source").evaluate(excess) == 0
    tab.set_viewport_size({"width": 390, "height": 900})
    assert 0 < tab.locator(".lk-source").evaluate(excess) < 800
    tab.close()


@pytest.mark.parametrize("width", [390, 1115])
def test_a_history_and_its_diffs_hide_nothing(page: Any, width: int) -> None:
    """What a step changed can be read at any width; lines of a diff wrap."""
    page.set_viewport_size({"width": width, "height": 900})
    right = "all => Math.max(...all.map(e => e.getBoundingClientRect().right))"
    changed = page.locator("#history .lk-steps td:last-child > div")
    assert changed.count() and changed.evaluate_all(right) <= width
    excess = "all => Math.max(...all.map(e => e.scrollWidth - e.clientWidth))"
    for part in ("#history .lk", "#step .lk", "#step .lk-diff"):
        assert page.locator(part).evaluate_all(excess) <= 0, part


def test_a_long_source_shows_that_there_is_more(browser: Any, tmp_path: Path) -> None:
    """A shadow where more lines follow, none at the end; on paper all of them are there."""
    text = "\n".join(f"a[i] = {n} * b[i]" for n in range(80))
    knl = lk.make_kernel("{ [i]: 0 <= i < 64 }", text, dtypes={"a, b": "float32"})
    path = tmp_path / "long.html"
    path.write_text(f"<!doctype html><body>{knl.cuda()._repr_mimebundle_()['text/html']}")
    tab = browser.new_page(viewport={"width": 1100, "height": 1000}, color_scheme="light")
    tab.goto(path.as_uri())
    box = tab.locator(".lk-source")
    hidden = "e => e.scrollHeight - e.clientHeight"
    assert box.evaluate(hidden) > 100
    place = box.bounding_box()
    strip = {"x": place["x"] + 100, "y": place["y"] + place["height"] - 4, "width": 20, "height": 3}
    more = tab.screenshot(clip=strip)
    box.evaluate("e => e.scrollTo(0, e.scrollHeight)")
    assert tab.screenshot(clip=strip) != more
    tab.emulate_media(media="print")
    assert box.evaluate(hidden) == 0
    tab.close()
