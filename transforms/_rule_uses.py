"""Accesses and rule uses that statements make directly, or through substitution rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

import pymbolic.primitives as prim

from loopkit import _expression
from loopkit._expression import Mapped, mapped, with_indices
from loopkit._kernel import Kernel, Statement, SubstitutionRule
from loopkit._match import rules_of, rules_used
from loopkit._nodes import Expression, renamed
from loopkit._relations import grouped, reachable
from loopkit._rules import (
    beside_reductions,
    expand_in,
    reduced_inames,
)

Values = Mapping[str, Expression]
Indices = tuple[Expression, ...]


def map_reads(statement: Statement, function: Callable[[Expression], Expression]) -> Statement:
    """The statement with a function applied to all but the access that it writes."""
    lhs = statement.lhs
    if isinstance(lhs, prim.Subscript):
        lhs = prim.Subscript(lhs.aggregate, tuple(map(function, _expression.index_tuple(lhs))))
    predicates = tuple(map(function, statement.predicates))
    return replace(statement, lhs=lhs, rhs=function(statement.rhs), predicates=predicates)


def map_texts(
    kernel: Kernel,
    function: Callable[[Expression], Expression],
    ids: Collection[str] | None = None,
    *,
    reads: bool = False,
    rules: bool = True,
) -> Kernel:
    """The kernel with a function applied to the expressions of its statements and rules.

    :arg ids: of these statements alone.
    :arg reads: to all but the accesses that statements write.
    :arg rules: False leaves rules as they are.
    """

    def changed(statement: Statement) -> Statement:
        if ids is not None and statement.id not in ids:
            return statement
        return map_reads(statement, function) if reads else statement.map_expressions(function)

    new = kernel.with_(statements=tuple(map(changed, kernel.statements)))
    if not rules:
        return new
    return new.with_(
        substitutions=tuple(
            replace(r, expression=function(r.expression)) for r in kernel.substitutions
        )
    )


def use_of(name: str, arguments: Indices) -> Expression:
    """A use of a rule, which is its name alone where that has no arguments."""
    return prim.Call(prim.Variable(name), arguments) if arguments else prim.Variable(name)


def expand_rules_that_use(
    kernel: Kernel, name: str, selected: Collection[str], *, in_reductions: bool = False
) -> Kernel:
    """The kernel with those rules expanded in place that use ``name``, also through others.

    Only in the selected statements; the rule ``name`` itself stays.  So are those
    that stand in subscripts of ``name``: which cells are used must show, too.
    What a rule's reductions use, the statements that compute them use; with ``in_reductions``
    it counts all the same.
    """
    rules = {n: rule for n, rule in kernel.rule_by_name.items() if n != name}
    if not rules:
        return kernel

    def called(rule: SubstitutionRule) -> frozenset[str]:
        body = expand_in(rule.expression, rules)
        return _expression.called_names(body if in_reductions else beside_reductions(body))

    using = {n: rule for n, rule in rules.items() if name in called(rule) - set(rule.arguments)}

    def expanded(expr: Expression) -> Expression:
        return expand_in(expr, rules)

    def subscript(expr: prim.Subscript, inside: Mapped) -> Expression:
        return with_indices(expr, expanded if expr.aggregate.name == name else inside)

    def call(expr: prim.Call, inside: Mapped) -> Expression:
        of = expanded if expr.function.name == name else inside
        return prim.Call(expr.function, tuple(map(of, expr.parameters)))

    def shown(expr: Expression) -> Expression:
        return mapped(expr, subscript=subscript, call=call)

    statements = []
    for statement in kernel.statements:
        if statement.id in selected and rules_of(kernel, statement) & using.keys():
            statement = statement.map_expressions(lambda e: expand_in(e, using))
        if statement.id in selected and rules_of(kernel, statement) & rules.keys():
            statement = statement.map_expressions(shown)
        statements.append(statement)
    return kernel.with_(statements=tuple(statements))


def without_rule(kernel: Kernel, rule: SubstitutionRule) -> Kernel:
    """The kernel with a rule expanded wherever it is used."""

    def expanded(expr: Expression) -> Expression:
        return expand_in(expr, {rule.name: rule})

    left = tuple(r for r in kernel.substitutions if r.name != rule.name)
    return map_texts(kernel.with_(substitutions=left), expanded)


def computing(kernel: Kernel, rule: SubstitutionRule) -> list[Statement]:
    """The statements that compute what uses of a rule say that holds its results.

    Uses within other rules are uses of it, too.
    """
    count = len(rule.arguments)
    others = {n: r for n, r in kernel.rule_by_name.items() if n != rule.name}
    uses = (
        node.parameters[count:]
        for s in kernel.statements
        for e in s.expressions
        for node in _expression.nodes_of(expand_in(e, others))
        if isinstance(node, prim.Call) and node.function.name == rule.name
    )
    results = {n for given in uses for r in given for n, _ in _expression.accesses(r)}
    held = reachable(results, partial(accumulators_read, kernel))
    return [s for s in kernel.statements if s.written in held]


def accumulators_read(kernel: Kernel, name: str) -> set[str]:
    """The results of other reductions that the terms of one read."""
    return {
        n
        for s in kernel.writers.get(name, ())
        for n in _expression.unbound_names(s.rhs)
        if n != name
        and n in kernel.temporary_by_name
        and kernel.temporary_by_name[n].accumulates is not None
    }


def rename_functions(
    expr: Expression, names: Mapping[str, str], bound: Collection[str] = ()
) -> Expression:
    """``expr`` with uses of substitution rules renamed; arguments of a rule, ``bound``, stay."""

    def other(head: prim.Variable) -> prim.Variable:
        return renamed(head, names[head.name]) if head.name in names else head

    def variable(expr: prim.Variable, inside: Mapped) -> Expression:
        return expr if expr.name in bound else other(expr)

    def call(expr: prim.Call, inside: Mapped) -> Expression:
        return prim.Call(other(expr.function), tuple(map(inside, expr.parameters)))

    return mapped(expr, variable=variable, call=call)


def rename_in_rule(rule: SubstitutionRule, names: Mapping[str, str]) -> SubstitutionRule:
    """A rule with uses of others renamed."""
    return replace(rule, expression=rename_functions(rule.expression, names, rule.arguments))


def with_rewritten_rules(
    kernel: Kernel, values: Mapping[str, Values]
) -> tuple[Kernel, dict[str, dict[str, str]]]:
    """The kernel with rules for statements in which values replace inames: those of its id.

    A rule that mentions such an iname is copied where statements with other values use it, too.
    Returns the names of such copies as well, by statement and by the name of the rule.
    """
    names: dict[str, dict[str, str]] = {}
    if not kernel.substitutions:
        return kernel, names
    left = {s.id: rules_of(kernel, s) for s in kernel.statements}
    concerned = [s.id for s in kernel.statements if s.inames & values.get(s.id, {}).keys()]
    for ids in grouped((id(values[id_]), id_) for id_ in concerned).values():
        inside = set().union(*map(left.pop, ids))
        rules = _rewritten(kernel, inside, set().union(*left.values()), values[ids[0]])
        result: list[SubstitutionRule] = []
        for rule in kernel.substitutions:
            new = rules.get(rule.name)
            if new is None or new.name != rule.name:
                result.append(rule)
            if new is not None:
                result.append(new)
        kernel = kernel.with_(substitutions=tuple(result))
        renamed = {old: new.name for old, new in rules.items() if old != new.name}
        names |= dict.fromkeys(ids, renamed)
    return kernel, names


def _rewritten(
    kernel: Kernel, inside: Collection[str], outside: Collection[str], values: Values
) -> dict[str, SubstitutionRule]:
    """New rules by the name of the old one; one that is used ``outside``, too, gets a new name."""
    touched = [name for name in sorted(inside) if _mentions(kernel, name, values)]
    names: dict[str, str] = {}
    for name in touched:
        names[name] = kernel.fresh_name(name, names.values()) if name in outside else name
    result = {}
    for name in touched:
        rule = kernel.rule_by_name[name]
        own = {*rule.arguments, *reduced_inames(rule.expression)}
        free = {n: e for n, e in values.items() if n not in own}
        expression = rename_functions(_expression.substitute(rule.expression, free), names)
        result[name] = replace(rule, name=names[name], expression=expression)
    return result


def _mentions(kernel: Kernel, name: str, values: Values) -> bool:
    """Whether a rule, or one that it uses, mentions an iname of ``values``."""
    rules = kernel.rule_by_name
    below = [rules[n] for n in {name} | rules_used(kernel, [rules[name].expression])]
    free = (_expression.unbound_names(rule.expression) - set(rule.arguments) for rule in below)
    return any(names & values.keys() for names in free)
