"""A kernel as HTML: its loop nest with foldable loops, and its source with coloured names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from xml.etree.ElementTree import Element

from loopkit._arrays import ConstantTable, ValueArg
from loopkit._cached import memoised
from loopkit._display.markup import Part, element, fold, inline, marked, output, statement
from loopkit._display.style import role_of
from loopkit._errors import counted
from loopkit._kernel import Kernel
from loopkit._places import space_of
from loopkit._show import Line, outline
from loopkit._tags import GroupAxis, InstructionParallel, LocalAxis, Unroll
from loopkit._target import CUDA

_OF_TAG = {
    GroupAxis: "block",
    LocalAxis: "thread",
    Unroll: "unrolled",
    InstructionParallel: "unrolled",
}

_OF_LANGUAGE = {
    **dict.fromkeys(CUDA.block_index, "block"),
    **dict.fromkeys(CUDA.thread_index, "thread"),
    **dict.fromkeys((CUDA.block_barrier, CUDA.warp_barrier), "barrier"),
    **dict.fromkeys(("__shared__", "shared_memory"), "shared"),
    **dict.fromkeys(("for", "if", "else", "while"), "loop"),
    **dict.fromkeys(("#pragma unroll", "unrolled"), "unrolled"),
}
_OF_PREFIX = {"atomic": "atomic", "__shfl": "combine", "__reduce": "combine"}
"""What begins like this is a family of CUDA's functions."""

_WORD = re.compile(r"#pragma unroll|[A-Za-z_]\w*(?:\.[xyz]\b)?", re.ASCII)


@memoised
def roles_of(kernel: Kernel) -> Mapping[str, str]:
    """The role of each name of a kernel: inames by their tags, arrays by where they live."""
    found = {
        name: _OF_TAG.get(type(kernel.iname_tags.get(name)), "loop") for name in kernel.all_inames
    }
    found |= {
        a.name: "constant" if isinstance(a, (ValueArg, ConstantTable)) else "global"
        for a in kernel.args
    }
    return found | {t.name: space_of(kernel, t).word for t in kernel.temporaries}


def coloured(text: str, roles: Mapping[str, str]) -> Iterator[Part]:
    """The text, its words in the looks of their roles."""
    done = 0
    for match in _WORD.finditer(text):
        word = match[0]
        role = roles.get(word) or _OF_LANGUAGE.get(word) or _of_family(word)
        if role is not None:
            yield text[done : match.start()]
            yield inline(role, word)
            done = match.end()
    yield text[done:]


def _of_family(word: str) -> str | None:
    return next((role for start, role in _OF_PREFIX.items() if word.startswith(start)), None)


RULES = ("barrier", "combine", "launch")
"""Kinds of lines that go across a body, each of the role of its name."""

REMARKS = ("atomic", "scan")
"""Words with which a remark begins that have a role of their own."""

VISIBLE = 60
"""Lines of one body that are never folded; twice as many lines are unfolded at first."""


def kernel_html(kernel: Kernel) -> Element:
    """A kernel's nest: each loop is a fold, each word has the looks of its role."""
    return output(nest(kernel), kernel=kernel)


def nest(kernel: Kernel) -> Element:
    """The nest alone, for outputs that hold more."""
    whole = outline(kernel)
    drawn = _Nest(kernel, roles_of(kernel), _unfolded(whole.inside))
    head = element("div", coloured(whole.text, drawn.roles), class_="lk-head")
    lines = drawn.lines(whole.inside)
    return element("div", _row(head, whole.note, past(kernel)), lines, class_="lk-nest")


def past(kernel: Kernel) -> Part:
    """How many steps a kernel has behind it, and whether all of them are proven."""
    steps = kernel.history
    if not steps:
        return None
    role = role_of({step.verdict for step in steps})
    words = {"ok": "proven", "undecided": "proven, with assumptions", "refused": "not all checked"}
    return marked(role, f"{counted(len(steps), 'step')}, {words[role]}")


def _row(text: Part, *notes: Part, **attributes: object) -> Element:
    """A line, and remarks at its right, below it where there is no room."""
    remarks: list[Part] = []
    for note in notes:
        if note not in (None, ""):
            remarks += ["   "] if remarks else []
            remarks.append(_remark(note) if isinstance(note, str) else note)
    aside = element("span", remarks) if len(remarks) > 1 else remarks
    plain = " lk-plain" if "data_lk_s" in attributes else ""
    return element("div", element("span", text), aside, class_=f"lk-row{plain}", **attributes)


