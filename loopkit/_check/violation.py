"""Violations found by the checker, before they become messages, and their smallest cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from enum import Enum

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _errors, _sets
from loopkit._assertions.assertion_values import Assertion
from loopkit._expression import (
    Access,
    evaluate,
    substitute,
    to_text,
    unlabelled,
    variable_names,
)
from loopkit._frozen import dataclass
from loopkit._hidden import hidden, instance, variable
from loopkit._launches import is_one_launch
from loopkit._nodes import Expression
from loopkit._points import smallest_point
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance, equal
from loopkit._poly.parallel_axes import index_name
from loopkit._simplify import simplify


@dataclass(frozen=True, eq=False)
class Side:
    """One statement instance of a violation.

    ``at`` is the instance in the schedule (None if only the text has it), ``origin`` the text's
    statement with the values of its inames over the names of ``at``, or None for a copy or a
    flush.
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
    - ``"merged"``: ``source`` and ``sink``, which somebody is to see both, are one update;
    - ``"expression"``: ``sink`` computes something else;
    - ``"bounds"``: ``sink`` leaves the array;
    - ``"overlap"``: two cells have one place in memory; ``"outside"``: one has none;
    - ``"divergent"``: ``detail`` may keep ``source``, or ``sink``, from where their threads meet;
    - ``"aliased"``: ``other`` writes a cell of the array ``detail`` over what ``sink`` reads.

    ``how`` is ``"after"``, ``"together"`` or ``"blocks"``: the other order, none
    because both run on different threads at once, none because of blocks.
    ``meant`` is the cell that the text reads.  ``exact`` is False where it
    depends on data whether there is a case; ``settling`` are then assertions
    that would exclude it; ``seen`` is False where a run shows no difference.  ``text`` is
    the kernel that ``source`` and ``sink`` name statements of, where it is not the root of
    the lineage.
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
    seen: bool = True


class Aim(Enum):
    """How much the check of a schedule must find out if it is wrong."""

    DECIDE = "whether it is legal, and if not, of which kind what is wrong is"
    """It ends with the first violation that is certain."""

    TRY = "whether it is legal"
    """It ends with the first question that has a violation."""

    TELL = "the smallest case of what is wrong"
    """All questions are asked, or many violations found."""


_LETTERS = "xyz"


@dataclass(frozen=True)
class Actor:
    """One side of a case: the instance in the text's words, and where the schedule runs it.

    ``place`` is the statement that it runs in; None for what is only in the text.  ``launch`` is
    the number of the launch, from 1, of a kernel that has several.
    """

    instance: _errors.Instance
    loops: tuple[tuple[str, int], ...] = ()
    block: tuple[tuple[str, int], ...] = ()
    thread: tuple[tuple[str, int], ...] = ()
    place: str | None = None
    launch: int | None = None

    def __str__(self) -> str:
        values = ", ".join(f"{n}={v}" for n, v in self.instance.inames.items())
        return f"'{self.instance.statement}'" + (f" ({values})" if values else "")

    def where(self) -> str:
        """The block and the thread, and the launch: ``on thread 3 of block 1``."""
        where = self._on_what()
        if self.launch is None:
            return where
        return f"{where} of launch {self.launch}" if where else f"in launch {self.launch}"

    def _on_what(self) -> str:
        block, thread = _index("block", self.block), _index("thread", self.thread)
        if block and thread:
            return f"on {thread} of {block}"
        return f"on {thread}" if thread else f"in {block}" if block else ""


def _index(word: str, values: tuple[tuple[str, int], ...]) -> str:
    if len(values) > 1:
        return f"{word} ({', '.join(f'{n}={v}' for n, v in values)})"
    return f"{word} {values[0][1]}" if values else ""


