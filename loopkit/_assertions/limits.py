"""Ranges of integers that follow from types, operands and earlier statements.

An element of a ``uint8`` array is below 256, ``c % 16`` is below 16. A temporary has the values
that its writers store, since every cell is written before it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import pymbolic.primitives as prim

from loopkit import _intervals, _sets
from loopkit._assertions.assertion_values import facts_of
from loopkit._cached import cached_property, memoised
from loopkit._collectives import COMBINE
from loopkit._device_functions import OwnFunction
from loopkit._errors import TypeInferenceError
from loopkit._expression import access_of, is_constant, variable_names
from loopkit._frozen import dataclass
from loopkit._hidden import plain
from loopkit._intervals import Interval, contains
from loopkit._nodes import Component, Expression, Record, TypeCast, subtrahend
from loopkit._poly.pairs import between
from loopkit._promotion import BOOL, INT32, INT64, INTEGER, INTEGERS, Typed, components_of
from loopkit._same import Exact
from loopkit._types import Typer, known_types

if TYPE_CHECKING:
    from loopkit._kernel import Kernel, Statement

_ROUNDS = 4
"""So often may the limits of what is computed from itself grow."""

_EXTREMES = frozenset(("max", "min", "argmax", "argmin"))
_ANYTHING = _intervals.of_dtype(INT64)


class _NothingYetError(Exception):
    """A name is read that has not been written so far."""


@dataclass(frozen=True, eq=False)
class Limits(Exact):
    """Bounds of the whole numbers that names stand for.

    ``names`` gives types, those of inames and sizes weak; ``bounds`` the least and the greatest
    value of a name, or of a component of a record, as ``acc.index``: None for no value so far.
    """

    names: tuple[tuple[str, Typed], ...] = ()
    bounds: tuple[tuple[str, Interval | None], ...] = ()

    @cached_property
    def known(self) -> Mapping[str, Interval | None]:
        """The bounds by name."""
        return dict(self.bounds)

    @cached_property
    def types(self) -> Mapping[str, Typed]:
        """The types by name."""
        return dict(self.names)

    @cached_property
    def typer(self) -> Typer:
        """What tells types; instances share those of their names."""
        return Typer(lambda name: self.types[plain(name)])

    def narrow(self, expr: Expression) -> Interval | None:
        """Bounds of a value that say more than that it has 32 bits; None where they do not."""
        found, most = self.of(expr), _intervals.of_dtype(INT32)
        return found if found is not None and found != most and contains(most, found) else None

    def of(self, expr: Expression) -> Interval | None:
        """Bounds of a value that is computed in its type; None where it is no whole number."""
        try:
            whole = self._whole(expr)
            return None if whole is None else self._of(expr)
        except (TypeInferenceError, KeyError):
            return None

    def _of(self, expr: Expression) -> Interval:
        """Bounds of a value, by those of its operands, in the types that these have."""
        access, whole = access_of(expr, self.types), self._whole(expr)
        if access is not None:
            values = self._name(access[0])
        elif isinstance(expr, Component):
            values = self._component(expr.operand, expr.name)
        elif isinstance(expr, TypeCast) and self._whole(expr.operand) is not None:
            values = self._of(expr.operand)
        elif isinstance(expr, (prim.Sum, prim.Product)):
            values = self._from_left(expr)
        elif isinstance(expr, prim.Call) and isinstance(expr.function, OwnFunction):
            values = _ANYTHING
        elif is_constant(expr):
            values = _ANYTHING if whole is None else (int(expr), int(expr))
        else:
            operands = _intervals.operands_of(expr)
            # A number without a type takes that of what it meets.
            is_typed = isinstance(self.typer(expr), np.dtype)
            parts = [_in_type(whole if is_typed else None, self._of(o)) for o in operands]
            values = _intervals.of_operation(expr, parts, _ANYTHING)
        return _in_type(whole, values)

    def _from_left(self, expr: prim.Sum | prim.Product) -> Interval:
        """A sum or product of many, each part of which is computed in a type of its own."""
        first, *rest = expr.children
        values = self._of(first)
        for number, child in enumerate(rest, 2):
            taken = subtrahend(child) if isinstance(expr, prim.Sum) else None
            if taken is not None:
                values = _intervals.subtract(values, self._of(taken))
            elif isinstance(expr, prim.Sum):
                values = _intervals.add(values, self._of(child))
            else:
                values = _intervals.multiply(values, self._of(child))
            values = _in_type(self._whole(type(expr)(expr.children[:number])), values)
        return values

    def _whole(self, expr: Expression) -> Interval | None:
        """All values of an expression's type; None where that is none of whole numbers."""
        return _whole_of(self.typer(expr))

    def _name(self, name: str) -> Interval:
        found = self.known.get(plain(name), _ANYTHING)
        if found is None:
            raise _NothingYetError(name)
        return found

    def _component(self, record: Expression, name: str) -> Interval:
        if isinstance(record, Record):
            return self._of(record.parts[record.names.index(name)])
        if isinstance(record, prim.If):
            sides = (record.then, record.else_)
            return _intervals.hull(*(self._component(side, name) for side in sides))
        access = access_of(record, self.types)
        return self._name(f"{access[0]}.{name}") if access is not None else _ANYTHING