def _remark(note: str) -> Part:
    word, blank, rest = note.partition(" ")
    if word not in REMARKS:
        return inline("comment", note)
    return element("span", inline(word, word), inline("comment", blank, rest))


def _unfolded(lines: Sequence[Line]) -> frozenset[int]:
    """The loops that are open at first, by identity: outermost first, while there is room."""
    shown, room = set[int](), 2 * VISIBLE - len(lines)
    waiting = [line for line in lines if line.inside]
    while waiting:
        deeper = []
        for line in waiting:
            size = min(len(line.inside), VISIBLE)
            if size <= max(room, 1):
                room -= size
                shown.add(id(line))
                deeper += [inner for inner in line.inside if inner.inside]
        waiting = deeper
    return frozenset(shown)


class _Nest:
    """The lines of one kernel as elements."""

    def __init__(self, kernel: Kernel, roles: Mapping[str, str], unfolded: frozenset[int]) -> None:
        self.kernel = kernel
        self.roles = roles
        self.unfolded = unfolded

    def lines(self, lines: Sequence[Line]) -> Iterator[Element]:
        """Lines of one body; where there are many, those in the middle are folded."""
        if len(lines) <= VISIBLE + 1:
            yield from map(self.line, lines)
            return
        first, last = VISIBLE * 3 // 4, VISIBLE // 4
        yield from map(self.line, lines[:first])
        middle = lines[first:-last]
        yield fold(counted(len(middle), "more line"), map(self.line, middle), is_open=False)
        yield from map(self.line, lines[-last:])

    def line(self, line: Line) -> Element:
        """One line, and what is inside of it."""
        if line.kind == "axes":
            return element("div", self.axes(line.inside), class_="lk-axes")
        if line.kind in RULES:
            words = inline(line.kind, line.text.strip("-= "))
            return element("div", words, class_=f"lk-rule lk-rule-{line.kind}")
        if line.kind == "remark":
            return element("div", inline("refused", line.text))
        if line.kind == "loop":
            # The loop's own name has all of its looks, those of its bounds only the colours.
            own, around, bounds = line.text.partition(" in ")
            if not around:
                own, around, bounds = line.text.partition(" = ")
            rest = element("span", around, coloured(bounds, self.roles), class_="lk-plain")
            head = _row([*coloured(own, self.roles), rest], line.note)
            body = element("div", self.lines(line.inside))
            return fold(head, body, is_open=id(line) in self.unfolded)
        at = line.statement
        of = statement(at, None if at is None else self.kernel.statements[at].id)
        return _row(list(coloured(line.text, self.roles)), line.note, **of)

    def axes(self, axes: Sequence[Line]) -> Iterator[Element]:
        """The inames on each hardware axis, those of the grid first."""
        for word in sorted({axis.note for axis in axes}):
            names = (a.text.removesuffix(f" = {word}") for a in axes if a.note == word)
            yield element("span", coloured(f"{word} = {', '.join(names)}", self.roles))


_PREAMBLE = 6
"""Lines above the function that are shown, and not folded."""


def source_html(kernel: Kernel) -> Element:
    """The source of a kernel in the colours of its nest."""
    return output(source(kernel), kernel=kernel)


def source(kernel: Kernel) -> Element:
    """The source alone, for outputs that hold more."""
    program = kernel.program()
    lines = _lines(kernel)
    above = len(program.tree.above) if program.tree is not None else 0
    folded: Part = list(islice(lines, above))
    if above > _PREAMBLE:
        folded = fold(f"{above} lines of helpers", folded, is_open=False)
    # In anything else than <pre>, some tools drop blanks at the beginning of lines.
    return element("pre", folded, lines, class_="lk-source lk-plain lk-scrolls")


def _lines(kernel: Kernel) -> Iterator[Element]:
    for number, (words, of) in enumerate(source_lines(kernel), 1):
        yield element("span", words, data_n=number, **of)


def source_lines(kernel: Kernel) -> Iterator[tuple[Part, dict[str, object]]]:
    """What each line holds, in colours, and the attributes of the statement it executes."""
    program, roles = kernel.program(), roles_of(kernel)
    places = {s.id: number for number, s in enumerate(kernel.statements)}
    texts = program.source.removesuffix("\n").split("\n")
    for text, origin in zip(texts, program.lines, strict=True):
        code, slashes, remark = text.partition("//")
        words = (coloured(code, roles), inline("comment", slashes, remark) if slashes else None)
        yield words, statement(places.get(origin.statement or ""), origin.statement)
