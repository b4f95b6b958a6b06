"""One concrete case of a violation: sizes, statement instances, threads and cells."""

from __future__ import annotations

from collections.abc import Mapping

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._check.violation import Side, Violation
from loopkit._errors import Instance
from loopkit._expression import evaluate, substitute, to_text, unlabelled, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import hidden, instance, variable
from loopkit._nodes import Expression
from loopkit._points import smallest_point
from loopkit._poly.model import Model
from loopkit._poly.pairs import equal
from loopkit._poly.parallel_axes import index_name
from loopkit._simplify import simplify

_LETTERS = "xyz"


@dataclass(frozen=True)
class Actor:
    """One side of a case: the instance in the text's words, and where the schedule runs it.

    ``place`` is the statement that it runs in; None for what is only in the text.
    """

    instance: Instance
    loops: tuple[tuple[str, int], ...] = ()
    block: tuple[tuple[str, int], ...] = ()
    thread: tuple[tuple[str, int], ...] = ()
    place: str | None = None

    def __str__(self) -> str:
        values = ", ".join(f"{n}={v}" for n, v in self.instance.inames.items())
        return f"'{self.instance.statement}'" + (f" ({values})" if values else "")

    def where(self) -> str:
        """The block and the thread: ``on thread 3 of block 1``."""
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


def smallest_case(violation: Violation, root: Model, new: Model) -> Case:
    """The case with the smallest sizes; among those the first source, then the first sink."""
    where = violation.where
    sizes = list(dict.fromkeys((*root.kernel.sizes, *new.kernel.sizes)))
    order = sorted(sizes)
    roles = [(tag, side) for tag, side in _in_text_order(violation) if side is not None]
    for tag, side in roles:
        for iname in _ordered(side, root, new):
            name = hidden(tag, iname)
            where = where & equal(prim.Variable(name), _value(side, iname))
            order.append(name)
    point = smallest_point(where, order) or {}
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


def _in_text_order(violation: Violation) -> list[tuple[str, Side | None]]:
    """The sides of a violation, first that which comes first in the text."""
    sides = [("s", violation.source), ("o", violation.other), ("r", violation.sink)]
    reader_first = violation.kind == "overwritten" and violation.detail != "stale"
    return [sides[2], *sides[:2]] if reader_first else sides


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
        return Actor(Instance(name, values))
    loops = tuple(
        (iname, point.get(instance(iname, at.label), 0))
        for iname, _ in new.order.place(at.statement)[1]
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
    return Actor(Instance(name, values), loops, tuple(block), tuple(thread), at.statement)


def _cell_value(index: Expression, point: Mapping[str, int]) -> int | str:
    if variable_names(index) <= point.keys():
        return int(evaluate(index, {n: point[n] for n in variable_names(index)}))
    return to_text(unlabelled(simplify(substitute(index, dict(point)))))
