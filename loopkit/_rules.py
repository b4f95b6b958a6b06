"""Substitution rules, and their expansion in place.

A rule may contain reductions.  These become loops with accumulators of the statement that uses the
rule.  A use lists the accumulators after its arguments: ``f(i, acc)`` is a use of
``f(x) := sum(k, a[x, k])`` whose sum is in ``acc``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import repeat

import pymbolic.primitives as prim

from loopkit import _budget
from loopkit._errors import ParseError, counted
from loopkit._expression import (
    ExpressionMapper,
    Mapped,
    is_constant,
    mapped,
    nodes_of,
    substitute,
    unbound_names,
    without_tags,
)
from loopkit._hidden import hidden
from loopkit._kernel import Kernel, SubstitutionRule
from loopkit._nodes import Expression, Reduction, tagged_like
from loopkit._same import remembered

Rules = Mapping[str, SubstitutionRule]
Count = Counter[str]
"""How often each name stands in an expression; under OTHERS, how many nodes are no names."""

OTHERS = ""


def reductions_in(expr: Expression) -> list[Reduction]:
    """All reductions in ``expr``, outer ones before those inside them."""
    return [node for node in nodes_of(expr) if isinstance(node, Reduction)]


def reduced_inames(expr: Expression) -> frozenset[str]:
    """The inames that reductions in ``expr`` run over."""
    return frozenset(iname for one in reductions_in(expr) for iname in one.inames)


def results_of(expr: Expression) -> tuple[Reduction, ...]:
    """The reductions of an expression that are in no other one, in the order of their results."""
    found: list[Reduction] = []
    if reductions_in(expr):

        def noted(one: Reduction, inside: Mapped) -> Expression:
            found.append(one)
            return one

        mapped(expr, reduction=noted)
    return tuple(found)


def with_results(expr: Expression, values: Iterable[Expression]) -> Expression:
    """``expr`` with a value in the place of each of its :func:`results_of`."""
    waiting = iter(values)
    return mapped(expr, reduction=lambda one, inside: next(waiting))


def map_beside(
    expr: Expression, function: Callable[[Expression], Expression]
) -> tuple[Expression, tuple[int, ...]]:
    """``expr`` with a function applied outside of its reductions, and the numbers of those left."""
    found = results_of(expr)
    if not found:
        return function(expr), ()
    names = [hidden("result", number) for number in range(len(found))]
    beside = function(with_results(expr, map(prim.Variable, names)))
    left = tuple(number for number, name in enumerate(names) if name in unbound_names(beside))
    return substitute(beside, dict(zip(names, found, strict=True))), left


def beside_reductions(expr: Expression) -> Expression:
    """``expr`` without what its reductions add up, which statements of their own read."""
    return with_results(expr, repeat(0))


def with_parameters(expr: Expression, left: Mapping[str, Sequence[int]]) -> Expression:
    """``expr`` with those parameters alone of uses of some rules that are ``left``."""

    def call(expr: prim.Call, inside: Mapped) -> Expression:
        given = expr.parameters
        if expr.function.name in left:
            given = tuple(given[n] for n in left[expr.function.name] if n < len(given))
        return prim.Call(expr.function, tuple(map(inside, given)))

    return mapped(expr, call=call) if left else expr


def without_results(expr: Expression, rules: Rules) -> Expression:
    """``expr`` with uses of rules as texts have them: of arguments, without what holds results."""
    return with_parameters(expr, {n: range(len(r.arguments)) for n, r in rules.items()})


class _Expander(ExpressionMapper):
    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self.rules = rules
        self.bodies: dict[str, Expression] = {}

    def _expand(self, name: str, arguments: tuple[Expression, ...]) -> Expression:
        rule = self.rules[name]
        if name not in self.bodies:
            self.bodies[name] = self.rec(rule.expression)
        count = len(rule.arguments)
        values = dict(zip(rule.arguments, arguments[:count], strict=True))
        body = substitute(self.bodies[name], values)
        return with_results(body, arguments[count:]) if arguments[count:] else body

    def map_call(self, expr: prim.Call) -> Expression:
        arguments = tuple(self.rec(p) for p in expr.parameters)
        if expr.function.name in self.rules:
            return tagged_like(expr.function, self._expand(expr.function.name, arguments))
        return prim.Call(expr.function, arguments)

    def map_variable(self, expr: prim.Variable) -> Expression:
        rule = self.rules.get(expr.name)
        return expr if rule is None or rule.arguments else self._expand(expr.name, ())


class _Counter:
    """Counts what an expression holds once its rules are expanded, without expanding them."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.active: tuple[str, ...] = ()
        self.known: dict[str, Count] = {}

    def __call__(self, expr: Expression) -> Count:
        total: Count = Counter()
        for node in nodes_of(expr, into=lambda node: self.rule_of(node) is None):
            rule = self.rule_of(node)
            if rule is not None:
                total.update(self.of_rule(rule, tuple(map(self, getattr(node, "parameters", ())))))
            elif isinstance(node, prim.Variable):
                total[node.name] += 1
            else:
                total[OTHERS] += 1
                if isinstance(node, prim.Subscript):
                    total.update(self(node.aggregate))
        return total

    def rule_of(self, node: Expression) -> SubstitutionRule | None:
        """The rule that a node is a use of; a name alone is one of a rule without arguments."""
        if isinstance(node, prim.Call):
            return self.rules.get(node.function.name)
        rule = self.rules.get(node.name) if isinstance(node, prim.Variable) else None
        return None if rule is None or rule.arguments else rule

    def of_rule(self, rule: SubstitutionRule, arguments: tuple[Count, ...]) -> Count:
        """The size of the expansion of one use of a rule."""
        results = arguments[len(rule.arguments) :]
        if len(arguments) < len(rule.arguments) or len(results) not in (
            0,
            len(results_of(rule.expression)),
        ):
            raise ParseError(
                f"'{rule.name}' takes {counted(len(rule.arguments), 'argument')}, "
                f"but is used with {len(arguments)}"
            )
        body = self.of_body(rule)
        total: Count = Counter(body)
        for name, argument in zip(rule.arguments, arguments, strict=False):
            for used, number in argument.items():
                total[used] += number * body[name]
            total[name] -= body[name]
        for result in results:
            total.update(result)
        if total.total() > _budget.RULE_NODES:
            raise ParseError(
                f"the substitution rule '{rule.name}' expands to an expression of more than "
                f"{_budget.RULE_NODES:,} parts",
                instead="store what a rule computes in a temporary, and use that",
            )
        return total

    def of_body(self, rule: SubstitutionRule) -> Count:
        name = rule.name
        if name in self.active:
            chain = " -> ".join((*self.active, name))
            raise ParseError(f"substitution rule '{name}' uses itself: {chain}")
        if name not in self.known:
            outside, self.active = self.active, (*self.active, name)
            self.known[name] = self(rule.expression)
            self.active = outside
        return self.known[name]


