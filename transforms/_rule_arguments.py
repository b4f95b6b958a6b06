"""Rules as functions of all that their values depend on: of free inames, not of data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit import _expression
from loopkit._footprint import Use
from loopkit._kernel import Kernel, SubstitutionRule
from loopkit._nodes import Expression, tagged_like
from loopkit._rules import expand_in


def with_free_inames(
    kernel: Kernel, rule: SubstitutionRule, wanted: Collection[str]
) -> tuple[Kernel, SubstitutionRule]:
    """The kernel where a rule takes those of the ``wanted`` inames that its value depends on.

    Before: f(x) := a[i, x], used as f(j)      After: f(x, i) := a[i, x], used as f(j, i)
    """
    body = expand_in(rule.expression, kernel.rule_by_name)
    free = _expression.unbound_names(body) - {*rule.arguments}
    added = tuple(i for i in kernel.all_inames if i in free and i in wanted)
    if not added:
        return kernel, rule
    more = tuple(map(prim.Variable, added))
    new = replace(rule, arguments=(*rule.arguments, *added), expression=body)
    renamed = _with_uses(kernel, rule.name, lambda old: prim.Call(_function(rule), (*old, *more)))
    rules = tuple(new if r.name == rule.name else r for r in renamed.substitutions)
    return renamed.with_(substitutions=rules), new


def without_data(
    kernel: Kernel, rule: SubstitutionRule, uses: Sequence[Use]
) -> tuple[Kernel, SubstitutionRule]:
    """The kernel where arguments that data decide are part of a rule, if all uses agree on them.

    Before: f(x) := sin(a[x]), used as f(place[j])      After: f := sin(a[place[j]]), used as f
    """
    integers = kernel.integers
    bound: dict[int, Expression] = {}
    for number in range(len(rule.arguments)):
        values = {use.indices[number] for use in uses}
        if all(_expression.variable_names(value) <= integers for value in values):
            continue
        if len(values) > 1:
            return kernel, rule
        bound[number] = values.pop()
    if not bound:
        return kernel, rule
    name = kernel.fresh_name(rule.name)
    kept = [n for n in range(len(rule.arguments)) if n not in bound]
    values_of = {rule.arguments[n]: value for n, value in bound.items()}
    expression = _expression.substitute(rule.expression, values_of)
    new = SubstitutionRule(name, tuple(rule.arguments[n] for n in kept), expression)

    def use(old: tuple[Expression, ...]) -> Expression:
        return (
            prim.Call(prim.Variable(name), tuple(old[n] for n in kept)) if kept else _function(new)
        )

    ids = {u.statement.id for u in uses}
    changed = _with_uses(kernel, rule.name, use, ids)
    return changed.with_(substitutions=(*changed.substitutions, new)), new


def _function(rule: SubstitutionRule) -> prim.Variable:
    return prim.Variable(rule.name)


class Uses(_expression.ExpressionMapper):
    """Replaces the uses of a rule by what ``new`` makes of their arguments."""

    def __init__(self, name: str, new: Callable[[tuple[Expression, ...]], Expression]) -> None:
        super().__init__()
        self.name = name
        self.new = new

    def map_call(self, expr: prim.Call) -> Expression:
        arguments = tuple(self.rec(p) for p in expr.parameters)
        if expr.function.name == self.name:
            return tagged_like(expr, self.new(arguments))
        return prim.Call(expr.function, arguments)

    def map_variable(self, expr: prim.Variable) -> Expression:
        return self.new(()) if expr.name == self.name else expr


def _with_uses(
    kernel: Kernel,
    name: str,
    new: Callable[[tuple[Expression, ...]], Expression],
    ids: Collection[str] | None = None,
) -> Kernel:
    """The kernel with other uses of a rule: everywhere, or in the statements ``ids`` alone."""
    uses = Uses(name, new)

    def rewritten(expr: Expression) -> Expression:
        return uses(expr) if name in _expression.called_names(expr) else expr

    statements = tuple(
        s.map_expressions(rewritten) if ids is None or s.id in ids else s for s in kernel.statements
    )
    rules = kernel.substitutions
    if ids is None:
        rules = tuple(
            r if r.name == name else replace(r, expression=rewritten(r.expression)) for r in rules
        )
    return kernel.with_(statements=statements, substitutions=rules)
