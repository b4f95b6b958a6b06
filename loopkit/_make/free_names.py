"""Names in expressions under construction, looked up through substitution rules."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import pymbolic.primitives as prim

from loopkit import _expression
from loopkit._errors import ParseError
from loopkit._kernel import Statement, SubstitutionRule
from loopkit._nodes import Expression, Reduction, tagged_like
from loopkit._relations import grouped, reachable
from loopkit._rules import (
    check_rules,
    expand_in,
    inner_first,
    reduced_inames,
    reductions_in,
    results_of,
)
from loopkit._spelling import candidates
from loopkit._syntax.reduction_calls import Components, resolve_reductions

Rules = Mapping[str, SubstitutionRule]


def _could_be_one(node: Expression, operations: Collection[str]) -> bool:
    """Whether a node of a text could be a reduction: ``sum(k, x)``, ``max(k, x)``."""
    if isinstance(node, Reduction):
        return True  # in a rule that another kernel had
    if isinstance(node, prim.Call):
        over_tuple = bool(node.parameters) and isinstance(node.parameters[0], tuple)
        return over_tuple or node.function.name in operations
    if isinstance(node, (prim.Max, prim.Min)):
        return len(node.children) == 2 and isinstance(node.children[0], prim.Variable)
    return False


_INDEXING = (prim.Sum, prim.Product, prim.FloorDiv, prim.Remainder, prim.Min, prim.Max)


def _is_index(expr: Expression) -> bool:
    """Whether an expression is what indices are computed with: names, integers, no division."""
    allowed = (*_INDEXING, prim.Variable)
    return all(
        isinstance(node, allowed) or type(node) is int for node in _expression.nodes_of(expr)
    )


def names_beside_inames(statement: Statement, inames: Collection[str]) -> frozenset[str]:
    """The names that a statement compares with inames, as it would compare sizes."""
    found: set[str] = set()
    for part in (*statement.predicates, statement.rhs):
        for node in _expression.nodes_of(part):
            if not isinstance(node, prim.Comparison):
                continue
            names = _expression.variable_names(node.left) | _expression.variable_names(node.right)
            if any(n in inames for n in names) and _is_index(node.left) and _is_index(node.right):
                found |= names.difference(inames)
    return frozenset(found)


def could_reduce(expr: Expression, operations: Collection[str]) -> bool:
    """Whether some call in ``expr`` could be a reduction."""
    return any(_could_be_one(node, operations) for node in _expression.nodes_of(expr))


def names_outside_reductions(expr: Expression, operations: Collection[str]) -> frozenset[str]:
    """The names that stand outside of every call that could be a reduction."""
    nodes = _expression.nodes_of(expr, into=lambda node: not _could_be_one(node, operations))
    return _expression.names_among(n for n in nodes if not isinstance(n, Reduction))


def closure(found: Collection[str], needs: Mapping[str, Collection[str]]) -> frozenset[str]:
    """``found`` and all names that depend on one of them, directly or indirectly."""
    users = grouped((name, user) for user, names in needs.items() for name in names)
    return reachable(found, lambda name: users.get(name, ()))


class RuleBook:
    """Substitution rules, where those with reductions are treated separately.

    The loops of a reduction belong to the statement that uses the rule.  So a use lists the
    reductions after its arguments, ``f(i, sum(k, a[i, k]))``, and later their accumulators.  Rules
    whose reductions differ between uses are expanded in place.
    """

    def __init__(self, rules: Rules, components: Components, inames: Collection[str]) -> None:
        self.rules = rules
        self.components = components
        holders = {n for n, r in rules.items() if could_reduce(r.expression, components)}
        uses = {n: _expression.called_names(r.expression) for n, r in rules.items()}
        reducing = closure(holders, uses)
        self.reducing: Rules = {n: rules[n] for n in rules if n in reducing}
        self.resolved: dict[str, SubstitutionRule] = {}
        check_rules(self.reducing)
        for name in inner_first(self.reducing):
            rule = self._resolved(self.reducing[name], inames)
            if rule is not None:
                self.resolved[name] = rule

    def _resolved(self, rule: SubstitutionRule, inames: Collection[str]) -> SubstitutionRule | None:
        """A rule with its reductions, where these are the same for all uses.

        It uses others as a statement does; these are resolved already.
        """
        body = self.without_reductions(rule.expression)
        outside = names_outside_reductions(_expanded(body, self.rules), self.components)
        outside = outside.union(rule.arguments)
        body = self.with_reductions(rule.expression, outside)
        try:
            body = resolve_reductions(
                body, lambda n: n in inames and n not in outside, reductions=self.components
            )
        except ParseError:
            return None  # the use says what is wrong
        return replace(rule, expression=body) if reductions_in(body) else None

    @property
    def kept(self) -> tuple[SubstitutionRule, ...]:
        """The rules that are not expanded."""
        known = {n: self.resolved.get(n, rule) for n, rule in self.rules.items()}
        gone = self.reducing.keys() - self.resolved.keys()
        return tuple(r for n, r in known.items() if n not in gone)

    def without_reductions(self, expr: Expression) -> Expression:
        """``expr`` with the uses of reducing rules expanded."""
        return _expanded(expr, self.reducing)

    def with_reductions(self, expr: Expression, outside: frozenset[str]) -> Expression:
        """``expr`` with the reductions of the rules behind the arguments of their uses.

        Rules that reduce over inames that the statement is in, ``outside`` of its reductions, are
        expanded, and so are those of which an argument holds a reduction.
        """
        fit = {
            n: rule
            for n, rule in self.resolved.items()
            if outside.isdisjoint(reduced_inames(rule.expression))
        }
        rest = {n: rule for n, rule in self.reducing.items() if n not in fit}
        return _WithReductions(fit, self)(_expanded(expr, rest))

    def reduction_of(self, expr: Expression) -> Reduction | None:
        """The reduction that ``expr`` is, directly or as a use of a rule."""
        rule = self.resolved.get(expr.function.name) if isinstance(expr, prim.Call) else None
        if rule is not None and isinstance(rule.expression, Reduction):
            expr = expr.parameters[-1]
        return expr if isinstance(expr, Reduction) else None

    def expanded(self, expr: Expression) -> Expression:
        """``expr`` with all rules expanded."""
        return _expanded(expr, {**self.rules, **self.resolved})


class _WithReductions(_expression.ExpressionMapper):
    """Puts the reductions of some rules behind the arguments of their uses."""

    def __init__(self, rules: Rules, book: RuleBook) -> None:
        super().__init__()
        self.rules = rules
        self.book = book
        self.inside: frozenset[str] = frozenset()

    def use(self, name: str, use: Expression, arguments: tuple[Expression, ...]) -> Expression:
        rule = self.rules[name]
        found = results_of(rule.expression)
        whole = self.book.without_reductions(use)  # which counts the arguments
        arguments = arguments[: len(rule.arguments)]  # a rule that another kernel had names more
        if self.inside & reduced_inames(rule.expression) or any(
            could_reduce(self.book.without_reductions(a), self.book.components) for a in arguments
        ):
            return whole
        values = dict(zip(rule.arguments, arguments, strict=True))
        results = (_expression.substitute(r, values) for r in found)
        return tagged_like(use, prim.Call(prim.Variable(name), (*arguments, *results)))

    def map_variable(self, expr: prim.Variable) -> Expression:
        rule = self.rules.get(expr.name)
        return expr if rule is None or rule.arguments else self.use(expr.name, expr, ())

    def map_call(self, expr: prim.Call) -> Expression:
        if expr.function.name in self.rules:
            return self.use(expr.function.name, expr, expr.parameters)
        return super().map_call(expr)

    def rec(self, expr: Expression) -> Expression:
        outside = self.inside
        self.inside = outside.union(self.bound_by(expr))
        try:
            return super().rec(expr)
        finally:
            self.inside = outside

    __call__ = rec

    def bound_by(self, expr: Expression) -> Collection[str]:
        """The inames of a reduction, or of what may be one."""
        if isinstance(expr, Reduction):
            return expr.inames
        if not _could_be_one(expr, self.book.components):
            return ()
        is_call = isinstance(expr, prim.Call)
        if is_call and expr.function.name in self.rules:
            return ()
        parts = expr.parameters if is_call else expr.children
        return _expression.variable_names(parts[0]) if parts else ()


def _expanded(expr: Expression, rules: Rules) -> Expression:
    if not rules or _expression.called_names(expr).isdisjoint(rules):
        return expr
    return expand_in(expr, rules)


def fresh_names(base: str, taken: set[str]) -> Iterator[str]:
    """``base``, ``base_0``, ``base_1``, ...: those not in ``taken``, which grows."""
    for name in candidates(base):
        if name not in taken:
            taken.add(name)
            yield name
