"""What changed between two texts, as HTML: lines that came and went, and in them the words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from loopkit._display.markup import Part, element, inline, output, table
from loopkit._display.style import ROLES

if TYPE_CHECKING:
    from loopkit._changes import Diff

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_COLUMNS = re.compile(r"(?<=\S) {4,}")
_NEAR = 12
"""Lines among which the one that a line has become is looked for."""
_LIKE = 0.4
"""How much of two lines must be the same for one to count as the other, changed."""


def diff_html(diff: Diff) -> Element:
    """A diff as one output."""
    return output(diff_part(diff))


def diff_part(diff: Diff) -> Element:
    """A diff alone, for outputs that hold more."""
    if not diff:
        return element("div", str(diff), class_="lk-comment")
    rows: list[Element] = []
    for hunk in diff.hunks():
        if rows:
            rows.append(element("span", "⋯", class_="lk-comment"))
        for tag, old, new in hunk:
            if tag == "equal":
                rows += (element("span", "  ", line) for line in old)
            else:
                rows += _changed(old, new)
    return element("pre", rows, class_="lk-diff")


def beside(diff: Diff) -> Element:
    """The two texts beside each other, a line to a row: what changed, with some lines around it.

    Lines that only moved to the left or to the right stand where they now are, and count as equal.
    """
    if not diff:
        return element("div", str(diff), class_="lk-comment")
    narrow = replace(diff, before=_narrow(diff.before), after=_narrow(diff.after))
    rows: list[Sequence[Part]] = []
    for hunk in narrow.hunks(indented=False) or narrow.hunks():
        if rows:
            rows.append((inline("comment", "⋯"), inline("comment", "⋯")))
        for tag, old, new in hunk:
            if tag == "equal":
                rows += zip(map(_cell, old), map(_cell, new), strict=True)
            else:
                rows += _in_rows(old, new)
    return element("div", table(diff.names, rows), class_="lk-beside")


def _narrow(text: str) -> str:
    """A text whose remarks stand near what they are about: there is half the room for it."""
    return _COLUMNS.sub("   ", text)


def _in_rows(old: Sequence[str], new: Sequence[str]) -> Iterator[Sequence[Part]]:
    """Lines that went at the left, lines that came at the right; those that are alike together."""
    for gone, came in _matched(old, new):
        left = right = None
        if gone is not None:
            left = gone if came is None else _words(gone, came, "del")
        if came is not None:
            right = came if gone is None else _words(came, gone, "ins")
        yield _cell(left, "removed"), _cell(right, "added")


def _cell(words: Part, role: str = "") -> Part:
    """A line of one side; without words there is none."""
    if words is None:
        return None
    mark = f"{ROLES[role].mark} " if role else "  "
    return element("pre", mark, words, class_=f"lk-{role}" if role else None)


def _matched(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """Lines that went and lines that came, in order; those that are alike in one pair."""
    done = 0
    for line in old:
        near = range(done, min(done + _NEAR, len(new)))
        other = next((n for n in near if _are_alike(line, new[n])), None)
        if other is None:
            yield line, None
            continue
        yield from ((None, came) for came in new[done:other])
        yield line, new[other]
        done = other + 1
    yield from ((None, came) for came in new[done:])


def _changed(old: Sequence[str], new: Sequence[str]) -> Iterator[Element]:
    """Lines that went and lines that came; of two that are alike, the words that differ."""
    for gone, came in _matched(old, new):
        if gone is not None:
            yield _line("removed", gone if came is None else _words(gone, came, "del"))
        if came is not None:
            yield _line("added", came if gone is None else _words(came, gone, "ins"))


def _line(role: str, words: Part) -> Element:
    return element("span", f"{ROLES[role].mark} ", words, class_=f"lk-{role}")


def _are_alike(one: str, other: str) -> bool:
    matcher = difflib.SequenceMatcher(None, one.split(), other.split(), autojunk=False)
    return matcher.quick_ratio() >= _LIKE and matcher.ratio() >= _LIKE


def _words(line: str, other: str, tag: str) -> Iterator[Part]:
    """A line, in which what the other does not have stands in elements of its own."""
    mine, its = _WORDS.findall(line), _WORDS.findall(other)
    matcher = difflib.SequenceMatcher(None, mine, its, autojunk=False)
    for kind, a, b, _, _ in matcher.get_opcodes():
        text = "".join(mine[a:b])
        bare = text.strip()
        if kind == "equal" or not bare:
            yield text
        else:
            before, _, after = text.partition(bare)
            yield from (before, element(tag, bare), after)
