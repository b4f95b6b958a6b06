"""The table of styles: the look of each role that a part of a kernel can have, in light and dark.

Nest, source, tables and pictures take their colours from here: as custom properties of one small
style sheet (``var(--lk-thread)``), or as hex numbers, for matplotlib.  No role is distinguished by
its colour alone: ``css`` adds weight, slant or underline, and ``mark`` a sign.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from loopkit._frozen import dataclass


@dataclass(frozen=True)
class Role:
    """A kind of thing, and its looks: colours of text and lines as ``#rrggbb``.

    ``css`` is what tells it from others without colour, ``dash`` the same for lines in pictures,
    as lengths of ink and gap; ``mark`` is a sign that stands for it.
    """

    name: str
    meaning: str
    light: str
    dark: str
    css: str = ""
    dash: str = ""
    mark: str = ""

    def colour(self, dark: bool = False) -> str:
        """Its colour on a light or a dark ground."""
        return self.dark if dark else self.light

    def tint(self, dark: bool = False) -> str:
        """A pale ground of its colour, on which both its own colour and plain text read well."""
        return mixed(self.colour(dark), GROUND["ground"].colour(dark), 0.12)


VERDICTS = {"unchecked": "refused", "assumed": "undecided", "proven": "ok"}
"""The role of what is known of a step, the worst first."""


def role_of(verdicts: Collection[str]) -> str:
    """The role of what is known of several steps: of the worst of them."""
    return next((role for verdict, role in VERDICTS.items() if verdict in verdicts), "ok")


_BOLD, _SLANTED = "font-weight:650;", "font-style:italic;"


def _underlined(how: str) -> str:
    return f"text-decoration:underline {how} 1px;text-underline-offset:.22em;"


_ROLES = (
    Role("block", "a block axis", "#0b56a4", "#79b8ff", _BOLD + _underlined("double"), "8 3"),
    Role("thread", "a thread axis", "#a04000", "#ffab66", _BOLD, "3 2"),
    Role(
        "unrolled", "unrolled or a vector", "#7b2d9b", "#d9a6f7", _SLANTED + _underlined("dashed")
    ),
    Role("loop", "a loop that runs in order", "#1f2933", "#e4e8ee", _BOLD + _SLANTED),
    Role("shared", "shared memory", "#00665a", "#56d3bf", _underlined("solid"), "6 2"),
    Role("private", "private to a thread", "#6a5300", "#dcc463", _underlined("dotted"), "2 2"),
    Role("global", "global memory", "#37474f", "#c3ced6"),
    Role("constant", "a size or a constant", "#53448f", "#b8adf5", _SLANTED, "4 4"),
    Role("barrier", "a barrier", "#a8123e", "#ff92aa", _BOLD + _underlined("wavy"), "", "┄┄"),
    Role("combine", "threads combine", "#6d2077", "#e59bf0", _underlined("double"), "", "⊕"),
    Role("atomic", "an atomic update", "#8a3b00", "#ffb27d", _BOLD + _underlined("wavy"), "", "⚛"),
    Role("launch", "a boundary of launches", "#0b3d91", "#a3c4ff", _BOLD, "10 3", "══"),
    Role("scan", "a scan", "#375a00", "#b5dd6e", _SLANTED + _underlined("double"), "", "∑"),
    Role("copy", "a copy", "#00607d", "#6ccbe8", _SLANTED + _underlined("dotted"), "5 2 1 2", "⇐"),
    Role("comment", "a remark", "#5b6570", "#a5b0bb", _SLANTED),
    Role("statement", "a statement", "#1f2933", "#e4e8ee"),
    Role("ok", "proven", "#14692d", "#6ed58a", _BOLD, "", "✓"),
    Role("refused", "refused", "#b00020", "#ff8f86", _BOLD + _underlined("solid"), "", "✗"),
    Role("undecided", "undecided", "#7a4f00", "#f1bf5b", _BOLD + _underlined("dashed"), "", "?"),
    Role("added", "a line that is new", "#14692d", "#6ed58a", "", "", "+"),
    Role("removed", "a line that is gone", "#b00020", "#ff8f86", "", "", "−"),
)

ROLES: Mapping[str, Role] = {role.name: role for role in _ROLES}
"""All roles by name."""

GROUND: Mapping[str, Role] = {
    "ground": Role("ground", "what everything stands on", "#ffffff", "#14181d"),
    "panel": Role("panel", "heads of tables, every other row", "#f3f5f8", "#1e242b"),
    "text": Role("text", "plain text", "#1f2933", "#e4e8ee"),
    "line": Role("line", "borders and grids", "#c9d1d9", "#3b4550"),
    "lit": Role("lit", "a statement that the pointer is on", "#ffe69c", "#4a3a00"),
}
"""What lies behind and between."""

SERIES: tuple[tuple[str, str], ...] = (
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff8c42"),
    ("#009e73", "#3fe0b4"),
    ("#cc79a7", "#e6a8c9"),
    ("#e69f00", "#f5c04a"),
    ("#5d3a9b", "#8f63e6"),
    ("#56b4e9", "#9ad7ff"),
    ("#7f7f7f", "#9a9a9a"),
)
"""Colours of things that are only to be told apart, light and dark: fills, not text.

