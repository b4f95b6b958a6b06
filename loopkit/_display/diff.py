"""Differences between two texts as HTML: removed and added lines, and the changed words in them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from loopkit._display.markup import Part, element, output, table
from loopkit._display.style import ROLES

if TYPE_CHECKING:
    from loopkit._changes import Diff

Hunk = Sequence[tuple[str, Sequence[str], Sequence[str]]]
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
    rows: list[Part] = []
    for left, right, is_equal in _in_rows(diff.hunks()):
        if is_equal:
            rows.append(_marked("span", left))
        else:
            rows += _marked("span", left, "removed"), _marked("span", right, "added")
    return element("pre", rows, class_="lk-diff")


def beside(diff: Diff) -> Element:
    """The two texts beside each other, a line to a row: what changed, with some lines around it.

    Lines that only moved to the left or to the right stand where they now are, and count as equal.
    """
    if not diff:
        return element("div", str(diff), class_="lk-comment")
    narrow = replace(diff, before=_narrow(diff.before), after=_narrow(diff.after))
    found = _in_rows(narrow.hunks(indented=False) or narrow.hunks())
    roles = {True: ("", ""), False: ("removed", "added")}
    rows = [
        [_marked("pre", line, role) for line, role in zip(both, roles[is_equal], strict=True)]
        for *both, is_equal in found
    ]
    return element("div", table(diff.names, rows), class_="lk-beside")


def _narrow(text: str) -> str:
    """A text whose remarks stand near what they are about: there is half the room for it."""
    return _COLUMNS.sub("   ", text)


def _in_rows(hunks: Sequence[Hunk]) -> Iterator[tuple[Part, Part, bool]]:
    """Pairs of lines before and after, and whether they are equal; similar lines form a pair.

    In a pair of similar lines, the words that differ are marked.
    """
    for number, hunk in enumerate(hunks):
        if number:
            yield "⋯", "⋯", True
        for tag, old, new in hunk:
            if tag == "equal":
                yield from zip(old, new, repeat(True))
                continue
            for gone, came in _matched(old, new):
                if gone is None or came is None:
                    yield gone, came, False
                else:
                    yield [*_words(gone, came, "del")], [*_words(came, gone, "ins")], False


def _marked(tag: str, line: Part, role: str = "") -> Part:
    """A line with the mark of what became of it; without a line there is nothing."""
    if line is None:
        return None
    mark = f"{ROLES[role].mark} " if role else "  "
    return element(tag, mark, line, class_=f"lk-{role}" if role else None)


def _matched(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """Removed and added lines, in order; similar lines form a pair."""
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
