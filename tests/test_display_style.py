"""The table of roles: text reads well in light and dark, and nothing rests on colour alone."""

from __future__ import annotations

import itertools
import random
import re
import string
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest
from html_page import Page, contrast
from hypothesis import given
from hypothesis import strategies as st
from seams import (
    GROUND,
    ROLES,
    SERIES,
    SHEET,
    element,
    html_text,
    lighting,
    markup,
    mixed,
    output,
    table,
    visible,
)

# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
# Deficiency" (2009): severity 1.0, on linear RGB.
BLINDNESS = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}


def _linear(colour: str) -> list[float]:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]


def _lab(rgb: list[float]) -> list[float]:
    """CIE L*a*b* (D65) of linear sRGB."""
    matrix = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    x, y, z = (sum(m * min(max(c, 0), 1) for m, c in zip(r, rgb, strict=True)) for r in matrix)
    f = [
        t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116
        for t in (x / 0.95047, y, z / 1.08883)
    ]
    return [116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])]


def _difference(one: str, other: str, how: tuple[tuple[float, ...], ...] | None) -> float:
    seen = []
    for colour in (one, other):
        rgb = _linear(colour)
        if how is not None:
            rgb = [sum(m * c for m, c in zip(row, rgb, strict=True)) for row in how]
        seen.append(_lab(rgb))
    return float(sum((a - b) ** 2 for a, b in zip(*seen, strict=True)) ** 0.5)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)
    assert contrast("#ffffff", "#767676") == pytest.approx(4.542, abs=1e-3)
    assert mixed("#ff0000", "#0000ff", 0.5) == "#800080"


@pytest.mark.parametrize("dark", [False, True])
def test_text_reads_well(dark: bool) -> None:
    grounds = [GROUND[name].colour(dark) for name in ("ground", "panel", "lit")]
    text = GROUND["text"].colour(dark)
    for role in ROLES.values():
        for ground in (*grounds, role.tint(dark)):
            assert contrast(role.colour(dark), ground) >= 4.5, (role.name, ground)
        assert contrast(text, role.tint(dark)) >= 4.5, role.name
    assert min(contrast(text, ground) for ground in grounds) >= 4.5


def test_roles_differ_without_colour() -> None:
    """Of those that may be taken for each other: words, kinds of lines, verdicts."""
    words = ("block", "thread", "unrolled", "loop", "shared", "private", "global", "constant")
    for group in (words, ("barrier", "copy", "comment", "statement"), ("added", "removed")):
        assert len({(ROLES[name].css, ROLES[name].mark) for name in group}) == len(group)
    assert len({ROLES[name].mark for name in ("ok", "refused", "undecided")}) == 3


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("how", [None, *BLINDNESS.values()])
def test_fills_differ_for_all_eyes(dark: bool, how: tuple[tuple[float, ...], ...] | None) -> None:
    fills = [pair[dark] for pair in SERIES]
    for one, other in itertools.combinations(fills, 2):
        assert _difference(one, other, how) >= 7, (one, other)


@given(st.text(), st.text())
def test_text_stays_text(text: str, value: str) -> None:
    made = table(["<b>", text], [[text, element("code", text, title=value)], [1, None]])
    page = Page(html_text(output(made)))
    rows = "tr td td code tr td td"
    assert " ".join(page.tags) == f"div style table thead tr th th tbody {rows}"
    assert page.text == "<b>" + 3 * visible(text) + "1"
    assert ("title", visible(value)) in page.attributes


def test_what_cannot_be_seen_is_spelled_out() -> None:
    assert visible("a\x1b[31m\x00\x7f\u202eb\ud800\n\tc\u00e9") == (
        "a\u241b[31m\u2400\u2421\\u202eb\\ud800\n\tc\u00e9"
    )


@pytest.mark.parametrize("tag", ["script", "SCRIPT", "style", "iframe", "a b", "", "x>y", "meta"])
def test_no_element_acts(tag: str) -> None:
    with pytest.raises(ValueError, match="no element"):
        element(tag)


@pytest.mark.parametrize(
    "attribute",
    [
        {"onclick": "x"},
        {"ONLOAD": "x"},
        {"href": "javascript:x"},
        {"src": "http://a"},
        {"style": "background:url(http://a)"},
        {"style": "color:red}"},
        {"a=b": "x"},
    ],
)
def test_no_attribute_acts(attribute: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="no "):
        element("p", **attribute)


def test_plain_attributes() -> None:
    made = element("a", "x", href="#here", style="color:var(--lk-ok);width:3%", hidden=None)
    add = element("rect", stroke_width=2, data_lk_s=0, viewBox="0 0 1 1", open=True, shut=False)
    assert html_text(made) == '<a href="#here" style="color:var(--lk-ok);width:3%">x</a>'
    assert add.attrib == {"stroke-width": "2", "data-lk-s": "0", "viewBox": "0 0 1 1", "open": ""}


def test_a_picture_stands_alone() -> None:
    picture = element("svg", element("text", "a<b\x01", class_="lk-thread"), viewBox="0 0 9 9")
    root = fromstring(markup.svg_text(picture))
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and root.get("class") == "lk"
    assert [child.text for child in root][1:] == ["a<b\u2401"]
    assert "svg.lk .lk-thread" in (root[0].text or "")
    assert picture.get("xmlns") is None and len(picture) == 1


def test_the_sheet_is_small_and_closed() -> None:
    assert len(SHEET) < 14_000
    assert SHEET.count("{") == SHEET.count("}")
    assert "url(" not in SHEET and "@import" not in SHEET and "<" not in SHEET


def test_an_output_brings_the_part_of_the_sheet_that_it_needs() -> None:
    """Each class that is used has its rules, each colour that these name a value, twice."""
    line = element("span", "x", class_="lk-thread")
    html = markup.html_text(markup.output(line, style="color:var(--lk-ok)"))
    [sheet] = re.findall("<style>(.*?)</style>", html)
    assert ".lk .lk-thread{" in sheet and ".lk-block" not in sheet and "svg" not in sheet
    for name in re.findall(r"var\((--lk-[\w-]+)\)", html):
        assert sheet.count(f"{name}:") == 4, name
    assert len(sheet) < len(SHEET) / 3
    assert markup.without_sheet(html) == html.replace(f"<style>{sheet}</style>", "")


def test_lighting_names_each_statement_of_its_kernel() -> None:
    rules = lighting("k", 3)
    assert rules.count('data-lk-k="k"') == 6
    assert [f'[data-lk-s="{n}"]' in rules for n in range(4)] == [True, True, True, False]
    assert lighting("k", 0) == ""


def test_forms_that_nobody_asks_for_are_not_made() -> None:
    def never() -> Any:
        raise AssertionError

    def made() -> Element:
        return element("p", "<")

    page = "<p>&lt;</p>"
    assert markup.bundle(never, lambda: "t", include=["text/plain"]) == {"text/plain": "t"}
    assert markup.bundle(made, never, exclude=["text/plain"]) == {"text/html": page}
    assert markup.bundle(made, lambda: "t") == {"text/plain": "t", "text/html": page}


def test_names_are_escaped_whatever_they_hold() -> None:
    draw = random.Random(1)
    for _ in range(200):
        name = "".join(draw.choices("<>&\"'`{}/\\" + string.ascii_letters, k=12))
        assert Page(html_text(element("i", name, title=name))).text == name
