"""Expressions of the text that are shifted versions of each other: ``f(i - 1)``, ``f(i + 1)``.

What was proven of one holds for the others. Otherwise the number of proofs would multiply with
each step of a chain of copies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._check.compare_statements import is_integer
from loopkit._check.schedule_check import ReadEvent
from loopkit._expression import Access, is_constant
from loopkit._frozen import dataclass
from loopkit._hidden import hidden, instance, is_number
from loopkit._linear import NotAffineError, linear
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._poly.pairs import equal
from loopkit._same import key_of


@dataclass(frozen=True)
class Likeness:
    """An expression up to shifts of its inames: its ``shape``, and the ``shifts`` by iname.

    Two expressions with equal shapes and shifts are equal, whatever their subscripts look like.
    ``is_lasting`` says that all data it reads are unchanged by the kernel: then expressions of one
    shape have equal values wherever inames plus shifts are equal.
    """

    shape: Hashable
    shifts: Mapping[str, int]
    is_lasting: bool

    @property
    def key(self) -> Hashable:
        """What identifies the expression."""
        return self.shape, tuple(self.shifts.items())

    def places(self, event: ReadEvent, times: Mapping[str, str], sizes: tuple[str, ...]) -> isl.Set:
        """Where an event has the expression: ``{ like··iname, time··iname, sizes }``.

        The projection of ``event.where``; ``times`` are the names of the event's time.
        """
        where = event.where
        for iname, shift in self.shifts.items():
            moved = prim.Sum((event.values[iname], shift))
            where = where & equal(prim.Variable(hidden("like", iname)), moved)
        kept = [hidden("like", iname) for iname in self.shifts]
        return _sets.rename(_sets.project_onto(where, [*kept, *times, *sizes]), times)

    def values(self, depth: int) -> tuple[dict[str, Expression], dict[str, str]]:
        """The inames in terms of names of their own, and these by the names of :meth:`places`."""
        names = {hidden("like", i): hidden("like", depth, i) for i in self.shifts}
        values = {
            iname: prim.Sum((prim.Variable(names[hidden("like", iname)]), -shift))
            for iname, shift in self.shifts.items()
        }
        return values, names


def likeness(expr: Expression, model: Model) -> Likeness | None:
    """The shape and shifts of an expression; None if its subscripts are not linear."""
    shifts: dict[str, int] = {}
    is_lasting = True
    inames = model.kernel.home_domain.keys()

    def affine(node: Expression) -> Hashable:
        form = linear(node)
        for atom in form.terms:
            if not isinstance(atom, prim.Variable):
                raise NotAffineError
        names = form.names & inames
        if len(form.terms) == 1 and set(form.terms.values()) == {1}:
            for name in names:
                shifts.setdefault(name, form.constant)
        for name in names:
            shifts.setdefault(name, 0)
        moved = sum(form.terms[prim.Variable(name)] * shifts[name] for name in names)
        return frozenset(form.terms.items()), form.constant - moved

    def shape(node: object) -> Hashable:
        nonlocal is_lasting
        if isinstance(node, tuple):
            return tuple(map(shape, node))
        if not isinstance(node, prim.ExpressionNode) or is_constant(node):
            return key_of(node)
        if is_integer(node, model.integers):
            return affine(node)
        if isinstance(node, prim.Variable):
            is_lasting &= node.name not in model.written
            return str(node.name)
        return type(node), *(shape(getattr(node, f.name)) for f in dataclasses.fields(node))

    try:
        return Likeness(shape(expr), shifts, is_lasting)
    except NotAffineError:
        return None


def times_of(event: ReadEvent, model: Model) -> dict[str, str]:
    """The names of the event's time in its sets, with those of :meth:`Likeness.places`."""
    statement = model.statement.get(event.time.statement or "")
    inames = statement.inames if statement is not None else ()
    return {instance(i, event.time.label): hidden("time", i) for i in inames}


def claim(event: ReadEvent, cell: Access | None, model: Model) -> isl.Set:
    """Which instance of the text is claimed to be seen by which instance of the schedule.

    ``{ value··iname of the text, cell··axis, time··iname of the schedule, sizes }``, the
    projection of ``event.where``.
    """
    where = event.where
    kept = list(model.kernel.sizes)
    for iname, value in event.values.items():
        kept.append(hidden("value", iname))
        where = where & equal(prim.Variable(kept[-1]), value)
    kept += filter(is_number, _sets.names_of(where))
    for axis, index in enumerate(cell[1] if cell else ()):
        kept.append(hidden("cell", axis))
        where = where & equal(prim.Variable(kept[-1]), index)
    times = times_of(event, model)
    return _sets.rename(_sets.project_onto(where, [*kept, *times]), times)
