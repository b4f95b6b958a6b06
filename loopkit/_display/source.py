"""CUDA C as HTML, each line with the statement that it executes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from xml.etree.ElementTree import Element

from loopkit._display.markup import Part, element, fold, inline, output, statement
from loopkit._display.words import coloured, roles_of
from loopkit._kernel import Kernel

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
