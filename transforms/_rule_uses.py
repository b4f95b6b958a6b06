"""Substitution rules, as far as they stand between a statement and what it uses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit import _expression
from loopkit._kernel import Kernel, SubstitutionRule
from loopkit._match import rules_of, rules_used
from loopkit._nodes import Expression
from loopkit._rules import expand_in

Values = Mapping[str, Expression]


def expand_rules_that_use(kernel: Kernel, name: str, selected: Collection[str]) -> Kernel:
    """The kernel with those rules expanded in place that use ``name``, also through others.

    Only in the selected statements; the rule ``name`` itself stays.  So are those
    that stand in subscripts of ``name``: which cells are used must show, too.
    """
    rules = {n: rule for n, rule in kernel.rule_by_name.items() if n != name}
    if not rules:
        return kernel
    using = {
        n: rule
        for n, rule in rules.items()
        if name in _expression.called_names(expand_in(rule.expression, rules)) - set(rule.arguments)
    }

    def shown(found: str, indices: tuple[Expression, ...]) -> Expression | None:
        if found != name or not indices:
            return None
        return prim.Subscript(prim.Variable(name), tuple(expand_in(i, rules) for i in indices))

    statements = []
    for statement in kernel.statements:
        if statement.id in selected and rules_of(kernel, statement) & using.keys():
            statement = statement.map_expressions(lambda e: expand_in(e, using))
        touched = [i for n, i in statement.accesses if n == name]
        called = frozenset().union(
            *(_expression.called_names(i) for indices in touched for i in indices)
        )
        if statement.id in selected and called & rules.keys():
            statement = statement.map_expressions(lambda e: _expression.replace_accesses(e, shown))
        statements.append(statement)
    return kernel.with_(statements=tuple(statements))


def rename_functions(expr: Expression, names: Mapping[str, str]) -> Expression:
    """``expr`` with uses of substitution rules renamed."""

    class Renamer(_expression.ExpressionMapper):
        def map_call(self, call: prim.Call) -> Expression:
            function = prim.Variable(names.get(call.function.name, call.function.name))
            return prim.Call(function, tuple(self.rec(p) for p in call.parameters))

        def map_variable(self, variable: prim.Variable) -> Expression:
            return prim.Variable(names[variable.name]) if variable.name in names else variable

    return expr if _expression.is_constant(expr) else Renamer()(expr)


def rewritten_rules(
    kernel: Kernel, ids: Collection[str], values: Values
) -> dict[str, SubstitutionRule]:
    """New rules by the name of the old one, for those rules that mention an iname of ``values``.

    One that statements beside ``ids`` use, too, gets a new name.
    """
    inside: set[str] = set()
    outside: set[str] = set()
    for statement in kernel.statements if kernel.substitutions else ():
        concerned = statement.id in ids and bool(statement.inames & values.keys())
        (inside if concerned else outside).update(rules_of(kernel, statement))
    touched = [name for name in sorted(inside) if _mentions(kernel, name, values)]
    names: dict[str, str] = {}
    for name in touched:
        names[name] = kernel.fresh_name(name, names.values()) if name in outside else name
    result = {}
    for name in touched:
        rule = kernel.rule_by_name[name]
        free = {n: e for n, e in values.items() if n not in rule.arguments}
        expression = rename_functions(_expression.substitute(rule.expression, free), names)
        result[name] = replace(rule, name=names[name], expression=expression)
    return result


def _mentions(kernel: Kernel, name: str, values: Values) -> bool:
    """Whether a rule, or one that it uses, mentions an iname of ``values``."""
    rules = kernel.rule_by_name
    below = [rules[n] for n in {name} | rules_used(kernel, [rules[name].expression])]
    free = (_expression.variable_names(rule.expression) - set(rule.arguments) for rule in below)
    return any(names & values.keys() for names in free)
