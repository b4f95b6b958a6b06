"""Elements of HTML and SVG, built so that no text in them can become markup.

Trees of :mod:`xml.etree.ElementTree`, whose serializer escapes text and attributes; what it does
not guard (names of elements and attributes, addresses, style sheets, control characters) is
checked here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any
from unicodedata import category
from xml.etree.ElementTree import Element, tostring

from loopkit._display.style import ROLES, lighting, sheet_for
from loopkit._errors import LoopkitError
from loopkit._kernel import Kernel

Part = Element | str | int | None | Iterable[Any]
"""What stands in an element: elements, text, numbers, or several of these; None is nothing."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*", re.ASCII)
_STYLE = re.compile(r"(?:[\w\s:;.,%#+*/-]|var\(--[\w-]+\))*", re.ASCII)
_ADDRESSES = frozenset(("action", "data", "formaction", "href", "poster", "src", "srcset"))
_ACTIVE = frozenset(("base", "embed", "iframe", "link", "meta", "object", "script", "style"))


def element(tag: str, *parts: Part, **attributes: object) -> Element:
    """An element with parts inside: ``element("td", "x < y", class_="lk-number")``.

    ``_`` in the name of an attribute is ``-``, and one at the end is dropped.  An attribute
    that is None or False is left out, and one that is True has no value.  Raises
    :class:`ValueError` for what could act: scripts, event handlers, addresses outside of the page.
    """
    if not _NAME.fullmatch(tag) or tag.lower() in _ACTIVE:
        raise ValueError(f"no element of this page is called {tag!r}")
    made = Element(tag)
    for key, value in attributes.items():
        name = key.rstrip("_").replace("_", "-")
        if value is not None and value is not False:
            made.set(name, _attribute(name, "" if value is True else visible(str(value))))
    return add(made, *parts)


def _attribute(name: str, value: str) -> str:
    plain = name.lower()
    if not _NAME.fullmatch(name) or plain.startswith("on"):
        raise ValueError(f"no attribute of this page is called {name!r}")
    if plain in _ADDRESSES and not value.startswith("#"):
        raise ValueError(f"a self-contained page has no address {value!r}")
    if plain == "style" and not _STYLE.fullmatch(value):
        raise ValueError(f"no plain style: {value!r}")
    return value


def add(to: Element, *parts: Part) -> Element:
    """The element itself, with parts added behind those that it has."""
    for part in parts:
        if isinstance(part, Element):
            to.append(part)
        elif isinstance(part, (str, int)):
            text = visible(str(part))
            if len(to):
                to[-1].tail = (to[-1].tail or "") + text
            else:
                to.text = (to.text or "") + text
        elif part is not None:
            add(to, *part)
    return to


