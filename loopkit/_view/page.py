"""The parts of the page that shows each step, and the page itself, which stands alone.

A row of a pane carries the line of the source that it comes from (``data-line``), the line of the
PTX (``data-ptx``) and its statement (``data-lk-s``); the page's script follows these.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template
from xml.etree.ElementTree import Element

from loopkit._display.markup import Part, element, fold, html_text, scope_of, visible
from loopkit._display.nest_html import nest, source_lines
from loopkit._display.style import SHEET
from loopkit._errors import LoopkitError
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._run.listing import Listing, lines_of

PANES = ("nest", "source", "ptx", "sass")
"""The panes from left to right, by which keys and buttons call them."""


@dataclass(frozen=True)
class Pane:
    """One column of the page: what it is called, what it holds, what to say above it."""

    name: str
    title: str
    body: Element


def column(pane: Pane) -> Element:
    """A pane with its head."""
    region = {"tabindex": 0, "role": "region", "aria_label": pane.title}
    body = element("div", pane.body, class_="lk-pane", **region)
    head = element("h2", pane.title)
    return element("div", head, body, class_="lk-column", data_pane=pane.name)


def inset(*parts: Part) -> Element:
    """What is no list of rows, as the body of a pane."""
    return element("div", *parts, class_="lk-inset")


def note(text: str) -> Element:
    """What is said where something cannot be shown."""
    return element("pre", text, class_="lk-note")


def failed(name: str, title: str, error: LoopkitError) -> Pane:
    """In place of a pane that cannot be made: why."""
    return Pane(name, title, inset(note(str(error))))


def nest_pane(kernel: Kernel) -> Pane:
    """The loop nest, whose loops fold."""
    return Pane("nest", "nest", element("div", nest(kernel), class_="lk-inset"))


def source_pane(
    kernel: Kernel, costs: Mapping[str, Mapping[int, float]], listing: Listing | None
) -> Pane:
    """The CUDA C, and beside each line what it costs.

    ``costs`` holds a number for some lines under the head of its column.
    """
    columns: dict[str, Mapping[int, float]] = dict(costs)
    if listing is not None:
        columns["instr."] = {line: len(at) for line, at in lines_of(listing).items()}
    rows = [_head("line", tuple(columns))] if columns else []
    for number, (words, of) in enumerate(source_lines(kernel), 1):
        extras = [_figure(column.get(number)) for column in columns.values()]
        rows.append(_row(str(number), extras, words, data_line=number, **of))
    return Pane("source", f"CUDA C, {number} lines", _rows(rows))


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def ptx_pane(listing: Listing) -> Pane:
    """The PTX."""
    rows = [
        _row(str(number), (), line.text.expandtabs(4), data_line=line.line, data_ptx=number)
        for number, line in enumerate(listing.ptx, 1)
        if not line.text.lstrip().startswith(".loc")
    ]
    return Pane("ptx", f"PTX, {len(listing.ptx)} lines", _rows(rows))


def sass_pane(listing: Listing) -> Pane:
    """The machine code, with the number of registers in use at each instruction."""
    rows = [_head("address", ("reg.",))]
    rows += [
        _row(
            "" if one.address is None else f"{one.address:04x}",
            ["" if one.live is None else str(one.live)],
            one.text,
            data_line=one.line,
            data_ptx=one.ptx_line,
        )
        for one in listing.sass
    ]
    count = sum(one.address is not None for one in listing.sass)
    return Pane("sass", f"SASS for {listing.arch}, {count} instructions", _rows(rows))


def _rows(rows: Iterable[Element]) -> Element:
    return element("div", rows)


def _head(gutter: str, columns: Sequence[str]) -> Element:
    made = _row(gutter, columns)
    made.set("class", "lk-line lk-top")
    return made


def _row(gutter: str, extras: Iterable[str], *parts: Part, **attributes: object) -> Element:
    return element(
        "div",
        element("span", gutter, class_="lk-gutter"),
        [element("span", extra, class_="lk-extra") for extra in extras],
        element("span", parts),
        class_="lk-line",
        **attributes,
    )


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
