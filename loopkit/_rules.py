"""Substitution rules, expanded in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import pymbolic.primitives as prim
from pymbolic.mapper import CombineMapper

from loopkit import _budget
from loopkit._errors import ParseError
from loopkit._expression import ExpressionMapper, is_constant, substitute
from loopkit._kernel import Kernel, SubstitutionRule
from loopkit._nodes import Expression, Reduction, TypeCast
from loopkit._same import remembered

Rules = Mapping[str, SubstitutionRule]
Count = Counter[str]
"""How often each name stands in an expression; under OTHERS, how many nodes are no names."""

OTHERS = ""


class _Expander(ExpressionMapper):
    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self.rules = rules
        self.bodies: dict[str, Expression] = {}

    def _expand(self, name: str, arguments: tuple[Expression, ...]) -> Expression:
        rule = self.rules[name]
        if name not in self.bodies:
            self.bodies[name] = self.rec(rule.expression)
        return substitute(self.bodies[name], dict(zip(rule.arguments, arguments, strict=True)))

    def map_call(self, expr: prim.Call) -> Expression:
        arguments = tuple(self.rec(p) for p in expr.parameters)
        if expr.function.name in self.rules:
            return self._expand(expr.function.name, arguments)
        return prim.Call(expr.function, arguments)

    def map_variable(self, expr: prim.Variable) -> Expression:
        rule = self.rules.get(expr.name)
        return expr if rule is None or rule.arguments else self._expand(expr.name, ())


class _Counter(CombineMapper):  # type: ignore[misc]
    """Counts what an expression holds once its rules are expanded, without expanding them."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self.rules = rules
        self.active: tuple[str, ...] = ()
        self.known: dict[str, Count] = {}

    def combine(self, values: Iterable[Count]) -> Count:
        total: Count = Counter({OTHERS: 1})
        for value in values:
            total.update(value)
        return total

    def map_constant(self, expr: Expression) -> Count:
        return Counter({OTHERS: 1})

    def map_variable(self, expr: prim.Variable) -> Count:
        rule = self.rules.get(expr.name)
        if rule is None or rule.arguments:
            return Counter({expr.name: 1})
        return self.of_rule(rule, ())

    def map_call(self, expr: prim.Call) -> Count:
        arguments = tuple(self.rec(p) for p in expr.parameters)
        rule = self.rules.get(expr.function.name)
        return self.combine(arguments) if rule is None else self.of_rule(rule, arguments)

    def map_reduction(self, expr: Reduction) -> Count:
        return self.combine([self.rec(expr.operand)])

    def map_type_cast(self, expr: TypeCast) -> Count:
        return self.combine([self.rec(expr.operand)])

    def map_tuple(self, expr: tuple[Expression, ...]) -> Count:
        return self.combine([self.rec(e) for e in expr])

    def of_rule(self, rule: SubstitutionRule, arguments: tuple[Count, ...]) -> Count:
        """What one use of a rule stands for."""
        if len(arguments) != len(rule.arguments):
            raise ParseError(
                f"'{rule.name}' takes {len(rule.arguments)} arguments, "
                f"but is used with {len(arguments)}"
            )
        body = self.of_body(rule)
        total: Count = Counter(body)
        for name, argument in zip(rule.arguments, arguments, strict=True):
            for used, number in argument.items():
                total[used] += number * body[name]
            total[name] -= body[name]
        if total.total() > _budget.RULE_NODES:
            raise ParseError(
                f"the substitution rule '{rule.name}' stands for an expression of more than "
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
            self.known[name] = self.rec(rule.expression)
            self.active = outside
        return self.known[name]


@remembered(1 << 8)
def _expanded(expr: Expression, rules: tuple[SubstitutionRule, ...]) -> Expression:
    by_name = {r.name: r for r in rules}
    _Counter(by_name)(expr)
    return _Expander(by_name)(expr)


def expand_in(expr: Expression, rules: Rules) -> Expression:
    """``expr`` with every use of the given rules replaced by what the rules say.

    Rules that use themselves, and expressions that would be larger than
    anybody can mean, are refused.
    """
    return expr if is_constant(expr) else _expanded(expr, tuple(rules.values()))


def check_rules(rules: Rules) -> None:
    """Raise if a rule uses itself, or stands for more than anybody can mean."""
    counter = _Counter(rules)
    for rule in rules.values():
        counter.of_body(rule)


def expand_rules(kernel: Kernel) -> Kernel:
    """The kernel without substitution rules: every use is replaced by its expression."""
    if not kernel.substitutions:
        return kernel
    rules = kernel.rule_by_name
    statements = tuple(s.map_expressions(lambda e: expand_in(e, rules)) for s in kernel.statements)
    return kernel.with_(statements=statements, substitutions=())