def _in_type(whole: Interval | None, values: Interval) -> Interval:
    """What a value computed without end is in its type, where it may wrap around."""
    return values if whole is None or contains(whole, values) else whole


@memoised
def limits_of(kernel: Kernel) -> Limits:
    """Bounds of all that a kernel's names stand for (memoised)."""
    types = known_types(kernel)
    fixed = _of_what_is_given(kernel, types)
    wholes = {
        place: (temporary.name, component, whole)
        for temporary in kernel.temporaries
        if temporary.dtype is not None and kernel.writers.get(temporary.name)
        for component in ("", *components_of(temporary.dtype))
        if (whole := _whole_of(components_of(temporary.dtype).get(component, temporary.dtype)))
        for place in (f"{temporary.name}.{component}".rstrip("."),)
    }
    found: dict[str, Interval | None] = dict.fromkeys(wholes)
    for number in count():
        limits = Limits(tuple(types.items()), (*fixed.items(), *found.items()))
        grown = {p: _written(kernel, limits, *place) for p, place in wholes.items()}
        beyond = {
            p: v
            for p, v in grown.items()
            if v is not None and ((held := found[p]) is None or not contains(held, v))
        }
        if not beyond:
            break
        found |= {p: wholes[p][2] for p in beyond} if number >= _ROUNDS else beyond
    return replace(limits, bounds=tuple((p, v) for p, v in limits.bounds if v is not None))


def _whole_of(kind: Typed) -> Interval | None:
    """All values of a type; None for one of what are no whole numbers."""
    if not isinstance(kind, np.dtype):
        return _ANYTHING if kind == INTEGER or type(kind) in (int, bool) else None
    if kind == BOOL:
        return 0, 1
    return _intervals.of_dtype(kind) if kind in INTEGERS else None


def _of_what_is_given(kernel: Kernel, types: Mapping[str, Typed]) -> dict[str, Interval]:
    """Bounds of sizes and inames, and of arguments by types and what is asserted in numbers."""
    context = kernel.assumptions.set
    for name in kernel.sizes:
        dtype = kernel.arg_by_name[name].dtype or INT32
        context = context & between(name, *_intervals.of_dtype(dtype))
    found = {n: _sets.bounds(context, prim.Variable(n), _ANYTHING) for n in kernel.sizes}
    for name in kernel.all_inames:
        low, high = kernel.domains[kernel.home_domain[name]].range_of(name, context)
        found[name] = (
            low if low is not None else _ANYTHING[0],
            high if high is not None else _ANYTHING[1],
        )
    asserted = facts_of(kernel.assertions).bounds
    for name in kernel.arg_by_name.keys() - found.keys():
        whole = _whole_of(types[name]) if name in types else None
        if whole is None:
            continue
        for lower, upper in asserted.get(name, ()):
            if type(lower) is int and type(upper) is int and lower < upper:
                whole = _intervals.intersection(whole, (lower, upper - 1))
        found[name] = whole
    return found


def _written(
    kernel: Kernel, limits: Limits, name: str, component: str, whole: Interval
) -> Interval | None:
    """What the writers of a temporary give it, as far as all that they read is known."""
    found = []
    for writer in kernel.writers[name]:
        if writer.kind == "init" and _is_replaced(kernel, name):
            continue
        value = Component(writer.rhs, component) if component else writer.rhs
        is_known = writer.operation is None or _is_extreme(kernel, writer)
        with suppress(_NothingYetError):
            values = limits.of(value) if is_known else None
            found.append(values if values is not None and contains(whole, values) else whole)
    return _intervals.hull(*found) if found else None


def _is_extreme(kernel: Kernel, update: Statement) -> bool:
    """Whether an update keeps one of its operands."""
    own = {r.name for r in kernel.reductions}
    return update.operation in _EXTREMES and update.operation not in own


@memoised
def _is_replaced(kernel: Kernel, name: str) -> bool:
    """Whether nobody sees what an accumulator of extremes starts from (memoised).

    Each reader comes after all updates, of which there is one at least; a value that is the
    same as the neutral one leaves an index of the loop.
    """
    writers = [w for w in kernel.writers[name] if w.kind != COMBINE]
    starts = [w for w in writers if w.kind == "init"]
    updates = [w for w in writers if _is_extreme(kernel, w)]
    if len(starts) != 1 or not updates or len(starts) + len(updates) != len(writers):
        return False
    [start] = starts
    place = {s.id: n for n, s in enumerate(kernel.statements)}
    inner = frozenset().union(*(u.inames - start.inames for u in updates))
    last = max(place[w.id] for w in kernel.writers[name])
    for reader in kernel.readers.get(name, ()):
        is_own = reader.kind == COMBINE or name not in variable_names(reader.rhs)
        if reader.written == name and is_own:
            continue
        if reader.inames & inner or place[reader.id] < last:
            return False
    known = kernel.statement_domain(start) & kernel.assumptions.set
    return any(
        known.is_subset(_sets.project_out(kernel.statement_domain(u), u.inames - start.inames))
        for u in updates
        if not u.predicates
    )
