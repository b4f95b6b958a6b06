"""Substitution rules, as far as they stand between a statement and what it uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from graphlib import TopologicalSorter

import pymbolic.primitives as prim

from loopkit import _expression
from loopkit._kernel import Kernel, Statement, SubstitutionRule
from loopkit._match import rules_of, rules_used
from loopkit._nodes import Expression, renamed
from loopkit._relations import reachable
from loopkit._rules import (
    beside_reductions,
    expand_in,
    map_beside,
    reduced_inames,
    results_of,
    with_results,
)

Values = Mapping[str, Expression]
Indices = tuple[Expression, ...]


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

    class Shown(_expression.ExpressionMapper):
        def map_subscript(self, expr: prim.Subscript) -> Expression:
            if expr.aggregate.name != name:
                return super().map_subscript(expr)
            indices = tuple(expand_in(i, rules) for i in _expression.index_tuple(expr))
            return prim.Subscript(expr.aggregate, indices)

        def map_call(self, expr: prim.Call) -> Expression:
            if expr.function.name != name:
                return super().map_call(expr)
            return prim.Call(expr.function, tuple(expand_in(p, rules) for p in expr.parameters))

    def shown(expr: Expression) -> Expression:
        return expr if _expression.is_constant(expr) else Shown()(expr)

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

    left = (r for r in kernel.substitutions if r.name != rule.name)
    return kernel.with_(
        statements=tuple(s.map_expressions(expanded) for s in kernel.statements),
        substitutions=tuple(replace(r, expression=expanded(r.expression)) for r in left),
    )


def replaced_within_rules(
    kernel: Kernel,
    name: str,
    users: Collection[str],
    new: Callable[[Indices, SubstitutionRule | None], Expression | None],
    mentioned: Collection[str] = (),
) -> Kernel | None:
    """The kernel where ``users`` use ``new(indices, rule)`` for ``name[indices]`` in each rule.

    Rules stay rules; those that others use, too, get copies.  None where ``new`` gives none for
    what stands in a rule.  What a rule's reductions read stays: :func:`with_operands`.  Where
    ``name`` is a rule with reductions, uses of those that use it say no more what holds these.
    What is ``mentioned`` in the new expressions is no argument of a rule.
    """
    rules = kernel.rule_by_name
    chosen = [s for s in kernel.statements if s.id in users]
    seen = frozenset().union(*(rules_of(kernel, s) for s in chosen)) - {name}
    used = [n for n in rules if n in seen and _reaches(kernel, n, {name})]
    if not used or any(name in _expression.called_names(i) for s in chosen for i in s.write[1]):
        return None
    others = [s for s in kernel.statements if s.id not in users]
    shared = frozenset().union(*(rules_of(kernel, s) for s in others))
    shared |= {n for n in used if any(_reaches(kernel, r, {n}) for r in rules.keys() - {*used})}
    names: dict[str, str] = {}
    for n in used:
        names[n] = kernel.fresh_name(n, names.values()) if n in shared else n
    left: dict[str, tuple[int, ...]] = {}
    is_open = False

    def rewritten(expr: Expression, rule: SubstitutionRule | None = None) -> Expression:
        def one(found: str, indices: Indices) -> Expression | None:
            nonlocal is_open
            indices = tuple(expand_in(i, rules) for i in indices)
            made = new(indices, rule) if found == name else None
            is_open |= found == name and made is None
            return made

        changed = _expression.replace_accesses(_as_access(expr, {name}), one)
        return rename_functions(_with_parameters(changed, left), names)

    new_rules: dict[str, SubstitutionRule] = {}
    within = {n: _expression.called_names(rules[n].expression) & {*used} for n in used}
    for n in TopologicalSorter(within).static_order():
        rule = _clear_of(kernel, rules[n], mentioned)
        expression, results = map_beside(rule.expression, partial(rewritten, rule=rule))
        left[n] = (*range(len(rule.arguments)), *(len(rule.arguments) + r for r in results))
        new_rules[n] = replace(rule, name=names[n], expression=expression)
    substitutions: list[SubstitutionRule] = []
    for n, rule in rules.items():
        if n not in used or n in shared:
            substitutions.append(rule)
        if n in used:
            substitutions.append(new_rules[n])
    changed = {
        s.id: replace(
            s,
            lhs=rename_functions(s.lhs, names),
            rhs=rewritten(s.rhs),
            predicates=tuple(map(rewritten, s.predicates)),
        )
        for s in chosen
    }
    statements = tuple(changed.get(s.id, s) for s in kernel.statements)
    new_kernel = kernel.with_(statements=statements, substitutions=tuple(substitutions))
    return None if is_open else new_kernel


def with_operands(
    kernel: Kernel,
    names: Collection[str],
    ids: Collection[str],
    new: Callable[[str, Indices, SubstitutionRule], Expression | None],
    mentioned: Collection[str] = (),
) -> tuple[SubstitutionRule, ...]:
    """The rules, with ``new(name, indices, rule)`` for what their reductions read of ``names``.

    Only where all that compute a rule's reductions and read such are the statements ``ids``, and
    where ``new`` gives something for each of these reads.  ``names`` are arrays or other rules;
    what is ``mentioned`` in the new expressions is no argument of a rule.
    """

    rules = kernel.rule_by_name

    def reads(expr: Expression) -> bool:
        return not _expression.called_names(expr).isdisjoint(names)

    def changed(rule: SubstitutionRule) -> SubstitutionRule:
        found = results_of(rule.expression)
        if not any(map(reads, found)) or not {*rule.arguments}.isdisjoint(names):
            return rule
        readers = {s.id for s in computing(kernel, rule) if reads(s.rhs)}
        if not readers or not readers <= {*ids}:
            return rule
        is_open, own = False, _clear_of(kernel, rule, mentioned)

        def one(name: str, indices: Indices) -> Expression | None:
            nonlocal is_open
            indices = tuple(expand_in(i, rules) for i in indices)
            made = new(name, indices, own) if name in names else None
            is_open |= name in names and made is None
            return made

        results = [
            _expression.replace_accesses(_as_access(r, names), one)
            for r in results_of(own.expression)
        ]
        whole = with_results(own.expression, results)
        return rule if is_open else replace(own, expression=whole)

    return tuple(map(changed, kernel.substitutions))


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


def _reaches(kernel: Kernel, start: str, names: Collection[str]) -> bool:
    """Whether a rule uses some of ``names``, also through other rules."""

    def called(rule: SubstitutionRule) -> frozenset[str]:
        return _expression.called_names(beside_reductions(rule.expression))

    body = beside_reductions(kernel.rule_by_name[start].expression)
    used = rules_used(kernel, [body], in_reductions=False)
    below = (kernel.rule_by_name[n] for n in {start} | used)
    return any(not (called(rule) - {*rule.arguments}).isdisjoint(names) for rule in below)


def _as_access(expr: Expression, names: Collection[str]) -> Expression:
    """``expr`` with each use of one of some rules as an access of an array."""

    class Accesses(_expression.ExpressionMapper):
        def map_call(self, call: prim.Call) -> Expression:
            parts = tuple(self.rec(p) for p in call.parameters)
            if call.function.name in names and parts:
                return prim.Subscript(call.function, parts)
            return prim.Call(call.function, parts)

    return expr if _expression.is_constant(expr) else Accesses()(expr)


def _with_parameters(expr: Expression, left: Mapping[str, tuple[int, ...]]) -> Expression:
    """``expr`` with those parameters alone of uses of some rules that are ``left``."""

    class Fewer(_expression.ExpressionMapper):
        def map_call(self, call: prim.Call) -> Expression:
            parts = tuple(self.rec(p) for p in call.parameters)
            if call.function.name in left:
                parts = tuple(parts[n] for n in left[call.function.name] if n < len(parts))
            return prim.Call(call.function, parts)

    return expr if _expression.is_constant(expr) or not left else Fewer()(expr)


def _clear_of(kernel: Kernel, rule: SubstitutionRule, names: Collection[str]) -> SubstitutionRule:
    """A rule with no argument that is called as one of ``names``."""
    other = {a: kernel.fresh_name(a, rule.arguments) for a in rule.arguments if a in names}
    if not other:
        return rule
    values = {old: prim.Variable(new) for old, new in other.items()}
    return replace(
        rule,
        arguments=tuple(other.get(a, a) for a in rule.arguments),
        expression=_expression.substitute(rule.expression, values),
    )


def rename_functions(expr: Expression, names: Mapping[str, str]) -> Expression:
    """``expr`` with uses of substitution rules renamed."""

    def other(head: prim.Variable) -> prim.Variable:
        return renamed(head, names[head.name]) if head.name in names else head

    return _expression.map_heads(expr, other)


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
