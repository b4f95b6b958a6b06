"""Pictures in a browser: the slider moves time, by pointer and keys; light and dark; no scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loopkit as lk

pytestmark = pytest.mark.browser


def kernel() -> lk.Kernel:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j <= i }", "c[i, j] = a[i, j] + 1",
        dtypes={"a": "float32"}, assumptions="n >= 1", name="triangle",
    )  # fmt: skip
    return knl.split_iname("i", 2)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Two pictures of a kernel on one page, and its nest."""
    knl = kernel()
    outputs = [knl._repr_mimebundle_()["text/html"]]
    outputs += [knl.plot_domain(n=n).html() for n in (4, 3)]
    path = tmp_path / "page.html"
    path.write_text(f'<!doctype html><meta charset="utf-8">{"".join(outputs)}', encoding="utf-8")
    return path


@pytest.fixture(params=["light", "dark"])
def page(browser: Any, written: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    page = browser.new_page(color_scheme=request.param, java_script_enabled=True)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: complaints.append(asked.url))
    page.goto(written.as_uri())
    assert complaints.pop(0) == written.as_uri()
    yield page
    assert complaints == []
    page.close()


def there(page: Any, picture: int) -> int:
    """How many frames of a picture are shown: the first ones."""
    shown = page.locator(".lk-time").nth(picture).locator(".lk-frame")
    visible: list[bool] = shown.evaluate_all(
        "them => them.map(it => getComputedStyle(it).display !== 'none')"
    )
    assert visible == sorted(visible, reverse=True)
    return sum(visible)


def said(page: Any, picture: int) -> str:
    captions = page.locator(".lk-time").nth(picture).locator(".lk-now-is span:visible")
    assert captions.count() == 1
    return str(captions.inner_text())


def test_a_slider_moves_time_in_its_own_picture_alone(page: Any) -> None:
    ticks = page.locator(".lk-time").nth(0).locator("input")
    assert (ticks.count(), there(page, 0), there(page, 1)) == (10, 10, 6)
    assert said(page, 0) == "9: i_outer = 1, i_inner = 1, j = 3 (1 instance)"
    ticks.nth(3).click()
    assert (there(page, 0), there(page, 1)) == (4, 6)
    assert said(page, 0) == "3: i_outer = 1, i_inner = 0, j = 0 (1 instance)"
    page.keyboard.press("ArrowRight")
    assert there(page, 0) == 5
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert there(page, 0) == 3
    now = page.locator(".lk-time").nth(0).locator(".lk-now:visible")
    assert now.count() == 1


def test_pictures_take_the_colours_of_the_page(page: Any) -> None:
    ground = page.locator(".lk").nth(1).evaluate("it => getComputedStyle(it).backgroundColor")
    text = page.locator("svg text").first.evaluate("it => getComputedStyle(it).fill")
    light = ground == "rgb(255, 255, 255)"
    assert (text == "rgb(31, 41, 51)") is light
    scheme = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert scheme is not light


def test_statements_light_up_in_nest_and_picture(page: Any) -> None:
    nest = page.locator('.lk:not(:has(svg)) [data-lk-s="0"]').first
    looks = "it => getComputedStyle(it).outlineStyle"
    assert nest.evaluate(looks) == "none"
    page.locator(".lk-time").nth(0).locator("svg rect").first.hover()
    assert nest.evaluate(looks) == "solid"
