"""``knl.view("out.html")``: one page that stands alone, with each step down to its machine code."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator, Sequence
from importlib.resources import files
from xml.etree.ElementTree import Element

from loopkit._display.markup import Part, element, fold, html_text, scope_of
from loopkit._display.style import SHEET
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._view.panes import PANES, Pane, column


@dataclass(frozen=True)
class Section:
    """What the page shows of one step.

    ``label`` stands on its button, ``about`` above the panes, ``below`` under them: heads with
    what folds out.
    """

    label: str
    about: Part
    panes: tuple[Pane, ...]
    below: tuple[tuple[str, Part], ...] = ()


def page(kernel: Kernel, sections: Sequence[Section], facts: str) -> str:
    """The page as a text of HTML; the last section is open at first."""
    body = element(
        "body",
        element(
            "header",
            element("h1", kernel.name),
            element("span", facts, class_="lk-facts"),
            _bar(sections),
            _steps(sections),
        ),
        element("main", [_section(n, one, len(sections)) for n, one in enumerate(sections)]),
        element("footer", _keys()),
        class_="lk",
        data_lk_k=scope_of(kernel),
    )
    script = _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return "\n".join(
        (
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{rules}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.escape(kernel.name)}: loopkit</title>",
            f"<style>{SHEET}{_file('page.css')}</style></head>",
            html_text(body).removesuffix("</body>"),
            f"<script>{script}</script>",
            "</body></html>",
            "",
        )
    )


def _file(name: str) -> str:
    return (files("loopkit._view") / name).read_text(encoding="utf-8")


def _steps(sections: Sequence[Section]) -> Element:
    last = len(sections) - 1
    return element(
        "nav",
        [
            element(
                "button",
                f"{number}  {one.label}",
                type="button",
                title=one.label,
                aria_current="step" if number == last else None,
            )
            for number, one in enumerate(sections)
        ],
        aria_label="steps",
    )


def _bar(sections: Sequence[Section]) -> Element:
    there = {pane.name for one in sections for pane in one.panes}
    names = [name for name in PANES if name in there]
    return element(
        "span",
        [
            element("button", name, type="button", aria_pressed="true", data_toggle=name)
            for name in names
        ],
        element("button", "light/dark", type="button", data_turn=True),
        class_="lk-bar",
    )


def _section(number: int, one: Section, count: int) -> Element:
    return element(
        "section",
        element("div", one.about, class_="lk-step"),
        element("div", [column(pane) for pane in one.panes], class_="lk-panes"),
        element(
            "div",
            [fold(title, part, is_open=False) for title, part in one.below],
            class_="lk-below",
        )
        if one.below
        else None,
        id=f"step-{number}",
        hidden=number != count - 1,
    )


_KEYS = (
    ("[ ]", "steps"),
    ("1 2 3 4", "panes"),
    ("↑ ↓", "lines"),
    ("Tab ← →", "a border between panes"),
    ("click", "pins a line, and shows what it became"),
    ("Esc", "lets go"),
    ("d", "light or dark"),
)


def _keys() -> Iterator[Part]:
    for number, (keys, what) in enumerate(_KEYS):
        yield " · " if number else None
        yield [element("kbd", key) if len(key) < 5 else key for key in keys.split()]
        yield f" {what}"
