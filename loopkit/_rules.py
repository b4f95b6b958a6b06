"""Substitution rules, expanded in place."""

from __future__ import annotations

from collections.abc import Mapping

import pymbolic.primitives as prim

from loopkit._errors import ParseError
from loopkit._expression import ExpressionMapper, substitute
from loopkit._kernel import Kernel, SubstitutionRule
from loopkit._nodes import Expression


class _Expander(ExpressionMapper):
    def __init__(self, rules: Mapping[str, SubstitutionRule], active: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.rules = rules
        self.active = active

    def _expand(self, name: str, arguments: tuple[Expression, ...]) -> Expression:
        rule = self.rules[name]
        if name in self.active:
            chain = " -> ".join((*self.active, name))
            raise ParseError(f"substitution rule '{name}' uses itself: {chain}")
        if len(arguments) != len(rule.arguments):
            raise ParseError(
                f"'{name}' takes {len(rule.arguments)} arguments, but is used with {len(arguments)}"
            )
        body = _Expander(self.rules, (*self.active, name))(rule.expression)
        return substitute(body, dict(zip(rule.arguments, arguments, strict=True)))

    def map_call(self, expr: prim.Call) -> Expression:
        arguments = tuple(self.rec(p) for p in expr.parameters)
        if expr.function.name in self.rules:
            return self._expand(expr.function.name, arguments)
        return prim.Call(expr.function, arguments)

    def map_variable(self, expr: prim.Variable) -> Expression:
        rule = self.rules.get(expr.name)
        return expr if rule is None or rule.arguments else self._expand(expr.name, ())


def expand_in(expr: Expression, rules: Mapping[str, SubstitutionRule]) -> Expression:
    """``expr`` with every use of the given rules replaced by what the rules say."""
    return _Expander(rules)(expr)


def expand_rules(kernel: Kernel) -> Kernel:
    """The kernel without substitution rules: every use is replaced by its expression."""
    if not kernel.substitutions:
        return kernel
    rules = {r.name: r for r in kernel.substitutions}
    statements = tuple(s.map_expressions(lambda e: expand_in(e, rules)) for s in kernel.statements)
    return kernel.with_(statements=statements, substitutions=())
