"""What changed between two texts, as HTML: lines that came and went, and in them the words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from loopkit._display.markup import Part, element, output
from loopkit._display.style import ROLES

if TYPE_CHECKING:
    from loopkit._changes import Diff

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
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


def _changed(old: Sequence[str], new: Sequence[str]) -> Iterator[Element]:
    """Lines that went and lines that came; of two that are alike, the words that differ."""
    done = 0
    for line in old:
        near = range(done, min(done + _NEAR, len(new)))
        other = next((n for n in near if _are_alike(line, new[n])), None)
        if other is None:
            yield _line("removed", line)
            continue
        yield from (_line("added", came) for came in new[done:other])
        yield _line("removed", _words(line, new[other], "del"))
        yield _line("added", _words(new[other], line, "ins"))
        done = other + 1
    yield from (_line("added", came) for came in new[done:])


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
