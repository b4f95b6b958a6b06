"""The inames of each origin as expressions of the inames of its statement.

Where nothing that is read or written tells them, names may, or the order in which instances
run: a statement that writes one cell again and again, as in a loop over time, says by its
subscripts nothing about the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._check.instance_maps import Image
from loopkit._hidden import NEW, OLD, instance, variable
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance
from loopkit._verify.search_state import SearchContext, State
from loopkit._verify.solver import Solver


def solve_images(context: SearchContext, state: State) -> Iterator[tuple[Image, ...]]:
    """The pairs with the inames of each origin as expressions, in some ways."""
    for guess in (by_name, by_digits, by_time):
        found = []
        guessed = False
        for statement in context.new.kernel.statements:
            origin = state.origin.get(statement.id)
            if origin is None:
                continue
            where = state.where[statement.id] & context.both(origin, statement.id)
            image, free = _image(context, statement, origin, where)
            if free:
                guessed = True
                with suppress(_sets.UnboundedError):
                    where = guess(context, statement, origin, where, free)
                image, _ = _image(context, statement, origin, where)
            if image is None:
                return
            found.append(image)
        yield tuple(found)
        if not guessed:
            return


def _image(
    context: SearchContext, statement: Statement, origin: str, where: isl.Set
) -> tuple[Image | None, list[str]]:
    """The inames of an origin as expressions of a statement's; and those that are open."""
    inames = sorted(context.root.model.statement[origin].inames)
    solver = Solver(
        where,
        [instance(i, OLD) for i in inames],
        {instance(i, NEW): i for i in statement.inames},
        context.sizes,
    )
    values, free = {}, []
    for iname in inames:
        value = solver.value(instance(iname, OLD))
        if value is None:
            context.note(f"no '{iname}' of '{origin}' was found for '{statement.id}'")
            return None, []
        if solver.is_undetermined(instance(iname, OLD)):
            free.append(iname)
        values[iname] = value
    return Image(statement.id, origin, tuple(values.items())), free


def _in_loop_order(model: Model, statement: str, inames: Sequence[str]) -> list[str]:
    """Inames, those of loops first, outermost first."""
    loops = [i for i, _ in model.order.place(statement)[1]]
    return sorted(inames, key=lambda i: (i not in loops, loops.index(i) if i in loops else 0, i))


def by_name(
    context: SearchContext, statement: Statement, origin: str, where: isl.Set, free: Sequence[str]
) -> isl.Set:
    """Inames of one name have one value, and ``t`` is ``8*t_outer + t_inner``."""
    domain = context.new.model.domain(Instance(statement.id, NEW))
    for iname, digits in _named_alike(context, statement, free):
        terms: list[Expression] = []
        weight = 1
        for digit in reversed(digits):
            terms.append(prim.Product((weight, prim.Variable(digit))))
            highest = _sets.maximum_value(domain, prim.Variable(digit))
            if highest is None and digit != digits[0]:
                break
            weight *= (highest or 0) + 1
        same = where & _sets.affine_equality(variable(iname, OLD), prim.Sum(tuple(terms)))
        where = where if same.is_empty() else same
    return where


def by_digits(
    context: SearchContext, statement: Statement, origin: str, where: isl.Set, free: Sequence[str]
) -> isl.Set:
    """As many steps as ``t`` is from its first value, as many ``t_outer, t_inner`` is."""
    old_domain = context.root.model.domain(Instance(origin, OLD))
    new_domain = context.new.model.domain(Instance(statement.id, NEW))
    for iname, digits in _named_alike(context, statement, free):
        numbers = []
        for domain, names in ((old_domain, [instance(iname, OLD)]), (new_domain, digits)):
            # Whatever the others are.
            alone = _sets.project_onto(domain, [*names, *context.sizes])
            numbers.append(_as_one_number(alone, names))
        mine, its = numbers
        if mine is not None and its is not None:
            same = where & mine.eq_set(its)
            where = where if same.is_empty() else same
    return where


def _named_alike(
    context: SearchContext, statement: Statement, free: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """Inames of the origin, with those of the statement that are named after them."""
    news = _in_loop_order(context.new.model, statement.id, sorted(statement.inames))
    for iname in free:
        if iname in statement.inames:
            yield iname, [instance(iname, NEW)]
            continue
        digits = [instance(i, NEW) for i in news if i.startswith(f"{iname}_")]
        if digits:
            yield iname, digits


def by_time(
    context: SearchContext, statement: Statement, origin: str, where: isl.Set, free: Sequence[str]
) -> isl.Set:
    """The first instances on each side belong together, then the second ones, and so on."""
    old_domain = context.root.model.domain(Instance(origin, OLD))
    new_domain = context.new.model.domain(Instance(statement.id, NEW))
    olds = [instance(i, OLD) for i in _in_loop_order(context.root.model, origin, free)]
    undetermined = _undetermined_inames(context, statement, origin, where)
    news = [instance(i, NEW) for i in undetermined]
    if len(olds) == len(news):
        for one, two in zip(olds, news, strict=True):
            mine = _iteration_number(old_domain, one, olds)
            where = where & mine.eq_set(_iteration_number(new_domain, two, news))
    elif olds and news:
        first, second = _as_one_number(old_domain, olds), _as_one_number(new_domain, news)
        if first is not None and second is not None:
            where = where & first.eq_set(second)
    return where


def _iteration_number(domain: isl.Set, name: str, group: Sequence[str]) -> isl.PwAff:
    """How many steps a name is from its first value, given all but the later ones of ``group``."""
    later = group[group.index(name) + 1 :]
    onto = _sets.project_out(domain, later)
    away = _sets.pw_affine(prim.Variable(name)).sub(_sets.minimum(onto, name))
    stride = _sets.as_dimension(onto, name).get_stride(0)
    return away if stride.is_one() else away.scale_down_val(stride).floor()


def _as_one_number(domain: isl.Set, group: Sequence[str]) -> isl.PwAff | None:
    """Names as the digits of one number, the last one running fastest."""
    total: isl.PwAff | None = None
    weight = 1
    for name in reversed(group):
        digit = _iteration_number(domain, name, group).scale_val(_sets.val(weight))
        total = digit if total is None else total.add(digit)
        low, high = _sets.value_range(domain, prim.Variable(name))
        if name != group[0]:
            if low is None or high is None:
                return None
            weight *= high - low + 1
    return total


def _undetermined_inames(
    context: SearchContext, statement: Statement, origin: str, where: isl.Set
) -> list[str]:
    """The inames of a new statement that those of its origin leave open, outermost first."""
    mine = context.root.model.statement[origin].inames
    wanted = [instance(i, NEW) for i in statement.inames]
    solver = Solver(
        where, wanted, {instance(i, OLD): instance(i, OLD) for i in mine}, context.sizes
    )
    found = [i for i in statement.inames if solver.is_undetermined(instance(i, NEW))]
    return _in_loop_order(context.new.model, statement.id, found)
