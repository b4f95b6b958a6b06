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
    return element("div", folded, lines, class_="lk-source lk-plain")


def _lines(kernel: Kernel) -> Iterator[Element]:
    program, roles = kernel.program(), roles_of(kernel)
    places = {s.id: number for number, s in enumerate(kernel.statements)}
    texts = program.source.removesuffix("\n").split("\n")
    for number, (text, origin) in enumerate(zip(texts, program.lines, strict=True), 1):
        place = places.get(origin.statement or "")
        code, slashes, remark = text.partition("//")
        words = (coloured(code, roles), inline("comment", slashes, remark) if slashes else None)
        of = statement(place, origin.statement)
        yield element("div", words, data_n=number, **of)
