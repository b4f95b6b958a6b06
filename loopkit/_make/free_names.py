"""Names in expressions under construction, seen through substitution rules."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial

import pymbolic.primitives as prim

from loopkit._expression import (
    NameCollector,
    Walker,
    is_constant,
    names_found,
    names_outside_accesses,
    variable_names,
)
from loopkit._kernel import Statement, SubstitutionRule
from loopkit._nodes import Expression, Reduction
from loopkit._rules import expand_in
from loopkit._spelling import candidates

Rules = Mapping[str, SubstitutionRule]


def _reduces_over_a_name(expr: prim.Max | prim.Min) -> bool:
    """Whether ``max(k, x)`` could be a reduction."""
    return len(expr.children) == 2 and isinstance(expr.children[0], prim.Variable)


class _FunctionCollector(NameCollector):
    """All names, those of functions and rules included."""

    def map_call(self, expr: prim.Call) -> None:
        self.found.add(expr.function.name)
        super().map_call(expr)


class _FreeNames(NameCollector):
    """The names that no reduction around them runs over."""

    def map_reduction(self, expr: Reduction) -> None:
        self.found |= free_names(expr.operand).difference(expr.inames)


class _OutsideReductions(NameCollector):
    """Names that stand outside of everything that could be a reduction."""

    def __init__(self, found: set[str], operations: Collection[str]) -> None:
        super().__init__(found)
        self.operations = operations

    def map_call(self, expr: prim.Call) -> None:
        if expr.function.name not in self.operations:
            super().map_call(expr)

    def map_max(self, expr: prim.Max) -> None:
        if not _reduces_over_a_name(expr):
            for child in expr.children:
                self.rec(child)

    map_min = map_max


class _ReductionFinder(Walker):
    """Finds reductions, outer ones before those inside them, and whether a call could be one."""

    def __init__(self, operations: Collection[str] = ()) -> None:
        super().__init__()
        self.operations = operations
        self.found: list[Reduction] = []
        self.could_be_one = False

    def map_call(self, expr: prim.Call) -> None:
        over_tuple = bool(expr.parameters) and isinstance(expr.parameters[0], tuple)
        if over_tuple or expr.function.name in self.operations:
            self.could_be_one = True
        if not over_tuple:
            super().map_call(expr)

    def map_max(self, expr: prim.Max) -> None:
        self.could_be_one = self.could_be_one or _reduces_over_a_name(expr)
        for child in expr.children:
            self.rec(child)

    map_min = map_max

    def map_reduction(self, expr: Reduction) -> None:
        self.found.append(expr)
        self.rec(expr.operand)


def names_in_values(statement: Statement) -> frozenset[str]:
    """The names that a statement's conditions and value use, other than in subscripts."""
    parts = (*statement.predicates, statement.rhs)
    return frozenset().union(*map(names_outside_accesses, parts))


_INDEXING = (prim.Sum, prim.Product, prim.FloorDiv, prim.Remainder, prim.Min, prim.Max)


def _is_index(expr: Expression) -> bool:
    """Whether an expression is what indices are computed with: names, integers, no division."""
    if isinstance(expr, prim.FloorDiv | prim.Remainder):
        return _is_index(expr.numerator) and _is_index(expr.denominator)
    if isinstance(expr, _INDEXING):
        return all(_is_index(child) for child in expr.children)
    return isinstance(expr, prim.Variable) or type(expr) is int


class _Compared(NameCollector):
    """Names in comparisons of index expressions in which an iname stands."""

    def __init__(self, found: set[str], inames: Collection[str]) -> None:
        super().__init__(found)
        self.inames = inames

    def map_variable(self, expr: prim.Variable) -> None:
        return None

    def map_comparison(self, expr: prim.Comparison) -> None:
        if _is_index(expr.left) and _is_index(expr.right):
            names = variable_names(expr.left) | variable_names(expr.right)
            if any(name in self.inames for name in names):
                self.found.update(names.difference(self.inames))
        self.rec(expr.left)
        self.rec(expr.right)


def names_beside_inames(statement: Statement, inames: Collection[str]) -> frozenset[str]:
    """The names that a statement compares with inames, as it would compare sizes."""
    compared = partial(_Compared, inames=inames)
    return names_found(compared, *statement.predicates, statement.rhs)


def reductions_in(expr: Expression) -> list[Reduction]:
    """All reductions in ``expr``, outer ones before those inside them."""
    finder = _ReductionFinder()
    if not is_constant(expr):
        finder(expr)
    return finder.found


def could_reduce(expr: Expression, operations: Collection[str]) -> bool:
    """Whether some call in ``expr`` could be a reduction."""
    finder = _ReductionFinder(operations)
    if not is_constant(expr):
        finder(expr)
    return finder.could_be_one


def free_names(expr: Expression) -> frozenset[str]:
    """The names in ``expr``, without the inames that its reductions run over."""
    return names_found(_FreeNames, expr)


def names_outside_reductions(expr: Expression, operations: Collection[str]) -> frozenset[str]:
    """The names that stand outside of every call that could be a reduction."""
    return names_found(partial(_OutsideReductions, operations=operations), expr)


def closure(found: Collection[str], needs: Mapping[str, Collection[str]]) -> set[str]:
    """``found`` and all names that need one of them, directly or not."""
    whole = set(found)
    while True:
        more = {n for n in needs if n not in whole and not whole.isdisjoint(needs[n])}
        if not more:
            return whole
        whole |= more


class RuleBook:
    """Substitution rules, with those that hold reductions told apart.

    A rule that reduces cannot stay a rule: its loops belong to the statement
    that uses it, so it is expanded when the statement is made.
    """

    def __init__(self, rules: Rules, operations: Collection[str]) -> None:
        self.rules = rules
        reducing = {n for n, r in rules.items() if could_reduce(r.expression, operations)}
        uses = {n: names_found(_FunctionCollector, r.expression) for n, r in rules.items()}
        reducing = closure(reducing, uses)
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
    if not rules or names_found(_FunctionCollector, expr).isdisjoint(rules):
        return expr
    return expand_in(expr, rules)


def fresh_names(base: str, taken: set[str]) -> Iterator[str]:
    """``base``, ``base_0``, ``base_1``, ...: those not in ``taken``, which grows."""
    for name in candidates(base):
        if name not in taken:
            taken.add(name)
            yield name
