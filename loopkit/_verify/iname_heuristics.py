"""How inames may relate where nothing that is read or written tells.

A statement that writes one cell again and again, as in a loop over time, says
by its subscripts nothing about the loop.  Names may tell, or the order in which
instances run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._hidden import NEW, OLD, instance, variable
from loopkit._kernel import Statement
from loopkit._nodes import Expression
from loopkit._poly.model import Model
from loopkit._poly.pairs import Instance
from loopkit._verify.search_context import SearchContext
from loopkit._verify.solver import Solver


def in_loop_order(model: Model, statement: str, inames: Sequence[str]) -> list[str]:
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
    for iname, digits in _named_alike(context, statement, free):
        mine = _linearized_alone(context, context.root.model, origin, OLD, [instance(iname, OLD)])
        its = _linearized_alone(context, context.new.model, statement.id, NEW, digits)
        if mine is not None and its is not None:
            same = where & mine.eq_set(its)
            where = where if same.is_empty() else same
    return where


def _named_alike(
    context: SearchContext, statement: Statement, free: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """Inames of the origin, with those of the statement that are named after them."""
    news = in_loop_order(context.new.model, statement.id, sorted(statement.inames))
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
    olds = in_loop_order(context.root.model, origin, free)
    news = _undetermined_inames(context, statement, origin, where)
    if not olds or not news:
        return where
    old_domain = context.root.model.domain(Instance(origin, OLD))
    new_domain = context.new.model.domain(Instance(statement.id, NEW))
    if len(olds) == len(news):
        for one, two in zip(olds, news, strict=True):
            mine = _iteration_number(
                old_domain, instance(one, OLD), [instance(i, OLD) for i in olds]
            )
            its = _iteration_number(
                new_domain, instance(two, NEW), [instance(i, NEW) for i in news]
            )
            where = where & mine.eq_set(its)
        return where
    if len(olds) == 1:
        mine = _iteration_number(old_domain, instance(olds[0], OLD), [instance(olds[0], OLD)])
        its = linearized(new_domain, [instance(i, NEW) for i in news])
    else:
        mine = linearized(old_domain, [instance(i, OLD) for i in olds])
        its = _iteration_number(new_domain, instance(news[0], NEW), [instance(news[0], NEW)])
    return where if mine is None or its is None else where & mine.eq_set(its)


def _iteration_number(domain: isl.Set, name: str, group: Sequence[str]) -> isl.PwAff:
    """How many steps a name is from its first value, given all but the later ones of ``group``."""
    later = group[group.index(name) + 1 :]
    onto = _sets.project_out(domain, later)
    away = _sets.pw_affine(prim.Variable(name)).sub(_sets.minimum(onto, name))
    stride = _sets.as_dimension(onto, name).get_stride(0)
    return away if stride.is_one() else away.scale_down_val(stride).floor()


def linearized(domain: isl.Set, group: Sequence[str]) -> isl.PwAff | None:
    """Names as the digits of one number, the last one running fastest."""
    total: isl.PwAff | None = None
    weight = 1
    for name in reversed(group):
        digit = _iteration_number(domain, name, group).scale_val(_sets.val(weight))
        total = digit if total is None else total.add(digit)
        low = _sets.minimum_value(domain, prim.Variable(name))
        high = _sets.maximum_value(domain, prim.Variable(name))
        if name != group[0]:
            if low is None or high is None:
                return None
            weight *= high - low + 1
    return total


def _linearized_alone(
    context: SearchContext, model: Model, statement: str, label: str, names: Sequence[str]
) -> isl.PwAff | None:
    """Names as the digits of one number, whatever the others are."""
    domain = model.domain(Instance(statement, label))
    return linearized(_sets.project_onto(domain, [*names, *context.sizes]), names)


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
    return in_loop_order(context.new.model, statement.id, found)
