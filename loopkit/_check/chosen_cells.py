"""Reads of copies whose cell depends on data: ``x_s[place[j]]`` for ``x[place[j]]``.

Which cell is read is unknown. But text and schedule read the same one: the loaded index becomes a
symbolic constant like a size, and the copy must hold, for any value of it, what the text reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._assertions.asserted_cells import data_of, index_range
from loopkit._assertions.follow import followed
from loopkit._check.compare_statements import Untouched
from loopkit._check.schedule_check import Check, ReadEvent
from loopkit._expression import (
    Access,
    access_of,
    is_no_access,
    mapped,
    nodes_of,
    replace_accesses,
    substitute,
    variable_names,
    with_indices,
)
from loopkit._guarded import guarded_accesses
from loopkit._hidden import number
from loopkit._nodes import Expression
from loopkit._poly.pairs import inside
from loopkit._same import key_of

Numbers = Mapping[object, Expression]
"""Names by what is read in the text, or in the schedule: by its key."""
Same = Callable[[Expression, Expression, ReadEvent], None]
"""Reports where an expression of the schedule has not the value of one of the text."""


def is_chosen(check: Check, its: Access) -> bool:
    """Whether data decide which cell of a copy is read."""
    by_data = any(variable_names(i) & check.new.data for i in its[1])
    return by_data and bool(check.copy_statements(its[0]))


def named(
    check: Check, old: Expression, its: Access, event: ReadEvent, same: Same
) -> tuple[Expression, Access, ReadEvent] | None:
    """The text's read, the schedule's read, and the event, with names for loaded indices.

    None if the schedule uses other indices than the text, or if what they are loaded from is
    written depending on data.
    """
    uses = [a for n in nodes_of(old, is_no_access) if (a := access_of(n, check.root.data))]
    writers = [w for name, _ in uses for w in check.root.writers(name)]
    if not all(map(check.root.is_exact, writers)):
        return None
    mine: dict[object, Expression] = {}
    where = event.where
    values = list(_read_in([i for _, indices in uses for i in indices], check.root.data))
    for count, value in enumerate(values):
        name = number(event.depth, count)
        mine[key_of(value)] = prim.Variable(name)
        where = where & _range_of(check, value, name, event)
    others: dict[object, Expression] = {}
    for value in _read_in(its[1], check.new.data):
        equal = next((v for v in values if _are_same(check, v, value, event, same)), None)
        if equal is None:
            return None
        others[key_of(value)] = mine[key_of(equal)]
    event = event.narrowed(where & _where_inside(check, old, mine, event))
    access = its[0], tuple(_with(i, others) for i in its[1])
    now = _in_subscripts(old, mine)
    read = access_of(now, check.root.data)
    if read is not None and read[0] not in check.root.written:
        now = Untouched(read[0], tuple(substitute(i, event.values) for i in read[1]))
    return now, access, event


def _where_inside(check: Check, old: Expression, names: Numbers, event: ReadEvent) -> isl.Set:
    """The event where what the text always reads is in bounds, which the text guarantees.

    As far as sets can express it.
    """
    result = _sets.universe()
    for name, indices, guards in guarded_accesses(old):
        shape = check.root.array(name).shape if name in check.root.data and not guards else None
        for index, extent in zip(indices, shape or (), strict=False):
            at = substitute(_with(index, names), event.values)
            if _sets.is_pw_affine(at) and _sets.is_pw_affine(extent):
                result = result & inside(at, extent)
    return result


def _read_in(indices: Iterable[Expression], data: frozenset[str]) -> Iterable[Expression]:
    """What subscripts read, each once, without what is read in order to read it."""
    found: dict[object, Expression] = {}
    for index in indices:
        for node in nodes_of(index, is_no_access):
            if access_of(node, data) is not None:
                found.setdefault(key_of(node), node)
    return found.values()


def _are_same(check: Check, old: Expression, new: Expression, event: ReadEvent, same: Same) -> bool:
    return not check.supposed(partial(same, old, new, event))


def _range_of(check: Check, value: Expression, name: str, event: ReadEvent) -> isl.Set:
    """What is known of a number that the text reads: a condition on its name."""
    kernel = check.new.kernel
    source = followed(check.root.kernel, check.root.statement[event.reader], value)
    source = substitute(source, event.values)
    return index_range(kernel.assertions, source, name, data_of(kernel))


def _with(index: Expression, names: Numbers) -> Expression:
    def new(name: str, indices: tuple[Expression, ...]) -> Expression | None:
        access = prim.Subscript(prim.Variable(name), indices) if indices else prim.Variable(name)
        return names.get(key_of(access))

    return replace_accesses(index, new)


def _in_subscripts(expr: Expression, names: Numbers) -> Expression:
    """Names in place of what subscripts read: what is a value itself has its type."""
    return mapped(expr, subscript=lambda a, _: with_indices(a, lambda i: _with(i, names)))
