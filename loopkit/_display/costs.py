"""Costs as HTML: the tables of their text, in which statements light up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from loopkit._costs.table import Head, Table
from loopkit._display.markup import Part, element, output, statement, table
from loopkit._display.words import coloured, roles_of

if TYPE_CHECKING:
    from loopkit._costs.of_kernel import AnyCosts


def costs_html(costs: AnyCosts) -> Element:
    """All that the text says; a row of an access belongs to its statement."""
    return output(costs_parts(costs), kernel=costs.source)


def costs_parts(costs: AnyCosts) -> Iterator[Element]:
    """The same, for pages that have a style sheet of loopkit's already."""
    kernel = costs.source
    roles = roles_of(kernel)
    places = {s.id: number for number, s in enumerate(kernel.statements)}
    for part in costs.parts():
        if isinstance(part, Table):
            yield _table(part, roles, places)
        elif isinstance(part, Head):
            head, *rest = part.splitlines()
            yield element("div", head, class_="lk-head")
            yield from (element("div", line) for line in rest)
        else:
            yield element("pre", part, class_="lk-wrapped")


def _table(part: Table, roles: Mapping[str, str], places: Mapping[str, int]) -> Element:
    rows: list[list[Part]] = [
        [element("span", coloured(row[0], roles), class_="lk-plain"), *row[1:]] for row in part.rows
    ]
    marks = [statement(places.get(name), name) for name in part.statements]
    return table(part.columns, rows, numbers=range(part.names, len(part.columns)), marks=marks)