@dataclass(frozen=True)
class Case:
    """The smallest case of a violation."""

    sizes: Mapping[str, int]
    sink: Actor
    source: Actor | None
    other: Actor | None
    cell: tuple[int | str, ...]
    meant: tuple[int | str, ...]
    written: tuple[int | str, ...]
    rank: tuple[int, ...]
    """Sizes, then the instances: what makes one case smaller than another."""


def smallest_case(
    violation: Violation, root: Model, new: Model, most: Sequence[int] | None = None
) -> Case | None:
    """The case with the smallest sizes; among those the first source, then the first sink.

    None where it would rank behind ``most``.
    """
    where = violation.where
    sizes = list(dict.fromkeys((*root.kernel.sizes, *new.kernel.sizes)))
    order = sorted(sizes)
    sides = [("s", violation.source), ("o", violation.other), ("r", violation.sink)]
    if violation.kind == "overwritten" and violation.detail != "stale":
        sides.insert(0, sides.pop())  # the reader comes first in the text
    roles = [(tag, side) for tag, side in sides if side is not None]
    for tag, side in roles:
        for iname in _ordered(side, root, new):
            name = hidden(tag, iname)
            where = where & equal(prim.Variable(name), _value(side, iname))
            order.append(name)
    found = smallest_point(where, order, most)
    if found is None and most is not None:
        return None
    point = found or {}
    actors = {tag: _actor(tag, side, point, root, new) for tag, side in roles}
    return Case(
        {n: point[n] for n in sizes if n in point and _sets.involves(violation.where, n)},
        actors["r"],
        actors.get("s"),
        actors.get("o"),
        tuple(_cell_value(i, point) for i in violation.cell),
        tuple(_cell_value(i, point) for i in (violation.meant or ("", ()))[1]),
        tuple(_cell_value(i, point) for i in violation.written),
        tuple(point.get(n, 0) for n in order),
    )


def _ordered(side: Side, root: Model, new: Model) -> list[str]:
    """The inames that name an instance, in the order of the text's loops."""
    if side.origin is not None and side.origin in root.statement:
        return [i for i in root.kernel.all_inames if i in side.values]
    if side.at is None or side.at.statement is None:
        return []
    mine = new.statement[side.at.statement].inames
    return [i for i in new.kernel.all_inames if i in mine]


def _value(side: Side, iname: str) -> Expression:
    if iname in side.values:
        return side.values[iname]
    assert side.at is not None
    return variable(iname, side.at.label)


def _actor(tag: str, side: Side, point: Mapping[str, int], root: Model, new: Model) -> Actor:
    values = {i: point.get(hidden(tag, i), 0) for i in _ordered(side, root, new)}
    at, name = side.at, side.origin
    if name is None or name not in root.statement:
        name = (at.statement if at is not None else None) or "?"
    if at is None or at.statement is None:
        return Actor(_errors.Instance(name, values))
    loops = tuple(
        (iname, point.get(instance(iname, at.label), 0)) for iname in new.order.loops(at.statement)
    )
    block: list[tuple[str, int]] = []
    thread: list[tuple[str, int]] = []
    for axis in new.axes:
        if axis[0] == "ilp":
            continue
        coordinate = new.coordinate(at, axis)
        if coordinate is None:
            coordinate = prim.Variable(index_name(axis, at))
            if not variable_names(coordinate) <= point.keys():
                continue
        letter = _LETTERS[axis[1]] if isinstance(axis[1], int) else str(axis[1])
        (block if axis[0] == "g" else thread).append((letter, _sets.value_at(coordinate, point)))
    launch = None if is_one_launch(new.kernel) else new.order.launch(at.statement).number + 1
    said = _errors.Instance(name, values)
    return Actor(said, loops, tuple(block), tuple(thread), at.statement, launch)


def _cell_value(index: Expression, point: Mapping[str, int]) -> int | str:
    if variable_names(index) <= point.keys():
        with suppress(NotImplementedError):  # for functions in it
            return int(evaluate(index, {n: point[n] for n in variable_names(index)}))
    return to_text(unlabelled(simplify(substitute(index, dict(point)))))