After Okabe and Ito, "Color Universal Design" (2008), whose colours differ for all eyes.
"""


def mixed(one: str, other: str, share: float) -> str:
    """``share`` of one colour and the rest of another, in sRGB."""
    parts = zip(bytes.fromhex(one[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + bytes(round(share * a + (1 - share) * b) for a, b in parts).hex()


def _properties(dark: bool) -> Mapping[str, str]:
    """The custom properties, by name."""
    found = {f"--lk-{role.name}": role.colour(dark) for role in (*GROUND.values(), *_ROLES)}
    found |= {f"--lk-{role.name}-tint": role.tint(dark) for role in _ROLES}
    return found | {f"--lk-series-{number}": pair[dark] for number, pair in enumerate(SERIES)}


_DARK = ('[data-jp-theme-light="false"]', ".vscode-dark", '[data-theme="dark"]')
_LIGHT = ('[data-jp-theme-light="true"]', ".vscode-light", '[data-theme="light"]')


_LAYOUT = Path(__file__).with_name("style.css").read_text(encoding="utf-8").partition("*/")[2]


def _role_rules() -> Iterator[str]:
    for role in ROLES.values():
        yield f".lk .lk-{role.name}{{color:var(--lk-{role.name});{role.css}}}"
        # In pictures: lines, and the areas that they bound.
        yield f".lk svg .lk-{role.name}{{stroke:var(--lk-{role.name})}}"
        yield f".lk svg text.lk-{role.name}{{fill:var(--lk-{role.name});stroke:none}}"


def _coloured(names: Collection[str]) -> Iterator[str]:
    """What the custom properties are, in light and in dark."""

    def each(dark: bool) -> str:
        values = (f"{n}:{value}" for n, value in _properties(dark).items() if n in names)
        return ";".join([f"color-scheme:{'dark' if dark else 'light'}", *values])

    yield f".lk{{{each(False)}}}"
    yield f"@media (prefers-color-scheme:dark){{.lk{{{each(True)}}}}}"
    for places, dark in ((_DARK, True), (_LIGHT, False)):
        yield f"{','.join(f'{place} .lk' for place in places)}{{{each(dark)}}}"


_RULE = re.compile(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})+\}|[^{}]*\{[^{}]*\}")
_RULES = (*_RULE.findall(_LAYOUT.replace("\n", "")), *_role_rules())
_PROPERTY = re.compile(r"--lk-[\w-]+")
_CLASS = re.compile(r"\.(lk-[\w-]+)")
_EXCLUDED = re.compile(r":not\([^)]*\)")


def _is_for(rule: str, words: frozenset[str]) -> bool:
    """Whether a rule may match where these classes and elements are."""
    selectors = _EXCLUDED.sub("", rule.rpartition("{")[0]).split(",")
    return any(
        words.issuperset(_CLASS.findall(one)) and ("svg" in words or " svg" not in one)
        for one in selectors
    )  # fmt: skip


def sheet_for(words: Collection[str], text: str) -> str:
    """The part of the sheet that an output needs.

    ``words`` are the classes and the elements in it, ``text`` whatever else may name colours.
    """
    words = frozenset(words)
    rules = "".join(rule for rule in _RULES if _is_for(rule, words))
    names = frozenset(_PROPERTY.findall(rules + text))
    return "".join([*_coloured(names), rules])


SHEET = "".join([*_coloured(_properties(False)), *_RULES])
"""The style sheet of a page that holds anything."""


def lighting(scope: str, count: int) -> str:
    """Rules that light a statement wherever it is shown while the pointer is on it.

    ``scope`` is what ``data-lk-k`` says of the kernel, whose ``count`` statements are numbered
    by ``data-lk-s``.
    """
    here = f'.lk[data-lk-k="{scope}"]'
    each = (
        f'body:has({here} [data-lk-s="{n}"]:is(:hover,:focus)) {here} [data-lk-s="{n}"]'
        for n in range(count)
    )
    return f"{','.join(each)}{{background:var(--lk-lit);outline:1px solid}}" if count else ""
