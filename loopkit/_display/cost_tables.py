"""Costs as HTML tables, in which rows and statements are highlighted together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from loopkit._costs.texts import Head, Table
from loopkit._display.markup import Part, element, fold, inline, output, statement, table
from loopkit._display.nest_html import coloured, roles_of

if TYPE_CHECKING:
    from loopkit._costs.costs import Costs


def costs_html(costs: Costs) -> Element:
    """All that the text says; a row of an access belongs to its statement."""
    return output(costs_parts(costs), kernel=costs.source)


def costs_parts(costs: Costs) -> Iterator[Element]:
    """The same, for pages that have a style sheet of loopkit's already.

    What stands under each further head, that of a launch of several, folds.
    """
    first, *launches = _by_heads(costs)
    yield from first
    for title, *parts in launches:
        yield fold(title, parts, is_open=len(launches) <= UNFOLDED, style="margin-left:1.1em")


UNFOLDED = 3
"""Launches whose tables are open at first, where there are no more than so many."""


def _by_heads(costs: Costs) -> list[list[Element]]:
    """The parts below each head, which is the first of them."""
    kernel = costs.source
    roles = roles_of(kernel)
    places = {s.id: number for number, s in enumerate(kernel.statements)}
    found: list[list[Element]] = []
    for part in costs.parts():
        if isinstance(part, Table):
            found[-1].append(_table(part, roles, places))
        elif isinstance(part, Head):
            head, *rest = part.splitlines()
            found.append([inline("head", head.strip("= "))])
            found[-1] += (element("div", line) for line in rest)
        else:
            found[-1].append(element("pre", part, class_="lk-wrapped"))
    return found


def _table(part: Table, roles: Mapping[str, str], places: Mapping[str, int]) -> Element:
    rows: list[list[Part]] = [
        [element("span", coloured(row[0], roles), class_="lk-plain"), *row[1:]] for row in part.rows
    ]
    marks = [statement(places.get(name), name) for name in part.statements]
    return table(part.columns, rows, numbers=range(part.names, len(part.columns)), marks=marks)