class _Shown(dict[int, str]):
    """How each character is shown, by its code: one that cannot be seen is spelled out."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        if not (letter.isprintable() or letter in "\n\t" or category(letter) == "Zs"):
            picture = 0x2400 + code if code < 32 else 0x2421 if code == 127 else 0
            letter = chr(picture) if picture else f"\\u{code:04x}"
        return self.setdefault(code, letter)


_SHOWN = _Shown()


def visible(text: str) -> str:
    """Text in which what cannot be seen is spelled out: ``␛`` for an escape."""
    return text if text.isascii() and text.isprintable() else text.translate(_SHOWN)


def inline(role: str, *parts: Part, **attributes: object) -> Element:
    """A word with the looks of a role of :data:`loopkit._display.style.ROLES`."""
    return element("span", *parts, class_=f"lk-{role}", **attributes)


def marked(role: str, words: object, **attributes: object) -> Element:
    """Words in the style of a role, after its sign."""
    return inline(role, f"{ROLES[role].mark} {words}", **attributes)


def suggested(text: str) -> Element:
    """What would be legal instead."""
    return element("div", inline("ok", ROLES["ok"].mark), f" {text}", class_="lk-wrapped")


def fold(summary: Part, *body: Part, is_open: bool = True, **attributes: object) -> Element:
    """What can be folded away under its first line."""
    return element("details", element("summary", summary), *body, open=is_open, **attributes)


def table(
    columns: Sequence[Part],
    rows: Iterable[Sequence[Part] | Element],
    *,
    numbers: Collection[int] = (),
    marks: Iterable[dict[str, object]] = (),
) -> Element:
    """A table; columns ``numbers`` stand to the right, ``marks`` are attributes of the rows.

    A row that is an element is one cell as wide as the table.
    """

    def cells(tag: str, row: Sequence[Part] | Element) -> list[Element]:
        if isinstance(row, Element):
            return [element(tag, row, colspan=len(columns))]
        return [
            element(tag, cell, class_="lk-number" if at in numbers else None)
            for at, cell in enumerate(row)
        ]

    given = iter(marks)
    body = [element("tr", cells("td", row), **next(given, {})) for row in rows]
    head = element("thead", element("tr", cells("th", columns)))
    return element("table", head, element("tbody", body))


def statement(position: int | None, name: str | None = None) -> dict[str, object]:
    """The attributes of what belongs to a statement, so that it lights up with it.

    ``position`` is that in ``kernel.statements``, ``name`` what to say where the pointer rests.
    """
    return {} if position is None else {"data_lk_s": position, "title": name}


def scope_of(kernel: Kernel) -> str:
    """What all outputs of a kernel are called, so that statements of others do not light up."""
    return kernel.key[:16]


def output(*parts: Part, kernel: Kernel | None = None, **attributes: object) -> Element:
    """One output: an element with class ``lk`` that brings its own style sheet.

    With ``kernel``, whatever has the attributes of :func:`statement` lights up in all outputs of
    that kernel while the pointer is on one of them.
    """
    if kernel is not None:
        attributes["data_lk_k"] = scope_of(kernel)
    made = element("div", *parts, class_="lk", **attributes)
    if kernel is not None:
        made.insert(0, _style(lighting(scope_of(kernel), len(kernel.statements))))
    made.insert(0, _style(_sheet_of(made)))
    return made


def _style(text: str) -> Element:
    made = Element("style")
    made.text = text
    return made


def _sheet_of(made: Element) -> str:
    """The rules that an element needs, of the style sheet."""
    words, named = set[str](), [str(lighting("", 1))]
    for one in made.iter():
        words.update((one.tag, *one.get("class", "").split()))
        named += [value for value in one.attrib.values() if "--lk-" in value]
        if one.tag == "style":
            named.append(one.text or "")
    return sheet_for(words, " ".join(named))


def without_sheet(html: str) -> str:
    """An output of :func:`output` for a page that has the whole style sheet already."""
    return re.sub(r"<style>\.lk\{color-scheme:.*?</style>", "", html)


def drawn(make: Callable[[], Any]) -> Element:
    """A picture, or why there is none."""
    try:
        made: Element = make().element()
    except LoopkitError as error:
        return element("pre", str(error), class_="lk-wrapped lk-comment")
    return made


def printed(text: str) -> Element:
    """A text as one output."""
    return output(element("pre", text, class_="lk-wrapped"))


def html_text(made: Element) -> str:
    """An element as HTML."""
    return tostring(made, encoding="unicode", method="html")


def svg_text(picture: Element) -> str:
    """An ``svg`` element as a file of its own, which brings the style sheet along."""
    alone = Element("svg", {**picture.attrib, "xmlns": "http://www.w3.org/2000/svg"})
    alone.set("class", " ".join(filter(None, ("lk", picture.get("class")))))
    alone.extend([_style(_sheet_of(picture).replace(".lk svg ", "svg.lk ")), *picture])
    return tostring(alone, encoding="unicode", method="xml")


def bundle(
    html: Callable[[], Element],
    text: Callable[[], str],
    include: Collection[str] | None = None,
    exclude: Collection[str] | None = None,
) -> dict[str, str]:
    """What ``_repr_mimebundle_`` returns; a form that nobody asks for is not made."""
    forms: dict[str, Callable[[], str]] = {
        "text/plain": text,
        "text/html": lambda: html_text(html()),
    }
    wanted = [
        form
        for form in forms
        if (not include or form in include) and form not in (exclude or ()) and _is_active(form)
    ]
    return {form: forms[form]() for form in wanted}


def shell() -> Any:
    """The running IPython shell; None outside of IPython."""
    find = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return None if find is None else find()


def _is_active(form: str) -> bool:
    """Whether the shell that runs, if one does, shows this form: terminals show text alone."""
    running = shell()
    return running is None or form in running.display_formatter.active_types
