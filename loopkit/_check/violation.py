"""What the checker found wrong, before it becomes a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

import islpy as isl

from loopkit._assertions.values import Assertion
from loopkit._expression import Access
from loopkit._frozen import dataclass
from loopkit._nodes import Expression
from loopkit._poly.pairs import Instance

if TYPE_CHECKING:
    from loopkit._poly.model import Model


@dataclass(frozen=True, eq=False)
class Side:
    """One statement instance of a violation.

    ``at`` is the instance in the schedule (or None where only the text has
    it), ``origin`` the text's statement with the values of its inames over the
    names of ``at``, or None for a statement that only moves data.
    """

    at: Instance | None
    origin: str | None
    values: Mapping[str, Expression] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Violation:
    """A set of cases, not empty, in which a schedule is wrong.

    ``kind`` says what is wrong:

    - ``"order"``: ``source`` writes what ``sink`` reads, and does not come first;
    - ``"overwritten"``: ``other`` writes the cell between ``source`` and ``sink``;
    - ``"rewritten"``: ``source`` and ``sink`` write one cell, in another order or in none;
    - ``"place"``: ``sink`` looks for the value of ``source`` in another cell (``written``);
    - ``"missing"``: nothing writes what ``sink`` reads;
    - ``"updates"``: ``source`` and ``sink`` update one cell at the same time;
    - ``"dropped"``, ``"extra"``, ``"repeated"``: instances that are not executed, or too often;
    - ``"expression"``: ``sink`` computes something else;
    - ``"bounds"``: ``sink`` leaves the array.

    ``how`` is ``"after"``, ``"together"`` or ``"blocks"``: the other order, none
    because both run on different threads at once, none because of blocks.
    ``meant`` is the cell that the text reads.  ``exact`` is False where it
    depends on data whether there is a case; ``settling`` are then assertions
    that would exclude it.  ``text`` is the kernel that ``source`` and ``sink`` name
    statements of, where it is not the root of the lineage.
    """

    kind: str
    where: isl.Set
    sink: Side
    source: Side | None = None
    other: Side | None = None
    how: str = "after"
    array: str | None = None
    cell: tuple[Expression, ...] = ()
    exact: bool = True
    detail: str = ""
    meant: Access | None = None
    written: tuple[Expression, ...] = ()
    settling: tuple[Assertion, ...] = ()
    text: Model | None = None