@remembered(1 << 8)
def _expanded(expr: Expression, rules: tuple[SubstitutionRule, ...]) -> Expression:
    by_name = {r.name: r for r in rules}
    _Counter(by_name)(expr)
    return _Expander(by_name)(expr)


def expand_in(expr: Expression, rules: Rules) -> Expression:
    """``expr`` with every use of the given rules replaced by the rule's expression.

    Rules that use themselves, and expansions that are too large, are refused.
    """
    return expr if is_constant(expr) else _expanded(expr, tuple(rules.values()))


def check_rules(rules: Rules) -> None:
    """Raise if a rule uses itself, or if its expansion is too large."""
    counter = _Counter(rules)
    for rule in rules.values():
        counter.of_body(rule)


def inner_first(rules: Rules) -> tuple[str, ...]:
    """The names of some rules that :func:`check_rules` takes, each behind those that it uses."""
    rule_of = _Counter(rules).rule_of

    def used(rule: SubstitutionRule) -> list[str]:
        return [found.name for node in nodes_of(rule.expression) if (found := rule_of(node))]

    return tuple(TopologicalSorter({n: used(r) for n, r in rules.items()}).static_order())


def is_expanded(kernel: Kernel) -> bool:
    """Whether a kernel has neither rules nor tags of uses."""
    return not kernel.substitutions and not any(s.tagged for s in kernel.statements)


def expand_rules(kernel: Kernel) -> Kernel:
    """The kernel as it is computed: rules are expanded, and uses have no tags."""
    if is_expanded(kernel):
        return kernel
    rules = kernel.rule_by_name
    statements = tuple(
        s.map_expressions(lambda e: without_tags(expand_in(e, rules))) for s in kernel.statements
    )
    return kernel.with_(statements=statements, substitutions=())
