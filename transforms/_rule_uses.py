"""Substitution rules, as far as they stand between a statement and what it uses."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from loopkit._kernel import Kernel, Statement, SubstitutionRule
from loopkit._match import called_names
from loopkit._rules import expand_in


def called_by(statement: Statement) -> frozenset[str]:
    """Names of functions, rules and variables in a statement's text."""
    parts = [statement.lhs, statement.rhs, *statement.predicates]
    return frozenset().union(*(called_names(p) for p in parts))


def expand_rules_that_use(kernel: Kernel, name: str, selected: Collection[str]) -> Kernel:
    """The kernel with those rules expanded in place that use ``name``, also through others.

    Only in the selected statements; the rule ``name`` itself stays.  So are those
    that stand in subscripts of ``name``.
    """
    rules = {r.name: r for r in kernel.substitutions if r.name != name}
    reaching: dict[str, SubstitutionRule] = {}
    for _ in rules:
        for rule in rules.values():
            used = called_names(rule.expression) - frozenset(rule.arguments)
            if name in used or used & reaching.keys():
                reaching[rule.name] = rule
    changed = {}
    for statement in kernel.statements:
        if statement.id not in selected:
            continue
        new = statement
        if called_by(statement) & reaching.keys():
            new = new.map_expressions(lambda e: expand_in(e, reaching))
        # Which cells are used must show, too: subscripts hold no rules.
        while inside := _rules_in_subscripts(new, name, rules):
            new = new.map_expressions(lambda e, inside=inside: expand_in(e, inside))
        if new is not statement:
            changed[new.id] = new
    if not changed:
        return kernel
    by_id = {**kernel.statement_by_id, **changed}
    return kernel.with_(statements=tuple(by_id.values()))


def _rules_in_subscripts(
    statement: Statement, name: str, rules: Mapping[str, SubstitutionRule]
) -> dict[str, SubstitutionRule]:
    """The rules that subscripts of an array use in a statement."""
    used = frozenset().union(
        *(
            called_names(index)
            for array, indices in (statement.write, *statement.reads)
            if array == name
            for index in indices
        )
    )
    return {rule: rules[rule] for rule in sorted(used & rules.keys())}
