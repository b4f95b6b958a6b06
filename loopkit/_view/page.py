"""``knl.view("out.html")``: one page that stands alone, with each step down to its machine code."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from xml.etree.ElementTree import Element

from loopkit._display.markup import Part, element, fold, html_text, scope_of, visible
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
    script = _file("page.js")
    there = {pane.name for one in sections for pane in one.panes}
    toggles = [
        element("button", name, type="button", aria_pressed="true", data_toggle=name)
        for name in PANES
        if name in there
    ]
    last = len(sections) - 1
    return Template(_file("page.html")).substitute(
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        name=html.escape(visible(kernel.name)),
        sheet=SHEET + _file("page.css"),
        scope=scope_of(kernel),
        facts=html.escape(visible(facts)),
        toggles="".join(map(html_text, toggles)),
        steps="".join(html_text(_step(n, one, n == last)) for n, one in enumerate(sections)),
        sections="".join(html_text(_section(n, one, n == last)) for n, one in enumerate(sections)),
        script=script,
    )


def _file(name: str) -> str:
    return (files("loopkit._view") / name).read_text(encoding="utf-8")


def _step(number: int, one: Section, is_open: bool) -> Element:
    words, current = f"{number}  {one.label}", "step" if is_open else None
    return element("button", words, type="button", title=one.label, aria_current=current)


def _section(number: int, one: Section, is_open: bool) -> Element:
    below = [fold(title, part, is_open=False) for title, part in one.below]
    return element(
        "section",
        element("div", one.about, class_="lk-step"),
        element("div", [column(pane) for pane in one.panes], class_="lk-panes"),
        element("div", below, class_="lk-below") if below else None,
        id=f"step-{number}",
        hidden=not is_open,
    )
