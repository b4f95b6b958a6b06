"""Names in expressions under construction, seen through substitution rules."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pymbolic.primitives as prim

from loopkit import _expression
from loopkit._kernel import Statement, SubstitutionRule
from loopkit._nodes import Expression, Reduction
from loopkit._relations import grouped, reachable
from loopkit._rules import expand_in
from loopkit._spelling import candidates

Rules = Mapping[str, SubstitutionRule]


def _could_be_one(node: Expression, operations: Collection[str]) -> bool:
    """Whether a node of a text could be a reduction: ``sum(k, x)``, ``max(k, x)``."""
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


def reductions_in(expr: Expression) -> list[Reduction]:
    """All reductions in ``expr``, outer ones before those inside them."""
    return [node for node in _expression.nodes_of(expr) if isinstance(node, Reduction)]


def could_reduce(expr: Expression, operations: Collection[str]) -> bool:
    """Whether some call in ``expr`` could be a reduction."""
    return any(_could_be_one(node, operations) for node in _expression.nodes_of(expr))


def free_names(expr: Expression) -> frozenset[str]:
    """The names in ``expr``, without the inames that its reductions run over."""
    nodes = list(_expression.nodes_of(expr, into=lambda node: not isinstance(node, Reduction)))
    inner = [node for node in nodes if isinstance(node, Reduction)]
    outer = _expression.names_among(node for node in nodes if not isinstance(node, Reduction))
    return outer.union(*(free_names(r.operand).difference(r.inames) for r in inner))


def names_outside_reductions(expr: Expression, operations: Collection[str]) -> frozenset[str]:
    """The names that stand outside of every call that could be a reduction."""
    return _expression.names_among(
        _expression.nodes_of(expr, into=lambda node: not _could_be_one(node, operations))
    )


def closure(found: Collection[str], needs: Mapping[str, Collection[str]]) -> frozenset[str]:
    """``found`` and all names that need one of them, directly or not."""
    users = grouped((name, user) for user, names in needs.items() for name in names)
    return reachable(found, lambda name: users.get(name, ()))


class RuleBook:
    """Substitution rules, with those that hold reductions told apart.

    A rule that reduces cannot stay a rule: its loops belong to the statement
    that uses it, so it is expanded when the statement is made.
    """

    def __init__(self, rules: Rules, operations: Collection[str]) -> None:
        self.rules = rules
        holders = {n for n, r in rules.items() if could_reduce(r.expression, operations)}
        uses = {n: _expression.called_names(r.expression) for n, r in rules.items()}
        reducing = closure(holders, uses)
        self.reducing: Rules = {n: rules[n] for n in rules if n in reducing}

    @property
    def kept(self) -> tuple[SubstitutionRule, ...]:
        """The rules that stay rules."""
        return tuple(r for n, r in self.rules.items() if n not in self.reducing)

    def without_reductions(self, expr: Expression) -> Expression:
        """``expr`` with the uses of reducing rules expanded."""
        return _expanded(expr, self.reducing)

    def expanded(self, expr: Expression) -> Expression:
        """``expr`` with all rules expanded."""
        return _expanded(expr, self.rules)


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
